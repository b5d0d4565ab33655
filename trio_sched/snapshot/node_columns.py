"""What plugins see of the nodes: read-only columns, one entry per node.

Columns are resource-major: ``allocatable[r, i]`` is what node *i* has of resource *r*. Node *i* is the same in all
columns; its position may differ from one scheduling cycle to the next, so keep names, not rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import HostPort
from trio_sched.objects.taint import Taint
from trio_sched.snapshot.arrays import BoolArray, Int32Array, Int64Array, RowIndex
from trio_sched.snapshot.devices.device_table import DeviceTable
from trio_sched.snapshot.labels.pod_selector import PodSelector
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_counts.domain_counts import DomainCounts
from trio_sched.snapshot.pod_counts.term_index import MatchingTerms
from trio_sched.snapshot.topology_columns import NodeMask
from trio_sched.snapshot.unlisted_terms import without_unlisted


@frozen(eq=False)
class NodeSet:
    """Some of the nodes; equal *key* means equal nodes."""

    key: Hashable
    select: Callable[[NodeColumns], BoolArray]
    """Which nodes, by their names, labels and specs only: asked again when these change, not at other changes."""
    texts: int = 1
    """How many keys, values and names are in *key*, roughly: what is kept for large ones is dropped sooner."""


class NodeColumns:
    """All nodes, or some of them, as columns.

    ``len(nodes)`` is the number of nodes; all arrays have that length along their last axis and cannot be written to.
    Quantities: milli-CPU, bytes, counts.
    """

    __slots__ = ("_table", "rows")

    def __init__(self, table: NodeTable, rows: RowIndex | None = None) -> None:
        self._table = table
        self.rows = rows
        """Which rows of the whole cluster these are; None means all of them, in order."""

    def __len__(self) -> int:
        if self.rows is None:
            return self._table.count
        return self.rows.stop - self.rows.start if isinstance(self.rows, slice) else len(self.rows)

    def _row_numbers(self) -> Sequence[int]:
        if self.rows is None:
            return range(self._table.count)
        return range(self.rows.start, self.rows.stop) if isinstance(self.rows, slice) else self.rows.tolist()

    def take(self, positions: RowIndex) -> NodeColumns:
        """Only the nodes at *positions* of these."""
        if self.rows is None:
            return NodeColumns(self._table, positions)
        return NodeColumns(self._table, np.array(self._row_numbers(), dtype=np.intp)[positions])

    # --- identity -------------------------------------------------------------------------------------------------

    @property
    def total_nodes(self) -> int:
        """How many nodes the cluster has, whether they are among these or not."""
        return self._table.count

    @property
    def names(self) -> list[str]:
        """Node names."""
        names = self._table.names
        return names if self.rows is None else [names[row] for row in self._row_numbers()]

    def name(self, position: int) -> str:
        """The name of the node at *position*."""
        return self._table.names[self._row(position)]

    def node(self, position: int) -> NodeView:
        """The node at *position* as an object, for code that looks at nodes one by one."""
        return NodeView(self._table, self._row(position))

    def position(self, name: str) -> int | None:
        """The position of the node called *name* among these, or None."""
        row = self._table.row_of.get(name)
        if row is None or self.rows is None:
            return row
        if isinstance(self.rows, slice):
            return row - self.rows.start if self.rows.start <= row < self.rows.stop else None
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) if len(found) else None

    def _row(self, position: int) -> int:
        if self.rows is None:
            return position
        return self.rows.start + position if isinstance(self.rows, slice) else int(self.rows[position])

    def __iter__(self) -> Iterator[NodeView]:
        return (NodeView(self._table, row) for row in self._row_numbers())

    # --- resources ------------------------------------------------------------------------------------------------

    @property
    def resource_names(self) -> Sequence[str]:
        """The resource in each row of ``allocatable`` and ``requested``; "" in a row that is not used.

        First cpu, memory and ephemeral-storage, then others that some node offers.
        """
        return self._table.resources.values

    def resource_row(self, name: str) -> int | None:
        """The row of resource *name*; None if no node offers any of it: for extended ones, see `allocatable_of`."""
        return self._table.resources.get(name)

    def allocatable_of(self, resource: str) -> Int64Array:
        """Shape (nodes,): how much of *resource* pods may use; 0 where it is not offered."""
        return self._row_of(resource, self._table.views.allocatable)

    def requested_of(self, resource: str) -> Int64Array:
        """Shape (nodes,): how much of *resource* the pods on the node request; 0 if no node offers it."""
        return self._row_of(resource, self._table.views.requested)

    def _row_of(self, resource: str, columns: Int64Array) -> Int64Array:
        row = self._table.resources.get(resource)
        if row is None:
            nothing = np.zeros(len(self), dtype=np.int64)
            nothing.setflags(write=False)
            return nothing
        return columns[row] if self.rows is None else columns[row, self.rows]

    @property
    def allocatable(self) -> Int64Array:
        """Shape (resources, nodes): what pods may use."""
        column = self._table.views.allocatable
        return column if self.rows is None else column[:, self.rows]

    @property
    def requested(self) -> Int64Array:
        """Shape (resources, nodes): what the pods on the node request."""
        column = self._table.views.requested
        return column if self.rows is None else column[:, self.rows]

    @property
    def nonzero_requested(self) -> Int64Array:
        """Shape (2, nodes): CPU and memory, counting defaults for containers without requests."""
        column = self._table.views.nonzero_requested
        return column if self.rows is None else column[:, self.rows]

    @property
    def pod_count(self) -> Int64Array:
        """Shape (nodes,): pods on the node."""
        column = self._table.views.pod_count
        return column if self.rows is None else column[self.rows]

    @property
    def allowed_pods(self) -> Int64Array:
        """Shape (nodes,): how many pods the node allows at most."""
        column = self._table.views.allowed_pods
        return column if self.rows is None else column[self.rows]

    @property
    def versions(self) -> Int64Array:
        """Shape (nodes,): a number for the node object and its pods, for plugins that keep what they computed of them.

        A node has another version than before as soon as it, the set of its pods, or one of these pods has changed; no
        two versions of a node have one number, those in the copies that preemption works on included. Two nodes may:
        keep what you computed by the name of the node.
        """
        views = self._table.views
        column: Int64Array = np.maximum(views.node_generation, views.pod_objects_generation)
        return column if self.rows is None else column[self.rows]

    def per_node(self, function: Callable[[NodeView], int]) -> Int64Array:
        """Shape (nodes,): what *function* makes of each node; it is called only for nodes that have another version.

        For what is costly and depends on nothing but the node object and its pods, see `versions`. The values are kept
        for as long as the function is, or for a method its plugin: give the same one every time, not a lambda that is
        made in a hook.

        Raises:
            TypeError: *function* returns no integer, or is no function.
        """
        return self._table.values_per_node.of(function, self.rows, self.versions, self._table.count, self.node)

    # --- node objects -----------------------------------------------------------------------------------------------

    @property
    def unschedulable(self) -> BoolArray:
        """Shape (nodes,): ``spec.unschedulable``."""
        column = self._table.views.unschedulable
        return column if self.rows is None else column[self.rows]

    @property
    def taint_sets(self) -> Int32Array:
        """Shape (nodes,): index into `taint_lists`."""
        column = self._table.views.taint_sets
        return column if self.rows is None else column[self.rows]

    @property
    def taint_lists(self) -> Sequence[tuple[Taint, ...]]:
        """The lists of taints by index; 0 is the empty one, and so are those that no node has any more."""
        return self._table.taint_lists.values

    @property
    def feature_sets(self) -> Int32Array:
        """Shape (nodes,): index into `feature_lists`."""
        column = self._table.views.feature_sets
        return column if self.rows is None else column[self.rows]

    @property
    def feature_lists(self) -> Sequence[tuple[str, ...]]:
        """The lists of declared features by index; 0 is the empty one, and so are those that no node has any more."""
        return self._table.feature_lists.values

    def label_values(self, key: str) -> Int32Array:
        """Shape (nodes,): the value of label *key* as index into ``label_vocabulary(key)``; 0 where it is absent."""
        column = self._table.topology.column(key).ids[: self._table.count]
        return column if self.rows is None else column[self.rows]

    def all_have_label(self, key: str) -> bool:
        """Whether every node of the cluster has the label *key*; if not, these nodes may still all have it."""
        return self._table.topology.has_everywhere(key)

    def label_vocabulary(self, key: str) -> Sequence[str | None]:
        """The values of label *key* by index; None at index 0, "absent", and where no node has the value any more."""
        return self._table.topology.column(key).values.values

    def label_value_id(self, key: str, value: str) -> int | None:
        """The index of *value* in ``label_vocabulary(key)``, or None if no node has it."""
        return self._table.topology.column(key).values.get(value)

    def image_holders(self, name: str) -> tuple[int, int, NDArray[np.intp]]:
        """The size of image *name* in bytes, on how many nodes of the cluster it is, which of these nodes have it."""
        size, rows = self._table.images.get(name)
        return size, len(rows), self._positions(rows)

    # --- devices ----------------------------------------------------------------------------------------------------

    @property
    def devices(self) -> DeviceTable:
        """The devices of all nodes of the cluster, by the names of nodes, and the claims that have them."""
        return self._table.devices

    # --- pods -----------------------------------------------------------------------------------------------------

    def host_port_users(self, protocol: str, port: int) -> list[tuple[int, set[str]]]:
        """Which of these nodes have (*protocol*, *port*) taken, and on which addresses."""
        taken = self._table.host_ports.rows(protocol, port)
        if not taken:
            return []
        if isinstance(self.rows, np.ndarray):
            return [(position, taken[row]) for position, row in enumerate(self._row_numbers()) if row in taken]
        start, stop = self._range()
        return [(row - start, addresses) for row, addresses in taken.items() if start <= row < stop]

    def pod_counts(self, selector: PodSelector) -> Int64Array:
        """Shape (nodes,): how many pods that *selector* matches are on each."""
        per_node = self._table.pod_index.counts(selector).per_node
        return per_node if self.rows is None else per_node[self.rows]

    def domain_counts(self, selector: PodSelector, key: str, nodes: NodeSet | None = None) -> DomainCounts:
        """Pods that *selector* matches, per value of the node label *key*.

        Counted are all nodes of the cluster, whichever of them these are; or those of the set *nodes*.
        """
        return self._table.pod_index.counts(selector).by_domain(key, self._mask(nodes))

    def _mask(self, nodes: NodeSet | None) -> NodeMask | None:
        if nodes is None:
            return None
        return self._table.topology.mask(nodes.key, lambda: nodes.select(NodeColumns(self._table)), texts=nodes.texts)

    def pod_requests(self, selector: PodSelector, resource: str) -> Int64Array:
        """Shape (nodes,): how much of *resource* the pods that *selector* matches request on each.

        In milli-CPU, bytes or counts. Like `pod_counts` it is kept up to date from the first call on, so that a call
        does not look at the pods; pods that are assumed on a node count.
        """
        per_node = self._table.pod_index.sums(selector, resource).per_node
        return per_node if self.rows is None else per_node[self.rows]

    def domain_requests(
        self, selector: PodSelector, resource: str, key: str, nodes: NodeSet | None = None
    ) -> DomainCounts:
        """How much of *resource* the pods that *selector* matches request, per value of the node label *key*.

        Of all nodes of the cluster, or of those of the set *nodes*; see `domain_counts`.
        """
        return self._table.pod_index.sums(selector, resource).by_domain(key, self._mask(nodes))

    def total_requests(self, selector: PodSelector, resource: str) -> int:
        """How much of *resource* the pods that *selector* matches request on all nodes of the cluster together.

        In the dry run of preemption, where columns are those of a copied node, that is what they request on this node:
        there ``add_pod`` and ``remove_pod`` say what is different from before.
        """
        return self._table.pod_index.sums(selector, resource).total

    def terms_about(self, pod: Pod, namespace_labels: Callable[[str], Mapping[str, str]]) -> MatchingTerms:
        """The affinity terms of pods anywhere in the cluster that match *pod*.

        Args:
            pod: a pod without a node.
            namespace_labels: gives the labels of a namespace.
        """
        table = self._table
        found = table.term_index.matching(pod, namespace_labels)
        if not table.unlisted_pods:
            return found
        return without_unlisted(found, pod, table.unlisted_pods.values(), table.row_of, table.topology)

    def claim_users(self, namespace: str, name: str) -> int:
        """How many volumes of pods, on any node of the cluster, are the claim *name*."""
        return self._table.volumes.users(namespace, name)

    def pods_with_disks(self) -> list[tuple[int, list[Pod]]]:
        """Which of these nodes have pods with claims, ephemeral volumes or disks of their own, and those pods."""
        pods, disks = self._table.pods, self._table.volumes.rows
        found = self._sparse(disks)
        return [(position, [pods[row][uid].pod for uid in disks[row]]) for position, row in found]

    def disk_counts(self) -> Int64Array:
        """Shape (nodes,): how many volumes of pods are claims, ephemeral volumes or disks of their own."""
        return self._sparse_counts(self._table.volumes.disks)

    def ephemeral_volume_counts(self) -> Int64Array:
        """Shape (nodes,): how many volumes of pods are ephemeral ones, with a claim that is made for the pod."""
        return self._sparse_counts(self._table.volumes.ephemeral)

    def _sparse_counts(self, counts: Mapping[int, int]) -> Int64Array:
        column = np.zeros(len(self), dtype=np.int64)
        for position, row in self._sparse(counts):
            column[position] = counts[row]
        return column

    def _sparse(self, rows: Collection[int]) -> list[tuple[int, int]]:
        """(position, row) of each of these nodes whose row is in *rows*."""
        if isinstance(self.rows, np.ndarray) or len(self) < len(rows):
            return [(position, row) for position, row in enumerate(self._row_numbers()) if row in rows]
        start, stop = self._range()
        return [(row - start, row) for row in rows if start <= row < stop]

    def _range(self) -> tuple[int, int]:
        """The first row and the one after the last, where the rows are consecutive."""
        return (self.rows.start, self.rows.stop) if isinstance(self.rows, slice) else (0, self._table.count)

    def _positions(self, rows: Sequence[int]) -> NDArray[np.intp]:
        """The positions, among these nodes, of those of *rows* that are among them."""
        wanted = np.array(rows, dtype=np.intp)
        if isinstance(self.rows, np.ndarray):
            return np.flatnonzero(np.isin(self.rows, wanted))
        start, stop = self._range()
        return wanted[(wanted >= start) & (wanted < stop)] - start


class NodeView:
    """One node of the snapshot; read-only."""

    __slots__ = ("_row", "_table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self._table = table
        self._row = row

    @property
    def name(self) -> str:
        """Its name."""
        return self._table.names[self._row]

    @property
    def node(self) -> Node:
        """The object itself."""
        return self._table.nodes[self._row]

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self._table.nodes[self._row].labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self._table.nodes[self._row].annotations

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Its taints."""
        return self._table.nodes[self._row].spec.taints or ()

    @property
    def pods(self) -> list[Pod]:
        """The pods on it, those that are only assumed to be there included."""
        return [pod_info.pod for pod_info in self._table.pods[self._row].values()]

    @property
    def host_ports(self) -> set[HostPort]:
        """The host ports in use on it."""
        return self._table.host_ports.of_row(self._row)

    def label_value_id(self, key: str) -> int:
        """The index of its value in ``label_vocabulary(key)`` of all nodes; 0 if it does not have the label."""
        return int(self._table.topology.column(key).ids[self._row])

    def allocatable(self, resource: str) -> int:
        """How much of *resource* pods may use, in milli-CPU, bytes or counts."""
        row = self._table.resources.get(resource)
        return 0 if row is None else int(self._table.views.allocatable[row, self._row])

    def requested(self, resource: str) -> int:
        """How much of *resource* its pods request."""
        row = self._table.resources.get(resource)
        if row is not None:
            return int(self._table.views.requested[row, self._row])
        pods = self._table.pods[self._row].values()
        return sum(pod_info.resources.requested.amount(resource) for pod_info in pods)
