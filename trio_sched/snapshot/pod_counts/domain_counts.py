"""How many pods there are per topology domain, kept up to date one placement at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Final

import numpy as np

from trio_sched.snapshot.arrays import BoolArray, Int32Array, Int64Array, IntpArray, read_only, resized
from trio_sched.snapshot.topology_columns import ABSENT, NodeMask, Topology

_MAX_CELLS: Final = 1 << 23
"""The size of all domain counts of a table together, in domains; beyond, those computed longest ago are dropped."""
_OVERHEAD_CELLS: Final = 256
"""What a `DomainCounts` with few domains counts for."""
_MAX_SPARSE: Final = 256
"""How many rows are counted in a dict at first, which takes less memory if they are few."""
_CELLS_PER_TEXT: Final = 8
_NONE: Final = np.zeros(0, dtype=np.int32)
NO_DOMAIN: Final = 2**31 - 1
"""What the smallest count is where there is no domain."""


class DomainCounts:
    """Pods per value of one node label, over all nodes or over a set of nodes.

    A domain is the index of the value in ``nodes.label_vocabulary(key)``; nodes without the label count nowhere.
    """

    __slots__ = ("_eligible", "_generation", "_ids", "_minimum", "counts", "key", "present", "texts", "total")

    def __init__(self, key: str) -> None:
        self.key = key
        self._generation = -1
        self._eligible: BoolArray | None = None
        self._ids: Int32Array = np.zeros(0, dtype=np.int32)
        self._minimum: int | None = None
        self.counts: Int64Array = np.zeros(0, dtype=np.int64)
        """Shape (domains,): pods in each; not to be written to."""
        self.present: BoolArray = np.zeros(0, dtype=np.bool_)
        """Shape (domains,): whether any node of the set is in it."""
        self.total = 0
        """Pods in all domains."""
        self.texts = 0
        """The size of what says over which nodes."""

    @property
    def minimum(self) -> int:
        """The smallest count of a domain that is present; `NO_DOMAIN` if none is."""
        if self._minimum is None:
            values = self.counts[self.present]
            self._minimum = int(values.min()) if len(values) else NO_DOMAIN
        return self._minimum

    def minimum_without(self, domain: int) -> int:
        """The smallest count of the domains other than *domain*."""
        others = self.present.copy()
        others[domain] = False
        values = self.counts[others]
        return int(values.min()) if len(values) else NO_DOMAIN

    @property
    def size(self) -> int:
        """How many domains are present."""
        return int(np.count_nonzero(self.present))

    def without(self, domains: Iterable[int]) -> DomainCounts:
        """A copy, which does not follow changes, with a pod less in each of *domains*."""
        copy = DomainCounts(self.key)
        copy.counts, copy.present, copy.total, copy.texts = self.counts.copy(), self.present, self.total, self.texts
        for domain in domains:
            copy.counts[domain] -= 1
            copy.total -= 1
        return copy

    def change(self, topology: Topology, row: int, delta: int) -> None:
        """*delta* pods more on *row*."""
        if self._generation != topology.generation or (self._eligible is not None and not self._eligible[row]):
            return  # outdated counts are left alone: `refresh` counts all pods again
        domain = self._ids[row]
        if domain != ABSENT:
            self.counts[domain] += delta
            self.total += delta
            self._minimum = None

    def refresh(self, topology: Topology, of: RowCounts, mask: NodeMask | None) -> bool:
        """Count again if nodes came, went, or changed their labels or taints; returns whether that was so.

        Args:
            topology: the labels of the nodes.
            of: the pods per row.
            mask: the set of nodes, up to date and the same at every call; None for all nodes.
        """
        if self._generation == topology.generation:
            return False
        column = topology.column(self.key)
        self._ids = column.ids
        self._eligible, self.texts = (None, 0) if mask is None else (mask.rows, mask.texts)
        domains = len(column.values)
        ids = column.ids[: topology.count]
        if self._eligible is not None:
            ids = ids[self._eligible[: topology.count]]
        self.present = np.bincount(ids, minlength=domains) > 0
        self.present[ABSENT] = False
        where, pods = of.where()
        if self._eligible is not None:
            counted = self._eligible[where]
            where, pods = where[counted], pods[counted]
        self.counts = np.bincount(column.ids[where], weights=pods, minlength=domains).astype(np.int64)
        self.counts[ABSENT] = 0
        self.total = int(self.counts.sum())
        self._minimum = None
        self._generation = topology.generation
        return True


class DomainCountsBudget:
    """All domain counts of a table, those computed longest ago first: bounds their size together.

    What is dropped is counted again when it is read again.
    """

    __slots__ = ("_cells", "_computed")

    def __init__(self) -> None:
        self._cells = 0
        self._computed: OrderedDict[DomainCounts, tuple[int, RowCounts]] = OrderedDict()

    def computed(self, domains: DomainCounts, of: RowCounts) -> None:
        """*domains*, which belong to *of*, were counted again."""
        self.discard(domains)
        cells = len(domains.counts) + _OVERHEAD_CELLS + _CELLS_PER_TEXT * domains.texts
        self._computed[domains] = cells, of
        self._cells += cells
        while self._cells > _MAX_CELLS and len(self._computed) > 1:
            oldest, (_, owner) = next(iter(self._computed.items()))
            self.discard(oldest)
            owner.drop(oldest)

    def discard(self, domains: DomainCounts) -> None:
        """Forget *domains*, which are not kept any more."""
        found = self._computed.pop(domains, None)
        if found is not None:
            self._cells -= found[0]


class RowCounts:
    """How many pods of some kind are on each row, and the same per topology domain.

    Args:
        topology: the labels of the nodes, by row.
        budget: bounds the size of the counts per domain.
        rows: where there are pods to begin with; a row can occur several times.
        pods: how many these are.
    """

    __slots__ = ("_budget", "_dense", "_domains", "_sparse", "_topology")

    def __init__(
        self, topology: Topology, budget: DomainCountsBudget, rows: Int32Array = _NONE, pods: Int32Array = _NONE
    ) -> None:
        self._topology = topology
        self._budget = budget
        self._sparse: dict[int, int] = {}
        """Row → pods, where there are any; not used once there is an array."""
        self._dense: Int64Array | None = None
        self._domains: dict[tuple[str, Hashable], DomainCounts] = {}
        if len(rows) > _MAX_SPARSE:
            self._dense = np.bincount(rows, weights=pods).astype(np.int64)
        else:
            for row, count in zip(rows.tolist(), pods.tolist(), strict=True):
                self._sparse[row] = self._sparse.get(row, 0) + count

    @property
    def is_zero(self) -> bool:
        """Whether there are no pods."""
        return not self._sparse if self._dense is None else not self._dense.any()

    def change(self, row: int, delta: int) -> None:
        """*delta* pods more on *row*."""
        if self._dense is not None:
            if row >= len(self._dense):
                self._dense = resized(self._dense, max(self._topology.capacity, row + 1))
            self._dense[row] += delta
        else:
            count = self._sparse.get(row, 0) + delta
            if count:
                self._sparse[row] = count
            else:
                del self._sparse[row]
        for domains in self._domains.values():
            domains.change(self._topology, row, delta)

    def where(self) -> tuple[IntpArray, Int64Array]:
        """The rows that have pods, and how many."""
        if self._dense is not None:
            rows = np.flatnonzero(self._dense)
            return rows, self._dense[rows]
        count = len(self._sparse)
        return (
            np.fromiter(self._sparse, dtype=np.intp, count=count),
            np.fromiter(self._sparse.values(), dtype=np.int64, count=count),
        )

    @property
    def per_node(self) -> Int64Array:
        """Shape (nodes,), read-only: pods on each node."""
        count, capacity = self._topology.count, self._topology.capacity
        if self._dense is None:
            rows, pods = self.where()
            self._dense = np.zeros(capacity, dtype=np.int64)
            self._dense[rows] = pods
            self._sparse = {}
        elif not count <= len(self._dense) <= 2 * capacity:
            self._dense = resized(self._dense, capacity)
        return read_only(self._dense[:count])

    def by_domain(self, key: str, mask: NodeMask | None = None) -> DomainCounts:
        """The counts per value of the node label *key*, over the nodes of *mask* only if it is given."""
        where = (key, None if mask is None else mask.key)
        found = self._domains.get(where)
        if found is None:
            found = self._domains[where] = DomainCounts(key)
        if found.refresh(self._topology, self, mask):
            self._budget.computed(found, self)
        return found

    def drop(self, domains: DomainCounts) -> None:
        """Do not keep *domains* up to date any more."""
        self._domains = {where: one for where, one in self._domains.items() if one is not domains}

    def close(self) -> None:
        """Nothing reads these counts any more."""
        for domains in self._domains.values():
            self._budget.discard(domains)
        self._domains = {}


class RowSums(RowCounts):
    """How much of a resource some pods request on each row, and per topology domain, instead of how many they are.

    Amounts are in milli-CPU, bytes or counts. Counted again per domain, sums are exact up to 2**53.
    """

    __slots__ = ("total",)

    def __init__(self, topology: Topology, budget: DomainCountsBudget, amounts: Iterable[tuple[int, int]]) -> None:
        super().__init__(topology, budget)
        self.total = 0
        """On all rows."""
        for row, amount in amounts:
            self.change(row, amount)

    def change(self, row: int, delta: int) -> None:
        """*delta* more on *row*."""
        if delta:
            self.total += delta
            super().change(row, delta)
