"""The shards that a process holds: takes, renews, gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto

from attrs import define, evolve, field

from contrib.sharding.objects import Lease, Reply
from contrib.sharding.process import Process
from trio_sched.engine.sharding.ownership import fair_share


class Former(Enum):
    """What is known of the last owner of a shard that is taken."""

    RELEASED = auto()
    """Everything that it decided has an end."""
    EXPIRED = auto()
    """What it has sent may still arrive."""
    OTHER_NUMBER = auto()
    """Shards were others then: what any of their owners has sent may still arrive."""


@define(eq=False)
class HeldShard:
    """A shard that the process holds."""

    renewed_at: float
    """On the local clock, when the request was sent that has renewed the lease last."""
    lease: Lease
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

    process: Process
    taken: Callable[[int, Former], None]
    """Is called when a shard was taken."""
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
        protocol, now = self.process.protocol, self.process.clock()
        held = [self.held.get(shard) for shard in shards]
        return all(
            one is not None and (not protocol.guards_writes or now < one.renewed_at + protocol.renew_deadline_seconds)
            for one in held
        )

    def may_decide(self, *shards: int) -> bool:
        """Whether something new may be decided for all of *shards* now."""
        held = [self.held.get(shard) for shard in shards]
        return all(one is not None and one.is_ready and not one.is_leaving for one in held) and self.may_write(*shards)

    def take_in(self, leases: Mapping[str, Lease]) -> None:
        """Renew, take and give back, now that all leases were listed."""
        now = self.process.clock()
        for name, lease in leases.items():
            if self._seen.get(name, (0, 0.0))[0] != lease.version:
                self._seen[name] = lease.version, now
        member = f"member-{self.process.identity}"
        self._write(member, self._mine(leases.get(member)))
        in_force = leases.get("shard-0")
        minds = self.process.protocol.awaits_old_leases
        is_in_force = not minds or in_force is None or in_force.shards == self.process.protocol.shards
        share = fair_share(self.process.protocol.shards, self._count_members(leases) or 1) if is_in_force else 0
        free = [shard for shard in range(self.process.protocol.shards) if self._is_to_take(shard, leases)]
        for shard in list(self.held):
            self._keep(shard, leases.get(f"shard-{shard}"))
        self._give_back(share)
        if in_force is None:
            free = [shard for shard in free if shard == 0]
        elif not is_in_force:
            self._change_number(in_force, leases)
            return
        elif minds and (old := self._older(in_force, leases)):
            for name in old:
                self._make_new(name, leases.get(name), in_force)
            return
        self.process.random.shuffle(free)
        for shard in free[: max(share - len(self.held) - len(self._wanted), 0)]:
            self._take(shard, leases.get(f"shard-{shard}"), in_force)

    def renew_at_once(self) -> None:
        """Say as soon as possible what was seen."""
        for shard, held in self.held.items():
            self._renew(shard, held)

    def _count_members(self, leases: Mapping[str, Lease]) -> int:
        alive = self.process.clock() - self.process.protocol.lease_seconds
        return sum(
            name.startswith("member-") and lease.shards == self.process.protocol.shards and self._seen[name][1] > alive
            for name, lease in leases.items()
        )

    # --- another number of shards -------------------------------------------------------------------------------------

    def _change_number(self, in_force: Lease, leases: Mapping[str, Lease]) -> None:
        """Put the own number in force once nobody holds a shard by the one that is."""
        protocol = self.process.protocol
        others = [
            name for name, lease in leases.items() if name.startswith("shard-") and not self._is_free(name, lease)
        ]
        # Whoever has put its number in force gets the time to take a shard.
        is_new = self.process.clock() < self._seen["shard-0"][1] + protocol.lease_seconds
        if others or self.held or is_new:
            return
        lease = Lease(
            holder="",
            version=in_force.version,
            shards=protocol.shards,
            generation=in_force.generation + 1,
            reach=max(in_force.reach, protocol.shards),
            is_fresh=True,
        )
        self._write("shard-0", lease)

    def _older(self, in_force: Lease, leases: Mapping[str, Lease]) -> list[str]:
        """The leases that could still be taken by those who have not seen that the number has changed."""
        if not in_force.generation:
            return []
        names = [f"shard-{shard}" for shard in range(in_force.reach)]
        return [name for name in names if name not in leases or leases[name].generation != in_force.generation]

    def _make_new(self, name: str, lease: Lease | None, in_force: Lease) -> None:
        """Write a lease of a former generation: whoever wants to take that one fails from then on."""
        if self._is_free(name, lease):
            version = 0 if lease is None else lease.version
            self._write(name, evolve(in_force, holder="", acknowledged=0, version=version, is_fresh=True))

    # --- shards -------------------------------------------------------------------------------------------------------

    def _is_to_take(self, shard: int, leases: Mapping[str, Lease]) -> bool:
        lease, identity = leases.get(f"shard-{shard}"), self.process.identity
        if lease is None or lease.holder != identity:
            self._given_back.discard(shard)
        if shard in self.held:
            return False
        if shard in self._given_back and lease is not None and lease.holder == identity:
            self._release(shard, lease)  # a renewal came before the first attempt
            return False
        return shard not in self._wanted | self._given_back and self._is_free(f"shard-{shard}", lease)

    def _is_free(self, name: str, lease: Lease | None) -> bool:
        if lease is None or not lease.holder or lease.holder == self.process.identity:
            return True
        return self.process.clock() >= self._seen[name][1] + self.process.protocol.lease_seconds

    def _keep(self, shard: int, lease: Lease | None) -> None:
        held = self.held[shard]
        if lease is not None and lease.version < held.lease.version:
            return  # listed before it was written
        if lease is None or lease.holder != self.process.identity:
            del self.held[shard]
            return
        held.lease = lease
        self._renew(shard, held)

    def _renew(self, shard: int, held: HeldShard) -> None:
        def renewed(lease: Lease, sent: float) -> None:
            if self.held.get(shard) is held:
                held.renewed_at = max(sent, held.renewed_at)
                held.lease = max(lease, held.lease, key=lambda one: one.version)

        acknowledged = self.acknowledged(shard) if held.is_ready else 0
        is_fresh = held.lease.is_fresh and not held.is_ready
        self._write(f"shard-{shard}", evolve(held.lease, acknowledged=acknowledged, is_fresh=is_fresh), renewed)

    def _take(self, shard: int, lease: Lease | None, in_force: Lease | None) -> None:
        self._wanted.add(shard)
        former = Former.RELEASED if lease is None or not lease.holder else Former.EXPIRED
        if lease is not None and lease.is_fresh:
            former = Former.OTHER_NUMBER

        def taken(lease: Lease, sent: float) -> None:
            self.held[shard] = HeldShard(sent, lease)
            self.taken(shard, former)

        mine = self._mine(lease)
        if in_force is not None:
            mine = evolve(mine, generation=in_force.generation, reach=in_force.reach)
        self._write(f"shard-{shard}", mine, taken, lambda: self._wanted.discard(shard))

    def _give_back(self, share: int) -> None:
        staying = [shard for shard, held in self.held.items() if not held.is_leaving]
        for shard in sorted(staying)[share:]:
            self.held[shard].is_leaving = True
        for shard, held in list(self.held.items()):
            # Before it is ready, binds of its last owner may still come, which whoever takes it next would not know.
            if held.is_leaving and held.is_ready and self.is_drained(shard):
                del self.held[shard]
                self._given_back.add(shard)
                self._release(shard, held.lease)

    def _release(self, shard: int, lease: Lease) -> None:
        def released(_lease: Lease, _sent: float) -> None:
            self._given_back.discard(shard)

        self._write(f"shard-{shard}", evolve(lease, holder="", acknowledged=0, is_fresh=False), released)

    def _mine(self, lease: Lease | None) -> Lease:
        """A lease as it is when this process holds it."""
        shards = self.process.protocol.shards
        lease = lease or Lease(holder="", reach=shards)
        return evolve(lease, holder=self.process.identity, acknowledged=0, shards=shards)

    def _write(
        self,
        name: str,
        lease: Lease,
        written: Callable[[Lease, float], None] = lambda _lease, _sent: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        sent, server = self.process.clock(), self.process.link.server

        def answer(reply: Reply | None) -> None:
            ended()
            if reply is not None and reply.is_done and isinstance(reply.value, Lease):
                written(reply.value, sent)

        self.process.link.request(lambda: server.put_lease(name, lease), answer, self.process.protocol.request_seconds)


def all_have_seen(revision: int, leases: Mapping[str, Lease], shards: Iterable[int]) -> bool:
    """Whether whoever holds each of *shards* has acknowledged *revision*."""
    found = [leases.get(f"shard-{shard}") for shard in shards]
    return all(lease is not None and bool(lease.holder) and lease.acknowledged >= revision for lease in found)
