"""The same nodes with other pods on them, without touching the real columns."""

from collections.abc import Iterable, Sequence

from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo


class WhatIf:
    """A copy of some nodes, on which pods can be added and removed.

    Holds only the nodes asked for, so that the cost is theirs alone; ids (resources, taints, features, label values)
    mean the same as in the original, names identify the nodes.
    """

    def __init__(self, table: NodeTable, rows: Sequence[int]) -> None:
        self._copy = table.copy_of_rows(rows)

    @property
    def nodes(self) -> NodeColumns:
        """The copied nodes, in the order they were asked for."""
        return NodeColumns(self._copy)

    def pods_on(self, node_name: str) -> Iterable[PodInfo]:
        """The pods on *node_name* in the copy."""
        return self._copy.pods[self._copy.row_of[node_name]].values()

    def add_pod(self, node_name: str, pod_info: PodInfo) -> None:
        """Put *pod_info* on *node_name*."""
        self._copy.add_pod(self._copy.row_of[node_name], pod_info)

    def remove_pod(self, node_name: str, uid: str) -> PodInfo:
        """Take the pod *uid* off *node_name*."""
        return self._copy.remove_pod(self._copy.row_of[node_name], uid)
