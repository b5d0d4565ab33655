"""A process that schedules its shards: what it sees, what it decides, what it asks the API server to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from attrs import define, field, frozen

from contrib.sharding.events import EventLoop
from contrib.sharding.link import Link
from contrib.sharding.protocol import Protocol
from contrib.sharding.server import Change, Reply, ShardedPod
from contrib.sharding.shard_leases import ShardLeases, all_have_seen
from trio_sched.engine.sharding.ownership import LANE, shard_of


@frozen
class UnderWay:
    """A request about a pod that has no end yet."""

    shards: tuple[int, ...]
    """Those for which it was decided."""
    seen: int
    """The revision that had been seen then."""
    node: str
    """The node that it takes a place on; empty: none."""


@define(eq=False, kw_only=True)
class Replica:
    """One process, from its start to its end; another start is another one."""

    identity: str
    protocol: Protocol
    loop: EventLoop
    link: Link
    random: Random
    clock: Callable[[], float]
    clock_rate: float
    """Seconds of the local clock in a second."""
    pods: dict[str, ShardedPod] = field(factory=dict, init=False)
    """What was seen last of each pod."""
    seen: int = field(default=0, init=False)
    """The revision up to which everything was seen."""
    leases: ShardLeases = field(init=False)
    _under_way: dict[str, UnderWay] = field(factory=dict, init=False)
    _since: dict[str, int] = field(factory=dict, init=False)
    """Owners that pods repel → the revision at which such a pod was seen first, without a gap since."""
    _agreed: set[str] = field(factory=set, init=False)
    """Those of them that all shards have seen."""
    _unanswered: dict[str, tuple[int, float]] = field(factory=dict, init=False)
    """Pods that are nominated to nodes of others → the version that is so, and since when on the local clock."""
    _slow: dict[int, float] = field(factory=dict, init=False)
    """Shards that did not answer → until when nothing is proposed to them."""
    _is_deciding: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.leases = ShardLeases(
            identity=self.identity,
            protocol=self.protocol,
            link=self.link,
            random=self.random,
            clock=self.clock,
            taken=self._taken,
            acknowledged=self._acknowledged,
            is_drained=self._is_drained,
        )

    def start(self) -> None:
        """Begin: list the pods, watch them, look at the leases again and again."""
        self._list(lambda: None)
        self._tick()

    def _tick(self) -> None:
        self._ask(lambda: dict(self.link.server.leases), self._take_in_leases)
        self._decide_soon()
        self._later(self.protocol.retry_seconds * self.random.uniform(1.0, 1.2), self._tick)

    def _later(self, local_seconds: float, action: Callable[[], None]) -> None:
        self.loop.after(local_seconds / self.clock_rate, lambda: self.link.deliver(action))

    def _ask(self, call: Callable[[], Any], answer: Callable[[Any], None]) -> None:
        """Ask for something; *answer* gets it, and nothing happens without one."""
        seconds = self.protocol.request_seconds
        self.link.request(call, lambda value: None if value is None else answer(value), seconds)

    # --- what is seen -------------------------------------------------------------------------------------------------

    def _list(self, then: Callable[[], None]) -> None:
        """List all pods, watch on from there, and do *then*; again if nothing comes."""
        server = self.link.server

        def take(found: tuple[int, int, dict[str, ShardedPod]] | None) -> None:
            if found is None:
                self._list(then)
                return
            revision, position, pods = found
            if revision >= self.seen:
                newer = {name: pod for name, pod in self.pods.items() if pod.version > revision}
                self.pods, self.seen = pods | newer, revision
                self._look_at_terms()
                self.link.watch(position, self._changed)
            then()
            self._decide_soon()

        self.link.request(
            lambda: (server.revision, len(server.log), dict(server.pods)), take, self.protocol.request_seconds
        )

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            if change.revision > self.seen:
                self.seen = change.revision
                if change.pod is None:
                    self.pods.pop(change.name, None)
                elif (known := self.pods.get(change.name)) is None or known.version < change.revision:
                    self.pods[change.name] = change.pod
        self._look_at_terms()
        self._decide_soon()

    def _learned(self, name: str, pod: object) -> None:
        """The server has answered with what is stored of a pod, before the watch has brought it."""
        known = self.pods.get(name)
        if isinstance(pod, ShardedPod) and known is not None and pod.version > known.version:
            self.pods[name] = pod

    def _look_at_terms(self) -> None:
        terms = {pod.repels for pod in self.pods.values() if pod.repels}
        new = terms - self._since.keys()
        self._since = {term: self._since.get(term, self.seen) for term in terms}
        self._agreed &= terms
        if new:
            self.leases.renew_at_once()
            self._later(self.protocol.agreement_seconds, self._look_at_leases)

    def _take_in_leases(self, leases: dict[str, Any]) -> None:
        self.leases.take_in(leases)
        self._agree(leases)

    def _look_at_leases(self) -> None:
        """Look who has seen what pods repel, soon again where somebody has not; the next tick does so anyway."""
        if self._open_terms() and self.leases.may_decide(LANE):
            self._ask(lambda: dict(self.link.server.leases), self._agree)
            self._later(self.protocol.agreement_seconds, self._look_at_leases)

    def _open_terms(self) -> dict[str, int]:
        return {term: since for term, since in self._since.items() if term not in self._agreed}

    def _agree(self, leases: dict[str, Any]) -> None:
        terms, shards = self._open_terms(), range(self.protocol.shards)
        seen = [term for term, since in terms.items() if all_have_seen(since, leases, shards)]
        if seen and self.leases.may_decide(LANE):
            # What was bound by those who had not seen it is in what is listed now.
            self._list(lambda: self._agreed.update(one for one in seen if self._since.get(one) == terms[one]))

    def _acknowledged(self, shard: int) -> int:
        return min([self.seen, *(one.seen for one in self._under_way.values() if shard in one.shards)])

    def _is_drained(self, shard: int) -> bool:
        return not any(shard in one.shards for one in self._under_way.values())

    # --- shards that come ---------------------------------------------------------------------------------------------

    def _taken(self, shard: int, was_released: bool) -> None:
        held = self.leases.held[shard]

        def ready() -> None:
            if self.leases.held.get(shard) is held:
                held.is_ready = True
                self._decide_soon()

        def fence() -> None:
            if was_released or not self.protocol.fences:
                ready()
                return
            waiting = {pod.name for pod in self.pods.values() if not pod.node and shard in self._binders(pod)}
            if not waiting:
                ready()
            for name in sorted(waiting):
                self._fence(name, waiting, ready)

        self._list(fence)

    def _binders(self, pod: ShardedPod) -> set[int]:
        """The shards whose owners may bind the pod, as far as its own fields say, or that decide on it."""
        shards = {shard_of(pod.owner, self.protocol.shards), LANE}
        return shards | {self._shard(pod.nominated)} if pod.nominated else shards

    def _fence(self, name: str, waiting: set[str], ready: Callable[[], None]) -> None:
        """Give a pod another version: a bind of the former one fails from then on."""
        pod, server = self.pods.get(name), self.link.server

        def answer(reply: Reply | None) -> None:
            if reply is not None:
                self._learned(name, reply.value)
                stored = reply.value
                if reply.is_done or not isinstance(stored, ShardedPod) or stored.node:
                    waiting.discard(name)
                    if not waiting:
                        ready()
                    return
            self._fence(name, waiting, ready)

        if pod is None or pod.node:
            answer(Reply(is_done=True))
        else:
            self.link.request(lambda: server.touch(name, pod.version), answer, self.protocol.request_seconds)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _decide_soon(self) -> None:
        if not self._is_deciding:
            self._is_deciding = True
            self._later(self.protocol.decision_seconds, self._decide)

    def _decide(self) -> None:
        """Decide on all pods that this process is to decide on."""
        self._is_deciding = False
        used = self._used()
        for pod in list(self.pods.values()):
            if pod.node or pod.name in self._under_way:
                continue
            if pod.nominated:
                self._answer(pod, used)
            elif self.leases.may_decide(shard := self._decides_on(pod)):
                self._place(pod, shard, used)

    def _decides_on(self, pod: ShardedPod) -> int:
        """The shard whose owner decides on the pod: its own one, or the lane if others in other places matter."""
        return LANE if pod.repels or pod.owner in self._since else shard_of(pod.owner, self.protocol.shards)

    def _used(self) -> Counter[str]:
        """What is requested on each node: by pods on it, pods that are being bound, pods that are nominated to it."""
        used: Counter[str] = Counter()
        for pod in self.pods.values():
            node = self._place_of(pod)
            if node:
                used[node] += pod.cpu
        return used

    def _place_of(self, pod: ShardedPod) -> str:
        under_way = self._under_way.get(pod.name)
        return pod.node or ("" if under_way is None else under_way.node) or pod.nominated

    def _shard(self, node: str) -> int:
        return shard_of(node, self.protocol.shards)

    def _place(self, pod: ShardedPod, shard: int, used: Counter[str]) -> None:
        """Bind a pod to a node of this process, of *shard* if there is room, or nominate it to one of another."""
        if pod.repels and self.protocol.awaits_terms and pod.repels not in self._agreed:
            return
        now, zones = self.clock(), self._forbidden_zones(pod)
        with_room = [
            node
            for node in self.link.server.nodes.values()
            if used[node.name] + pod.cpu <= node.cpu
            and node.zone not in zones
            and self._slow.get(self._shard(node.name), 0.0) <= now
        ]
        if shard != LANE:
            with_room = [node for node in with_room if self._shard(node.name) == shard] or with_room
        if not with_room:
            return
        node = max(with_room, key=lambda node: (node.cpu - used[node.name], node.name)).name
        owner = self._shard(node)
        if self.leases.may_decide(owner):
            self._bind(pod, node, (shard, owner), used)
        else:
            used[node] += pod.cpu
            self._send(pod, (shard,), lambda: self.link.server.nominate(pod.name, node, pod.version), node)

    def _answer(self, pod: ShardedPod, used: Counter[str]) -> None:
        """Bind a pod that is nominated to a node of this process, or take the nomination back."""
        shard, server = self._shard(pod.nominated), self.link.server
        if self.leases.may_decide(shard):
            if used[pod.nominated] <= server.nodes[pod.nominated].cpu:
                self._bind(pod, pod.nominated, (shard,), used, is_counted=True)
            else:
                used[pod.nominated] -= pod.cpu
                self._send(pod, (shard,), lambda: server.nominate(pod.name, "", pod.version))
        elif self.leases.may_decide(decider := self._decides_on(pod)):
            now = self.clock()
            version, since = self._unanswered.setdefault(pod.name, (pod.version, now))
            if version != pod.version:
                self._unanswered[pod.name] = pod.version, now
            elif now >= since + self.protocol.proposal_seconds:
                del self._unanswered[pod.name]
                self._slow[shard] = now + self.protocol.proposal_seconds
                self._send(pod, (decider,), lambda: server.nominate(pod.name, "", pod.version))

    def _forbidden_zones(self, pod: ShardedPod) -> set[str]:
        nodes = self.link.server.nodes
        return {
            nodes[node].zone
            for other in self.pods.values()
            if other.name != pod.name
            and (pod.repels == other.owner or other.repels == pod.owner)
            and (node := self._place_of(other))
        }

    # --- requests -----------------------------------------------------------------------------------------------------

    def _bind(
        self, pod: ShardedPod, node: str, shards: tuple[int, ...], used: Counter[str], *, is_counted: bool = False
    ) -> None:
        version = pod.version if self.protocol.binds_with_version else None
        if not is_counted:
            used[node] += pod.cpu
        self._send(pod, shards, lambda: self.link.server.bind(pod.name, node, version), node)

    def _send(self, pod: ShardedPod, shards: tuple[int, ...], call: Callable[[], Reply], node: str = "") -> None:
        """Have the server do *call* for *shards*, again and again until it says what became of it."""
        under_way = self._under_way[pod.name] = UnderWay(shards, self.seen, node)
        held = [self.leases.held[shard] for shard in shards]

        def send() -> None:
            if [self.leases.held.get(shard) for shard in shards] != held:
                # Whoever has the shard now makes sure that it comes to nothing, or has seen that it came to something.
                self._ended(pod.name, under_way)
            elif self.leases.may_write(*shards):
                self.link.request(call, answer, self.protocol.request_seconds)
            else:
                self._later(self.protocol.retry_seconds, send)

        def answer(reply: Reply | None) -> None:
            if reply is None:
                send()
            else:
                self._learned(pod.name, reply.value)
                self._ended(pod.name, under_way)

        send()

    def _ended(self, name: str, under_way: UnderWay) -> None:
        if self._under_way.get(name) is under_way:
            del self._under_way[name]
        self._decide_soon()
