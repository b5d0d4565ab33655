"""Which shards a replica takes and gives back, given the leases as they are now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from attrs import frozen

from trio_sched.engine.sharding.ownership import fair_share


@frozen
class SeenLease:
    """What is known of the lease of a shard."""

    holder: str
    """Empty: it was released, or never held."""
    is_valid: bool
    """Whether its holder may still write, for all that can be known here."""


@frozen
class ShardPlan:
    """What to do."""

    take: tuple[int, ...]
    """Shards that nobody holds, as far as this replica may take them; the first ones if there are more."""
    give_back: tuple[int, ...]


def plan_shards(
    leases: Mapping[int, SeenLease], staying: Collection[int], identity: str, replicas: Collection[str], shards: int
) -> ShardPlan:
    """Share *shards* evenly.

    Args:
        leases: by shard, of those that exist.
        staying: the shards that this replica holds and is not about to give back.
        identity: of this replica.
        replicas: the identities of all that are alive.
        shards: how many there are.
    """
    alive = {*replicas, identity}
    share = fair_share(shards, len(alive))
    free = [
        shard
        for shard in range(shards)
        if shard not in staying and ((lease := leases.get(shard)) is None or not lease.holder or not lease.is_valid)
    ]
    own = sorted(staying)
    give_back = own[share:]
    if not give_back and not free:
        held = Counter({one: 0 for one in alive})
        held.update(lease.holder for lease in leases.values() if lease.holder in alive and lease.holder != identity)
        fewest = min(count for one, count in held.items() if one != identity) if len(alive) > 1 else len(own)
        if len(own) >= fewest + 2:
            give_back = own[-1:]
    return ShardPlan(take=tuple(free[: max(share - len(own), 0)]), give_back=tuple(give_back))
