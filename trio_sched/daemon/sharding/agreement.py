"""Pods that repel others are placed once every holder of a shard has seen what they repel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio
from attrs import define, field

from trio_sched.daemon.sharding.held_shard import HeldShard, TakesOver
from trio_sched.engine.sharding.owned_shards import OwnedShards, all_have_seen
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.snapshot.labels.affinity_terms import AffinityTerm


@define(eq=False, kw_only=True)
class Agreement:
    """What the holder of the lane finds out before it decides on such pods."""

    owned: OwnedShards
    agreed: Callable[[], None]
    """Called when all have seen what some pods repel."""
    takes_over: TakesOver = field(init=False)
    _under_way: set[AffinityTerm] = field(factory=set, init=False)

    @property
    def is_open(self) -> bool:
        """Whether something is to be found out."""
        terms = self.owned.terms
        return LANE in self.owned.ready and bool(terms.since.keys() - terms.agreed)

    def look(self, lane: HeldShard | None, acknowledged: Sequence[int | None], nursery: trio.Nursery) -> None:
        """The holders of the shards have *acknowledged* these revisions; None: there is no holder.

        Args:
            lane: what this process holds of it.
            acknowledged: by shard.
            nursery: holds what takes longer.
        """
        if lane is None or not self.is_open:
            return
        seen = [
            (term, since)
            for term, since in self.owned.terms.open().items()
            if term not in self._under_way and all_have_seen(since, acknowledged)
        ]
        if seen:
            self._under_way.update(term for term, _since in seen)
            nursery.start_soon(self._agree_on, seen, lane)

    async def _agree_on(self, seen: list[tuple[AffinityTerm, int]], lane: HeldShard) -> None:
        """What was bound by those who did not know of the terms is in what is listed now."""
        try:
            is_seen = await self.takes_over.see_everything((lane,)) and LANE in self.owned.ready
            if is_seen and self.owned.terms.agree(seen):
                self.agreed()
        finally:
            self._under_way.difference_update(term for term, _since in seen)
