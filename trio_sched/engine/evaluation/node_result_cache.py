"""Keeps what was found out about pods of one signature on each node, until the node, its pods or nominations change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from trio_sched.engine.evaluation.filtering import NominatedPods
from trio_sched.snapshot.arrays import Int64Array
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo

V = TypeVar("V")

Version = tuple[int, int, Sequence[PodInfo] | None]
"""The generations of the node and of its pods, and the pods that are nominated there."""


class NodeResultCache(Generic[V]):
    """Node name → a value, for the version of the node that it was found out for."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Version, V]] = {}

    def missing(
        self, table: NodeTable, rows: Sequence[int], pods_generation: Int64Array, nominated: NominatedPods, *, most: int
    ) -> dict[int, Version]:
        """Those of *rows* for which nothing valid is kept, with the version for which it would be.

        Args:
            table: the cluster.
            rows: of the nodes in question.
            pods_generation: shape (nodes,): grows with those changes of a node's pods that matter.
            nominated: from `NominatedIndex`, which returns the same objects until they change.
            most: nodes there can be values for; when twice as many are kept, some are of no use any more.
        """
        kept, names = self._kept, table.names
        if len(kept) > 2 * most + 64:
            kept.clear()
        node_seen, pods_seen = table.views.node_generation[rows].tolist(), pods_generation[rows].tolist()
        missing: dict[int, Version] = {}
        for row, node_now, pods_now in zip(rows, node_seen, pods_seen, strict=True):
            name = names[row]
            pods = nominated.get(name)
            known = kept.get(name)
            if known is None or known[0][2] is not pods or known[0][:2] != (node_now, pods_now):
                missing[row] = (node_now, pods_now, pods)
        return missing

    def clear(self) -> None:
        """Start over."""
        self._kept.clear()

    def keep(self, name: str, version: Version, value: V) -> None:
        """Keep *value* for node *name*."""
        self._kept[name] = version, value

    def value(self, name: str) -> V:
        """What is kept of node *name*."""
        return self._kept[name][1]
