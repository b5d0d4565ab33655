"""The same nodes with other pods on them: questions that must not touch the real columns."""

from collections.abc import Iterable, Sequence

from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable, PlacedPod


class WhatIf:
    """A copy of some nodes to try things on.

    Holds only the nodes asked for, so a try on one node costs one node; ids (resources, taints, features, label values)
    mean the same as in the original, names identify the nodes.
    """

    def __init__(self, table: NodeTable, rows: Sequence[int]) -> None:
        self._copy = table.copy_of_rows(rows)

    @property
    def nodes(self) -> NodeColumns:
        """The copied nodes, in the order they were asked for."""
        return self._copy.columns

    def pods_on(self, node_name: str) -> Iterable[PlacedPod]:
        """The pods on *node_name* as things stand."""
        return self._copy.pods[self._copy.row_of[node_name]].values()

    def add_pod(self, node_name: str, placed: PlacedPod) -> None:
        """As if *placed* were on *node_name* too."""
        self._copy.add_pod(self._copy.row_of[node_name], placed)

    def remove_pod(self, node_name: str, uid: str) -> PlacedPod:
        """As if the pod *uid* were not on *node_name*."""
        return self._copy.remove_pod(self._copy.row_of[node_name], uid)
