"""The shards that a process holds: takes, renews, gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random

from attrs import define, field

from contrib.sharding.link import Link
from contrib.sharding.protocol import Protocol
from contrib.sharding.server import Lease, Reply
from trio_sched.engine.sharding.ownership import fair_share


@define(eq=False)
class HeldShard:
    """A shard that the process holds."""

    renewed_at: float
    """On the local clock, when the request was sent that has renewed the lease last."""
    version: int
    """Of the lease."""
    is_ready: bool = False
    """Whether the process may decide for it: no bind of its last owner can happen any more."""
    is_leaving: bool = False
    """Nothing new is decided; it is released when everything has an end."""


@define(eq=False, kw_only=True)
class ShardLeases:
    """The leases of one process.

    Attributes:
        held: the shards that it holds.
    """

    identity: str
    protocol: Protocol
    link: Link
    random: Random
    clock: Callable[[], float]
    """The local clock."""
    taken: Callable[[int, bool], None]
    """Is called when a shard was taken; True: it was released by its last owner."""
    acknowledged: Callable[[int], int]
    """Returns the revision that everything which is decided for a shard, or has no end yet, has seen."""
    is_drained: Callable[[int], bool]
    """Whether everything that was decided for a shard has an end."""
    held: dict[int, HeldShard] = field(factory=dict, init=False)
    _seen: dict[str, tuple[int, float]] = field(factory=dict, init=False)
    """The version of each lease that was seen, and when on the local clock."""
    _wanted: set[int] = field(factory=set, init=False)
    """Those that are being taken."""
    _given_back: set[int] = field(factory=set, init=False)
    """Those that were given back, and perhaps are not released yet."""

    def may_write(self, *shards: int) -> bool:
        """Whether requests may be sent for all of *shards* now."""
        now, deadline = self.clock(), self.protocol.renew_deadline_seconds
        held = [self.held.get(shard) for shard in shards]
        return all(
            one is not None and (not self.protocol.guards_writes or now < one.renewed_at + deadline) for one in held
        )

    def may_decide(self, *shards: int) -> bool:
        """Whether something new may be decided for all of *shards* now."""
        held = [self.held.get(shard) for shard in shards]
        return all(one is not None and one.is_ready and not one.is_leaving for one in held) and self.may_write(*shards)

    def take_in(self, leases: Mapping[str, Lease]) -> None:
        """Renew, take and give back, now that all leases were listed."""
        now = self.clock()
        for name, lease in leases.items():
            if self._seen.get(name, (0, 0.0))[0] != lease.version:
                self._seen[name] = lease.version, now
        member = f"member-{self.identity}"
        self._put(member, leases.get(member), lambda _lease, _sent: None)
        share = fair_share(self.protocol.shards, self._count_members(leases) or 1)
        free: list[int] = []
        for shard in range(self.protocol.shards):
            name = f"shard-{shard}"
            lease = leases.get(name)
            if lease is None or lease.holder != self.identity:
                self._given_back.discard(shard)
            if shard in self.held:
                self._keep(shard, lease)
            elif shard in self._given_back and lease is not None and lease.holder == self.identity:
                self._release(shard, lease.version)  # a renewal came before the first attempt
            elif shard not in self._wanted | self._given_back and self._is_free(name, lease):
                free.append(shard)
        self._give_back(share)
        self.random.shuffle(free)
        for shard in free[: max(share - len(self.held) - len(self._wanted), 0)]:
            self._take(shard, leases.get(f"shard-{shard}"))

    def renew_at_once(self) -> None:
        """Say as soon as possible what was seen."""
        for shard, held in self.held.items():
            self._renew(shard, held)

    def _count_members(self, leases: Mapping[str, Lease]) -> int:
        alive = self.clock() - self.protocol.lease_seconds
        return sum(name.startswith("member-") and self._seen[name][1] > alive for name in leases)

    def _is_free(self, name: str, lease: Lease | None) -> bool:
        if lease is None or not lease.holder or lease.holder == self.identity:
            return True
        return self.clock() >= self._seen[name][1] + self.protocol.lease_seconds

    def _keep(self, shard: int, lease: Lease | None) -> None:
        held = self.held[shard]
        if lease is not None and lease.version < held.version:
            return  # listed before it was written
        if lease is None or lease.holder != self.identity:
            del self.held[shard]
            return
        held.version = lease.version
        self._renew(shard, held)

    def _renew(self, shard: int, held: HeldShard) -> None:
        def renewed(lease: Lease, sent: float) -> None:
            if self.held.get(shard) is held:
                held.renewed_at, held.version = max(sent, held.renewed_at), max(lease.version, held.version)

        acknowledged = self.acknowledged(shard) if held.is_ready else 0
        self._write(
            f"shard-{shard}", Lease(holder=self.identity, acknowledged=acknowledged, version=held.version), renewed
        )

    def _take(self, shard: int, lease: Lease | None) -> None:
        self._wanted.add(shard)
        was_released = lease is None or not lease.holder

        def taken(lease: Lease, sent: float) -> None:
            self.held[shard] = HeldShard(renewed_at=sent, version=lease.version)
            self.taken(shard, was_released)

        self._put(f"shard-{shard}", lease, taken, lambda: self._wanted.discard(shard))

    def _give_back(self, share: int) -> None:
        staying = [shard for shard, held in self.held.items() if not held.is_leaving]
        for shard in sorted(staying)[share:]:
            self.held[shard].is_leaving = True
        for shard, held in list(self.held.items()):
            # Before it is ready, binds of its last owner may still come, which whoever takes it next would not know.
            if held.is_leaving and held.is_ready and self.is_drained(shard):
                del self.held[shard]
                self._given_back.add(shard)
                self._release(shard, held.version)

    def _release(self, shard: int, version: int) -> None:
        def released(_lease: Lease, _sent: float) -> None:
            self._given_back.discard(shard)

        self._write(f"shard-{shard}", Lease(holder="", version=version), released)

    def _put(
        self,
        name: str,
        stored: Lease | None,
        written: Callable[[Lease, float], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        version = 0 if stored is None else stored.version
        self._write(name, Lease(holder=self.identity, version=version), written, ended)

    def _write(
        self,
        name: str,
        lease: Lease,
        written: Callable[[Lease, float], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        sent, server = self.clock(), self.link.server

        def answer(reply: Reply | None) -> None:
            ended()
            if reply is not None and reply.is_done and isinstance(reply.value, Lease):
                written(reply.value, sent)

        self.link.request(lambda: server.put_lease(name, lease), answer, self.protocol.request_seconds)


def all_have_seen(revision: int, leases: Mapping[str, Lease], shards: Iterable[int]) -> bool:
    """Whether whoever holds each of *shards* has acknowledged *revision*."""
    found = [leases.get(f"shard-{shard}") for shard in shards]
    return all(lease is not None and bool(lease.holder) and lease.acknowledged >= revision for lease in found)
