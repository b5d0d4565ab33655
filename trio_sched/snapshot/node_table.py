"""The nodes and their pods as columns that follow the cluster change by change.

Rows are dense: a removed node's row is taken by the last one. Every change is noted in a log, by row, so that answers
computed earlier catch up instead of being computed again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from attrs import define, field

from trio_sched.objects.node import Node
from trio_sched.objects.node_amounts import node_amounts
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import PodUsage, ResourceAmounts
from trio_sched.objects.taint import Taint
from trio_sched.snapshot.affinity_terms import TermIndex
from trio_sched.snapshot.change_log import ChangeLog
from trio_sched.snapshot.column_store import ColumnStore, ColumnViews, longer
from trio_sched.snapshot.domain_counts import NodeSet
from trio_sched.snapshot.host_ports import HostPortIndex
from trio_sched.snapshot.image_index import ImageIndex
from trio_sched.snapshot.node_columns import ABSENT, BoolArray, Int32Array, NodeColumns
from trio_sched.snapshot.pod_index import PodIndex, class_key
from trio_sched.snapshot.vocabulary import CPU_ROW, EPHEMERAL_STORAGE_ROW, MEMORY_ROW, Interner, resource_vocabulary
from trio_sched.snapshot.volume_index import VolumeIndex

_FIRST_CAPACITY = 64
_MOST_NODE_SETS = 512


@define(eq=False, slots=True)
class PlacedPod:
    """A pod on a node, with what it takes from it."""

    pod: Pod
    usage: PodUsage


class LabelColumn:
    """The values of one label key over all nodes; id 0 is "absent"."""

    __slots__ = ("ids", "values")

    def __init__(self, capacity: int, values: Interner[str | None]) -> None:
        self.values = values
        self.ids: Int32Array = np.zeros(capacity, dtype=np.int32)


@define(eq=False)
class NodeTable:
    """The mutable side of the snapshot; belongs to the cache. Plugins get `columns`, which cannot be written to."""

    resources: Interner[str] = field(factory=resource_vocabulary)
    taint_lists: Interner[tuple[Taint, ...]] = field(factory=lambda: Interner(()))
    feature_lists: Interner[tuple[str, ...]] = field(factory=lambda: Interner(()))
    names: list[str] = field(factory=list)
    nodes: list[Node] = field(factory=list)
    row_of: dict[str, int] = field(factory=dict)
    pods: list[dict[str, PlacedPod]] = field(factory=list)
    host_ports: HostPortIndex = field(factory=HostPortIndex)
    volumes: VolumeIndex = field(factory=VolumeIndex)
    usage_log: ChangeLog = field(factory=ChangeLog)
    """Rows whose pods changed."""
    node_log: ChangeLog = field(factory=ChangeLog)
    """Rows whose node object changed in a way that matters to plugins, and rows that now hold another node."""
    membership_generation: int = 0
    """Counts how often the set of nodes changed; rows stand for the same nodes while it stays the same."""
    nodes_generation: int = 0
    """Counts changes of any node object that matter to plugins."""
    topology_generation: int = 0
    """Counts changes of which nodes there are, and of their labels and taints: what topology domains are made of."""
    label_vocabularies: dict[str, Interner[str | None]] = field(factory=dict)
    """The values of each label key that somebody asked for."""
    pod_index: PodIndex = field(init=False)
    term_index: TermIndex = field(init=False)
    _images: ImageIndex | None = field(factory=ImageIndex)
    _generation: int = 0
    _capacity: int = 0
    _views: ColumnViews | None = None
    _labels: dict[str, LabelColumn] = field(factory=dict)
    _everywhere: dict[str, tuple[int, bool]] = field(factory=dict)
    _node_sets: dict[Hashable, tuple[int, BoolArray]] = field(factory=dict)
    _store: ColumnStore = field(factory=ColumnStore)

    def __attrs_post_init__(self) -> None:
        self.pod_index, self.term_index = PodIndex(self), TermIndex(self)

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self.names)

    @property
    def capacity(self) -> int:
        """How many nodes fit before the columns have to grow."""
        return self._capacity

    @property
    def columns(self) -> NodeColumns:
        """All nodes, as plugins see them."""
        return NodeColumns(self)

    @property
    def views(self) -> ColumnViews:
        """The columns, read-only, cut to `count`."""
        views = self._views
        # A what-if copy shares the vocabulary and may have met a resource that nobody here has.
        if views is None or len(views.allocatable) < len(self.resources.values):
            views = self._views = self._store.views(self.count, len(self.resources))
        return views

    @property
    def images(self) -> ImageIndex:
        """Which row has which images; of a copy only made when somebody asks."""
        if self._images is None:
            self._images = ImageIndex()
            for row, node in enumerate(self.nodes):
                self._images.add(row, node.status.images or ())
        return self._images

    def copy_of_rows(self, rows: Sequence[int]) -> NodeTable:
        """A table of its own with copies of *rows*, in that order; its ids mean the same as here."""
        copy = NodeTable(
            resources=self.resources,
            taint_lists=self.taint_lists,
            feature_lists=self.feature_lists,
            label_vocabularies=self.label_vocabularies,
            names=[self.names[row] for row in rows],
            nodes=[self.nodes[row] for row in rows],
            pods=[self.pods[row].copy() for row in rows],
            images=None,
            capacity=len(rows),
            store=ColumnStore.of_rows(self.views, np.array(rows, dtype=np.intp)),
        )
        copy.row_of = {name: row for row, name in enumerate(copy.names)}
        for target, row in enumerate(rows):
            copy.host_ports.add(target, self.host_ports.of_row(row))
            copy.volumes.copy_row(self.volumes, row, target)
        return copy

    def copy_row(self, source: NodeTable, row: int, target: int | None = None) -> int:
        """Make *target* (a new row, unless it is given) a copy of *row* of the table this one is a copy of.

        Returns:
            Where the copy stands.
        """
        node = source.nodes[row]
        if target is None:
            target = self.count
            if target >= self._capacity:
                self._grow_nodes()
            self.names.append(node.name)
            self.nodes.append(node)
            self.pods.append({})
            self.row_of[node.name] = target
        self.nodes[target] = node
        self.pods[target] = source.pods[row].copy()
        self._views = None
        self._store.copy(source.views, row, target)
        for key, column in self._labels.items():
            column.ids[target] = column.values.intern(node.labels.get(key))
        self.host_ports.remove(target, self.host_ports.of_row(target))
        self.host_ports.add(target, source.host_ports.of_row(row))
        self.volumes.copy_row(source.volumes, row, target)
        self.pod_index, self.term_index, self._images = PodIndex(self), TermIndex(self), None
        self.topology_generation += 1
        return target

    # --- nodes ----------------------------------------------------------------------------------------------------

    def add_node(self, node: Node, pods: Iterable[PlacedPod] = ()) -> None:
        """A node that was not there; *pods* are already on it.

        Raises:
            QuantityError: its resources are unreadable; nothing was changed.
        """
        amounts = node_amounts(node)
        row = self.count
        self.topology_generation += 1
        if row >= self._capacity:
            self._grow_nodes()
        self.names.append(node.name)
        self.nodes.append(node)
        self.row_of[node.name] = row
        self.pods.append({})
        self._views = None
        self._store.clear_usage(row)
        self._write_node(row, node, amounts)
        self.images.add(row, node.status.images or ())
        for placed in pods:
            self.add_pod(row, placed)
        self._membership_changed(row)

    def update_node(self, node: Node) -> bool:
        """The node has changed; returns whether that can matter to a plugin.

        Raises:
            QuantityError: its resources are unreadable; nothing was changed.
        """
        amounts = node_amounts(node)
        row = self.row_of[node.name]
        old = self.nodes[row]
        self.nodes[row] = node
        if not _matters(old, node):
            return False
        if (old.status.images or ()) != (node.status.images or ()):
            # New first: a name that stays keeps the size it was first reported with.
            self.images.add(row, node.status.images or ())
            self.images.remove(row, _image_names(old) - _image_names(node))
        if old.metadata.labels != node.metadata.labels or old.spec != node.spec:
            self.topology_generation += 1
        self._write_node(row, node, amounts)
        self._node_changed(row)
        return True

    def remove_node(self, name: str) -> list[PlacedPod]:
        """The node is gone; returns the pods that were on it."""
        row = self.row_of.pop(name)
        pods = list(self.pods[row].values())
        self.topology_generation += 1
        for placed in pods:
            self.pod_index.remove(row, placed.pod)
            self.term_index.remove(row, placed.pod)
        self.images.remove(row, _image_names(self.nodes[row]))
        self.host_ports.remove(row, self.host_ports.of_row(row))
        for placed in pods:
            self.volumes.remove(row, placed.pod)
        last = self.count - 1
        if row != last:
            self._move_row(last, row)
        for per_row in (self.names, self.nodes, self.pods):
            per_row.pop()
        self._views = None
        self._membership_changed(row if row != last else None)
        return pods

    def _move_row(self, source: int, target: int) -> None:
        self.images.add(target, self.nodes[source].status.images or ())
        self.images.remove(source, _image_names(self.nodes[source]))
        self.host_ports.move(source, target)
        for placed in self.pods[source].values():
            for index in (self.pod_index, self.term_index):
                index.remove(source, placed.pod)
                index.add(target, placed.pod)
        self.volumes.move(source, target)
        self.names[target] = self.names[source]
        self.nodes[target] = self.nodes[source]
        self.pods[target] = self.pods[source]
        self.row_of[self.names[target]] = target
        self._store.move(source, target)
        for labels in self._labels.values():
            labels.ids[target] = labels.ids[source]

    def _write_node(self, row: int, node: Node, has: tuple[ResourceAmounts, int]) -> None:
        amounts, allowed_pods = has
        self._store.allocatable[:, row] = 0
        for resource, amount in self._rows_of(amounts):
            self._store.allocatable[resource, row] = amount
        self._store.allowed_pods[row] = allowed_pods
        self._store.unschedulable[row] = node.spec.unschedulable
        self._store.taint_sets[row] = self.taint_lists.intern(node.spec.taints or ())
        self._store.feature_sets[row] = self.feature_lists.intern(node.status.declared_features or ())
        for key, column in self._labels.items():
            column.ids[row] = column.values.intern(node.labels.get(key))

    def label_column(self, key: str) -> LabelColumn:
        """The column of label *key*, made when somebody first asks for it and kept up to date from then on."""
        column = self._labels.get(key)
        if column is None:
            values = self.label_vocabularies.get(key)
            if values is None:
                values = self.label_vocabularies[key] = Interner(None)
            column = self._labels[key] = LabelColumn(self._capacity, values)
            for row, node in enumerate(self.nodes):
                column.ids[row] = column.values.intern(node.labels.get(key))
        return column

    def has_everywhere(self, key: str) -> bool:
        """Whether every node has the label *key*."""
        found = self._everywhere.get(key)
        if found is None or found[0] != self.topology_generation:
            present = self.label_column(key).ids[: self.count] != ABSENT
            found = self._everywhere[key] = (self.topology_generation, bool(present.all()))
        return found[1]

    def node_set(self, wanted: NodeSet) -> BoolArray:
        """Shape (capacity,): which rows are in the set; looked at again when nodes come, go, or change."""
        found = self._node_sets.get(wanted.key)
        if found is not None and found[0] == self.topology_generation:
            return found[1]
        if len(self._node_sets) >= _MOST_NODE_SETS:
            self._node_sets.clear()
        members = np.zeros(self._capacity, dtype=np.bool_)
        members[: self.count] = wanted.select(self.columns)
        self._node_sets[wanted.key] = (self.topology_generation, members)
        return members

    # --- pods -----------------------------------------------------------------------------------------------------

    def add_pod(self, row: int, placed: PlacedPod) -> None:
        """*placed* is on the node at *row* now."""
        self.pods[row][placed.pod.uid] = placed
        self._count_pod(row, placed.usage, 1)
        if placed.usage.host_ports:
            self.host_ports.add(row, placed.usage.host_ports)
        self.pod_index.add(row, placed.pod)
        self.term_index.add(row, placed.pod)
        if placed.pod.spec.volumes:
            self.volumes.add(row, placed.pod)

    def remove_pod(self, row: int, uid: str) -> PlacedPod:
        """The pod *uid* is on the node at *row* no longer."""
        placed = self.pods[row].pop(uid)
        self._count_pod(row, placed.usage, -1)
        if placed.usage.host_ports:
            self.host_ports.remove(row, placed.usage.host_ports)
        self.pod_index.remove(row, placed.pod)
        self.term_index.remove(row, placed.pod)
        if placed.pod.spec.volumes:
            self.volumes.remove(row, placed.pod)
        return placed

    def update_pod(self, row: int, placed: PlacedPod, pod: Pod) -> None:
        """*placed* is another version of the pod now, which takes the same from the node."""
        old, placed.pod = placed.pod, pod
        if class_key(old) != class_key(pod):
            self.pod_index.remove(row, old)
            self.pod_index.add(row, pod)
        if old.spec.affinity != pod.spec.affinity:
            self.term_index.remove(row, old)
            self.term_index.add(row, pod)

    def _count_pod(self, row: int, usage: PodUsage, sign: int) -> None:
        requested = usage.requested
        self._store.requested[CPU_ROW, row] += sign * requested.cpu_milli
        self._store.requested[MEMORY_ROW, row] += sign * requested.memory_bytes
        if requested.ephemeral_storage_bytes:
            self._store.requested[EPHEMERAL_STORAGE_ROW, row] += sign * requested.ephemeral_storage_bytes
        for name, amount in requested.scalars:
            resource = self._resource_row(name)
            self._store.requested[resource, row] += sign * amount
        self._store.nonzero_requested[0, row] += sign * usage.nonzero_cpu_milli
        self._store.nonzero_requested[1, row] += sign * usage.nonzero_memory_bytes
        self._store.pod_count[row] += sign
        self.usage_log.append(row)
        self._generation += 1
        self._store.usage_generation[row] = self._generation

    # --- bookkeeping ------------------------------------------------------------------------------------------------

    def _rows_of(self, amounts: ResourceAmounts) -> list[tuple[int, int]]:
        return [
            (CPU_ROW, amounts.cpu_milli),
            (MEMORY_ROW, amounts.memory_bytes),
            (EPHEMERAL_STORAGE_ROW, amounts.ephemeral_storage_bytes),
            *((self._resource_row(name), amount) for name, amount in amounts.scalars),
        ]

    def _resource_row(self, name: str) -> int:
        row = self.resources.get(name)
        if row is None:
            row = self.resources.intern(name)
            self._views = None
        if row >= len(self._store.allocatable):  # a copy's vocabulary may know more than its columns hold
            self._store.make_room_for(row + 1)
            self._views = None
        return row

    def _node_changed(self, row: int) -> None:
        self.node_log.append(row)
        self.nodes_generation += 1
        self._generation += 1
        self._store.node_generation[row] = self._generation

    def _membership_changed(self, row: int | None) -> None:
        self.membership_generation += 1
        if row is None:
            self.nodes_generation += 1
        else:
            self._node_changed(row)
            self.usage_log.append(row)
            self._store.usage_generation[row] = self._generation

    def _grow_nodes(self) -> None:
        self._capacity = capacity = max(_FIRST_CAPACITY, 2 * self._capacity)
        self._store.grow(capacity)
        for column in self._labels.values():
            column.ids = longer(column.ids, capacity)


def _matters(old: Node, new: Node) -> bool:
    """Whether a plugin could answer something else: columns show most of it, per-node hooks see the whole object.

    Timestamps of heartbeats are not among what is decoded, so most updates of a node do not matter.
    """
    return (
        old.status != new.status
        or old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.metadata.annotations != new.metadata.annotations
    )


def _image_names(node: Node) -> set[str]:
    return {name for image in node.status.images or () for name in image.names or ()}
