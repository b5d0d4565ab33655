"""Shards that come: nothing that their last owner has sent can succeed any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import define

from contrib.sharding.objects import Reply, Stored
from contrib.sharding.process import Process
from contrib.sharding.shard_leases import Former, ShardLeases
from contrib.sharding.view import View
from trio_sched.engine.sharding.ownership import LANE


@define(eq=False)
class Fencing:
    """Gives everything another version that the last owner of a shard could still write."""

    process: Process
    view: View
    leases: ShardLeases
    list_again: Callable[[Callable[[], None]], None]
    """Lists everything and does something then."""
    decide_soon: Callable[[], None]

    def taken(self, shard: int, former: Former) -> None:
        """A shard was taken: fence it and be ready to decide for it."""
        held = self.leases.held[shard]

        def ready() -> None:
            if self.leases.held.get(shard) is held:
                held.is_ready = True
                self.decide_soon()

        def fence() -> None:
            waiting = {} if former is Former.RELEASED else {one.name: one for one in self._writable(shard, former)}
            if not waiting:
                ready()
            for one in list(waiting.values()):
                self._touch(one, waiting, ready)

        self.list_again(fence)

    def _writable(self, shard: int, former: Former) -> Iterator[Stored]:
        """What requests can be about that the last owner of *shard* has sent, or the last ones of all."""
        protocol, is_all = self.process.protocol, former is Former.OTHER_NUMBER
        pods = list(self.view.pods.values())
        if protocol.fences:
            # Of all shards: the last owner may have held others, too, and have bound pods of them to nodes of this one.
            yield from (pod for pod in pods if not pod.node)
            yield from (group for group in self.view.groups.values() if not group.is_scheduled)
        if protocol.fences_allocations and (is_all or shard == LANE):
            in_use = {pod.claim for pod in pods if pod.node}
            yield from (one for one in self.view.claims.values() if one.name not in in_use)
        if protocol.fences_evictions:
            preemptors = [pod for pod in pods if pod.preempts and pod.is_reserved]
            if not is_all:
                preemptors = [pod for pod in preemptors if self.process.shard(pod.nominated) == shard]
            for pod in pods:
                others = [one for one in preemptors if one.nominated == pod.node and one.priority > pod.priority]
                if others and not pod.is_terminating:
                    yield pod

    def _touch(self, listed: Stored, waiting: dict[str, Stored], ready: Callable[[], None]) -> None:
        """Give something another version: what names the former one fails from then on."""
        server = self.process.link.server

        def answer(reply: Reply | None) -> None:
            if reply is None:
                self._touch(listed, waiting, ready)
                return
            self.view.learn(reply.value)
            # Another version than the one that was listed is as good, whoever has given it: the last owner had seen
            # none of them when it had to stop.
            waiting.pop(listed.name, None)
            if not waiting:
                ready()

        self.process.link.request(
            lambda: server.touch(listed.name, listed.version), answer, self.process.protocol.request_seconds
        )
