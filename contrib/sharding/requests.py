"""Requests of a process that have no end yet: sent again and again until the server says what became of them."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field, frozen

from contrib.sharding.objects import Reply, ShardedPod
from contrib.sharding.process import Process
from contrib.sharding.shard_leases import ShardLeases
from contrib.sharding.view import View


@frozen
class UnderWay:
    """A request that has no end yet."""

    shards: tuple[int, ...]
    """Those for which it was decided."""
    seen: int
    """The revision that had been seen then."""
    node: str
    """The node that it takes a place on; empty: none."""
    is_reserving: bool
    """The place is kept for the pod, and not taken yet."""


@define(eq=False)
class Requests:
    """Those of one process, one for each object at a time."""

    process: Process
    view: View
    leases: ShardLeases
    ended: Callable[[], None]
    """Is called when one has an end."""
    under_way: dict[str, UnderWay] = field(factory=dict, init=False)
    """By the name of the object."""

    def acknowledged(self, shard: int) -> int:
        """The revision that everything which is decided for a shard, or has no end yet, has seen."""
        return min([self.view.seen, *(one.seen for one in self.under_way.values() if shard in one.shards)])

    def is_drained(self, shard: int) -> bool:
        """Whether everything that was decided for a shard has an end."""
        return not any(shard in one.shards for one in self.under_way.values())

    def place_of(self, pod: ShardedPod) -> str:
        """The node that a pod is on, is being bound to, or is nominated to; empty: none."""
        under_way = self.under_way.get(pod.name)
        return pod.node or ("" if under_way is None else under_way.node) or pod.nominated

    def send(
        self,
        name: str,
        shards: tuple[int, ...],
        call: Callable[[], Reply],
        node: str = "",
        *,
        is_reserving: bool = False,
    ) -> None:
        """Have the server do *call* for *shards*, again and again until it says what became of it."""
        under_way = self.under_way[name] = UnderWay(shards, self.view.seen, node, is_reserving)
        held = {shard: self.leases.held[shard] for shard in shards}
        stored = self.view.find(name)

        def send() -> None:
            lost = [shard for shard, one in held.items() if self.leases.held.get(shard) is not one]
            if len(lost) == len(held) or (lost and self.view.find(name) != stored):
                # Whoever has the shard now makes sure that it comes to nothing, or has seen that it came to something.
                end()
            elif lost:
                # Until that is so it may still take the place, on a node that this process goes on to decide on.
                self.process.later(self.process.protocol.retry_seconds, send)
            elif self.leases.may_write(*shards):
                self.process.link.request(call, answer, self.process.protocol.request_seconds)
            else:
                self.process.later(self.process.protocol.retry_seconds, send)

        def answer(reply: Reply | None) -> None:
            if reply is None:
                send()
            else:
                self.view.learn(reply.value)
                end()

        def end() -> None:
            if self.under_way.get(name) is under_way:
                del self.under_way[name]
            self.ended()

        send()
