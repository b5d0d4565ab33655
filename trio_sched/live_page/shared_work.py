"""What the page shows of a replica that shares the work: its shards, and what it and others wait for of each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import define, field, frozen

from trio_sched.engine.scheduler import Scheduler
from trio_sched.snapshot.arrays import Int64Array

if TYPE_CHECKING:
    from trio_sched.engine.sharding.owned_shards import OwnedShards  # only where there are some

_COUNTED_EVERY_TIME: Final = 2000
"""So many pending pods are counted by shard in every refresh; more in every second one, and so on."""
_TOGETHER: Final = 250
"""Pods that are counted without a pause."""


@frozen(kw_only=True)
class SharedWork:
    """Where the page gets what it shows of shards."""

    owned: OwnedShards
    held: Callable[[], Mapping[str, list[int]]]
    """Returns the shards whose leases this replica holds: ``ready``, ``taking_over`` and ``giving_back``."""
    replicas: Callable[[], int]
    """Returns how many replicas share the work."""
    kept_elsewhere: Callable[[], Collection[str]]
    """Returns the UIDs of the pods of this replica that owners of other nodes keep places for."""


@define(eq=False)
class ShardEntries:
    """The entries of the summary about shards."""

    work: SharedWork
    scheduler: Scheduler
    _pending: Counter[int] = field(init=False, factory=Counter)
    """Pods without a node that this replica decides on, by shard."""
    _asked: int = field(init=False, default=0)
    """Pods of others that are nominated to nodes of this replica."""
    _ready: frozenset[int] = field(init=False, default=frozenset())
    """The shards that pods were counted for."""
    _refreshes: int = field(init=False, default=0)
    """Since they were."""

    def refresh(self) -> Iterator[None]:
        """Count the pending pods, if that is due; yields where others may run."""
        owned, by_key = self.work.owned, self.scheduler.cache.unassigned.by_key
        self._refreshes += 1
        if self._refreshes <= len(by_key) // _COUNTED_EVERY_TIME and self._ready == owned.ready:
            return
        self._ready, self._refreshes = owned.ready, 0
        pending, asked = Counter[int](), 0
        for number, pod in enumerate(list(by_key.values()), start=1):
            shard = owned.decider(pod)
            if shard in self._ready:
                pending[shard] += 1
            elif pod.status.nominated_node_name:
                asked += 1
            if number % _TOGETHER == 0:
                yield
        self._pending, self._asked = pending, asked

    def entries(self, shards: Int64Array, pod_counts: Int64Array) -> dict[str, Any]:
        """The entries as they are now.

        Args:
            shards: shape (nodes,), the shard of each.
            pod_counts: shape (nodes,), how many pods are on it.
        """
        held = self.work.held()
        is_held = np.isin(shards, [shard for some in held.values() for shard in some])
        return {
            "shards": {"count": self.work.owned.shards, "replicas": self.work.replicas(), **held},
            "shard_work": {
                "nodes": int(np.count_nonzero(is_held)),
                "pods": int(pod_counts[is_held].sum()),
                "pending": sorted(self._pending.items()),
                "nominated": self._nominated(),
                "asked": self._asked,
            },
        }

    def _nominated(self) -> int:
        """How many pods of this replica others are asked to bind, or keep a place for."""
        work, cache = self.work, self.scheduler.cache
        found = (cache.get(uid) for uid in work.owned.under_way.keys() | work.kept_elsewhere())
        return sum(one is not None and not work.owned.owns_node(one.node_name) for one in found)
