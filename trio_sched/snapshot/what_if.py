"""The same nodes with other pods on them: questions that must not touch the real columns."""

from collections.abc import Iterable

from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable, PlacedPod


class WhatIf:
    """A copy of some nodes to try things on.

    Holds only the nodes asked for, so a try on one node costs one node; ids (resources, taints, features, label values)
    mean the same as in the original, names identify the nodes.
    """

    def __init__(self, table: NodeTable, rows: Iterable[int]) -> None:
        self._copy = NodeTable(
            resources=table.resources,
            taint_lists=table.taint_lists,
            feature_lists=table.feature_lists,
            label_vocabularies=table.label_vocabularies,
        )
        for row in rows:
            self._copy.add_node(table.nodes[row], table.pods[row].values())

    @property
    def nodes(self) -> NodeColumns:
        """The copied nodes, in the order they were asked for."""
        return self._copy.columns

    def add_pod(self, node_name: str, placed: PlacedPod) -> None:
        """As if *placed* were on *node_name* too."""
        self._copy.add_pod(self._copy.row_of[node_name], placed)

    def remove_pod(self, node_name: str, uid: str) -> PlacedPod:
        """As if the pod *uid* were not on *node_name*."""
        return self._copy.remove_pod(self._copy.row_of[node_name], uid)
