"""The rows of topology domains: what a change on one node makes outdated if plugins depend on a `Domain`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import Factory, define, field

from trio_sched.snapshot.arrays import Int32Array, Int64Array
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.topology_columns import ABSENT


def newest_in_domain(table: NodeTable, keys: Sequence[str]) -> Int64Array:
    """Shape (nodes,): grows whenever a node or its pods change that has the same value of one of the labels *keys*."""
    views = table.views
    own = np.maximum(views.node_generation, views.pods_generation)
    newest = own.copy()
    for key in keys:
        ids = _domain_ids(table, key)
        by_domain = np.zeros(len(table.topology.column(key).values.values), dtype=np.int64)
        np.maximum.at(by_domain, ids, own)
        newest = np.where(ids == ABSENT, newest, np.maximum(newest, by_domain[ids]))
    return newest


@define(eq=False)
class DomainRows:
    """The domains of the rows of *table* by the labels *keys*, as they were when results were last computed."""

    table: NodeTable
    keys: Sequence[str]
    _ids: list[Int32Array] = field(
        default=Factory(lambda self: [_domain_ids(self.table, key) for key in self.keys], takes_self=True)
    )
    """Shape (nodes,) for each of *keys*."""

    def have_moved(self) -> bool:
        """Whether a node is in another domain now: the one that it has left has changed, too."""
        return any(
            not np.array_equal(ids, _domain_ids(self.table, key)) for key, ids in zip(self.keys, self._ids, strict=True)
        )

    def sharing_with(self, rows: Sequence[int]) -> list[int]:
        """The rows in any domain of *rows*, and these themselves; a node without a label shares no domain by it."""
        shares = np.zeros(self.table.count, dtype=np.bool_)
        shares[rows] = True
        for ids in self._ids:
            domains = np.unique(ids[rows])
            shares |= np.isin(ids, domains[domains != ABSENT])
        return np.flatnonzero(shares).tolist()


def _domain_ids(table: NodeTable, key: str) -> Int32Array:
    return table.topology.column(key).ids[: table.count].copy()
