"""The nodes and their pods as columns that follow the cluster change by change.

Rows are dense: a removed node's row is taken by the last one. A log records the row of every change, so that results
computed earlier are brought up to date row by row instead of being computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from attrs import define, field

from trio_sched.objects.node import Node
from trio_sched.objects.node_amounts import node_amounts
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import PodResources, ResourceAmounts
from trio_sched.objects.taint import Taint
from trio_sched.snapshot.arrays import next_capacity, smaller_capacity
from trio_sched.snapshot.change_log import ChangeLog
from trio_sched.snapshot.column_store import ColumnStore, ColumnViews
from trio_sched.snapshot.devices.device_table import DeviceTable
from trio_sched.snapshot.host_ports import HostPortIndex
from trio_sched.snapshot.image_index import ImageIndex
from trio_sched.snapshot.per_node import ValuesPerNode
from trio_sched.snapshot.pod_counts.domain_counts import DomainCountsBudget
from trio_sched.snapshot.pod_counts.pod_classes import class_key
from trio_sched.snapshot.pod_counts.pod_index import PodIndex
from trio_sched.snapshot.pod_counts.term_index import TermIndex
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.snapshot.topology_columns import Topology, TopologyColumns, TopologyRows
from trio_sched.snapshot.unlisted_terms import UnlistedPod
from trio_sched.snapshot.usage_ids import UsageIds
from trio_sched.snapshot.vocabulary import CPU_ROW, EPHEMERAL_STORAGE_ROW, MEMORY_ROW, Vocabulary, resource_vocabulary
from trio_sched.snapshot.volume_index import VolumeIndex

_DISTINCT_COPIES: Final = 1 << 20
_GENERATIONS_OF_A_COPY: Final = 1 << 42


@define(eq=False)
class NodeTable:
    """The mutable side of the snapshot; belongs to the cache. Plugins get `NodeColumns`, which are read-only."""

    resources: Vocabulary[str] = field(factory=resource_vocabulary)
    """Resources that a node offers; what pods request of others has no row, as it fits nowhere."""
    taint_lists: Vocabulary[tuple[Taint, ...]] = field(factory=lambda: Vocabulary((), ()))
    feature_lists: Vocabulary[tuple[str, ...]] = field(factory=lambda: Vocabulary((), ()))
    names: list[str] = field(factory=list)
    nodes: list[Node] = field(factory=list)
    row_of: dict[str, int] = field(factory=dict)
    pods: list[dict[str, PodInfo]] = field(factory=list)
    topology: Topology = field(factory=TopologyColumns)
    host_ports: HostPortIndex = field(factory=HostPortIndex)
    volumes: VolumeIndex = field(factory=VolumeIndex)
    pods_log: ChangeLog = field(factory=ChangeLog)
    """Rows whose pods changed."""
    node_log: ChangeLog = field(factory=ChangeLog)
    """Rows whose node object changed in a way that matters to plugins, and rows that now hold another node."""
    membership_generation: int = 0
    """Counts changes of the set of nodes; while it stays the same, each row holds the same node.

    It grows, too, when ids (of resources, lists of taints, lists of features) get another meaning.
    """
    nodes_generation: int = 0
    """Counts changes of any node object that matter to plugins."""
    devices: DeviceTable = field(factory=DeviceTable)
    """The devices of the nodes, by their names; a copy of rows has the same."""
    unlisted_pods: dict[str, UnlistedPod] = field(factory=dict)
    """By UID, pods that are assumed while their group is tried and whose affinity terms are not all seen."""
    values_per_node: ValuesPerNode = field(factory=ValuesPerNode, init=False)
    """What plugins have computed; a copy of rows begins without."""
    pod_index: PodIndex = field(init=False)
    term_index: TermIndex = field(init=False)
    _is_copy: bool = False
    _images: ImageIndex | None = field(factory=ImageIndex)
    _generation: int = 0
    """Grows with every change of a row; in each copy it begins at another number, so that none occurs twice."""
    _copies: int = 0
    _views: ColumnViews | None = None
    _store: ColumnStore = field(factory=ColumnStore)
    _usage_ids: UsageIds = field(factory=UsageIds)
    _usage_ids_membership: int = -1

    def __attrs_post_init__(self) -> None:
        self._start_indexes()
        if not self._is_copy:
            self.devices.on_change = self._devices_changed

    def _start_indexes(self) -> None:
        budget = DomainCountsBudget()
        self.pod_index = PodIndex(self.topology, budget, self.pods)
        self.term_index = TermIndex(self.topology, budget, self.pods)

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self.names)

    @property
    def views(self) -> ColumnViews:
        """The columns, read-only, with `count` entries each."""
        if self._views is None:
            self._views = self._store.views(self.count, len(self.resources))
        return self._views

    @property
    def images(self) -> ImageIndex:
        """Which row has which images; in a copy indexed when first asked for."""
        if self._images is None:
            self._images = ImageIndex()
            for row, node in enumerate(self.nodes):
                self._images.add(row, node.status.images or ())
        return self._images

    @property
    def usage_ids(self) -> UsageIds:
        """Rows with equal amounts have the same id."""
        if self._usage_ids_membership != self.membership_generation:
            self._usage_ids_membership = self.membership_generation
            self._usage_ids.forget_all(self.count)
        return self._usage_ids

    def usage_ids_of(self, rows: Sequence[int]) -> list[int]:
        """The ids of *rows* in `usage_ids`."""
        return self.usage_ids.of(rows, self._store)

    def copy_of_rows(self, rows: Sequence[int]) -> NodeTable:
        """An independent table with copies of *rows*, in that order; its ids mean the same as here."""
        self._copies += 1
        copy = NodeTable(
            resources=self.resources,
            taint_lists=self.taint_lists,
            feature_lists=self.feature_lists,
            names=[self.names[row] for row in rows],
            nodes=[self.nodes[row] for row in rows],
            pods=[self.pods[row].copy() for row in rows],
            topology=TopologyRows(self._labels, rows),
            devices=self.devices,
            is_copy=True,
            generation=(1 + self._copies % _DISTINCT_COPIES) * _GENERATIONS_OF_A_COPY,
            images=None,
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
            The row of the copy.
        """
        node = source.nodes[row]
        if target is None:
            target = self.count
            self._make_room_for(target)
            self.names.append(node.name)
            self.nodes.append(node)
            self.pods.append({})
            self.row_of[node.name] = target
            assert isinstance(self.topology, TopologyRows)
            self.topology.add(row)
        else:
            self.nodes[target] = node
        self.pods[target] = source.pods[row].copy()
        self._views = None
        self._store.copy(source.views, row, target)
        self.host_ports.remove(target, self.host_ports.of_row(target))
        self.host_ports.add(target, source.host_ports.of_row(row))
        self.volumes.copy_row(source.volumes, row, target)
        self._images = None
        self._start_indexes()
        return target

    # --- nodes ----------------------------------------------------------------------------------------------------

    def add_node(self, node: Node, pods: Iterable[PodInfo] = ()) -> None:
        """Add *node*, which is not in the table; *pods* are already on it.

        Raises:
            QuantityError: its resources are unreadable; nothing was changed.
        """
        amounts = node_amounts(node)
        row = self.count
        self._make_room_for(row)
        self.names.append(node.name)
        self.nodes.append(node)
        self.row_of[node.name] = row
        self.pods.append({})
        self._views = None
        self._labels.add(node.labels)
        self._write_node(row, node, amounts)
        self.images.add(row, node.status.images or ())
        for pod_info in pods:
            self.add_pod(row, pod_info)
        self._membership_changed(row)

    def update_node(self, node: Node) -> bool:
        """The node has changed; returns whether that can matter to a plugin.

        Raises:
            QuantityError: its resources are unreadable; nothing was changed.
        """
        row = self.row_of[node.name]
        old = self.nodes[row]
        if not _matters(old, node):
            self.nodes[row] = node
            return False
        amounts = node_amounts(node)
        self.nodes[row] = node
        if (old.status.images or ()) != (node.status.images or ()):
            # New first: a name that both lists have keeps the size it was first reported with.
            self.images.add(row, node.status.images or ())
            self.images.remove(row, _image_names(old) - _image_names(node))
        if old.metadata.labels != node.metadata.labels or old.spec != node.spec:
            self._labels.update(row, node.labels)
        self._write_node(row, node, amounts)
        self._node_changed(row)
        return True

    def remove_node(self, name: str) -> list[PodInfo]:
        """The node is gone; returns the pods that were on it."""
        row = self.row_of.pop(name)
        pods = list(self.pods[row].values())
        self._labels.remove(row)  # first: counts per domain are outdated then, and not changed pod by pod below
        for pod_info in pods:
            self.pod_index.remove(row, pod_info.pod, pod_info.resources.requested)
            self.term_index.remove(row, pod_info.pod)
        self.images.remove(row, _image_names(self.nodes[row]))
        self.host_ports.remove(row, self.host_ports.of_row(row))
        for pod_info in pods:
            self.volumes.remove(row, pod_info.pod)
        self._release_ids(row)
        self.devices.forget_node(name)
        last = self.count - 1
        if row != last:
            self._move_row(last, row)
        for per_row in (self.names, self.nodes, self.pods):
            per_row.pop()
        self._store.clear(last)
        self._store.resize(smaller_capacity(self._store.capacity, last))
        self._compact()
        self._membership_changed(row if row != last else None)
        return pods

    def _move_row(self, source: int, target: int) -> None:
        self.images.add(target, self.nodes[source].status.images or ())
        self.images.remove(source, _image_names(self.nodes[source]))
        self.host_ports.move(source, target)
        for pod_info in self.pods[source].values():
            self.pod_index.remove(source, pod_info.pod, pod_info.resources.requested)
            self.pod_index.add(target, pod_info.pod, pod_info.resources.requested)
            self.term_index.remove(source, pod_info.pod)
            self.term_index.add(target, pod_info.pod)
        self.volumes.move(source, target)
        self.names[target] = self.names[source]
        self.nodes[target] = self.nodes[source]
        self.pods[target] = self.pods[source]
        self.row_of[self.names[target]] = target
        self._store.move(source, target)

    def _write_node(self, row: int, node: Node, has: tuple[ResourceAmounts, int]) -> None:
        amounts, allowed_pods = has
        scalars = {name: amount for name, amount in amounts.scalars if amount}
        new = frozenset(name for name in scalars if self.resources.get(name) is None)
        rows = {self.resources.acquire(name): amount for name, amount in scalars.items()}
        taints = self.taint_lists.acquire(node.spec.taints or ())
        features = self.feature_lists.acquire(node.status.declared_features or ())
        self._release_ids(row)  # what it had before; only now, so that ids of what stays are not given to others
        self._store.make_room_for(len(self.resources))
        allocatable = self._store.allocatable
        allocatable[:, row] = 0
        allocatable[CPU_ROW, row] = amounts.cpu_milli
        allocatable[MEMORY_ROW, row] = amounts.memory_bytes
        allocatable[EPHEMERAL_STORAGE_ROW, row] = amounts.ephemeral_storage_bytes
        for resource, amount in rows.items():
            allocatable[resource, row] = amount
        self._store.allowed_pods[row] = allowed_pods
        self._store.unschedulable[row] = node.spec.unschedulable
        self._store.taint_sets[row] = taints
        self._store.feature_sets[row] = features
        self._views = None
        if new:
            self._count_requests_of(new)
            self._usage_ids_membership = -1
        self._compact()

    def _count_requests_of(self, names: frozenset[str]) -> None:
        """Count what pods request of resources that have just got a row."""
        for row, pods in enumerate(self.pods):
            for pod_info in pods.values():
                for name, amount in pod_info.resources.requested.scalars:
                    if name in names:
                        self._store.requested[self.resources.get(name), row] += amount

    def _release_ids(self, row: int) -> None:
        """The node at *row* does not use its resources, its taints and its features any more."""
        store, is_free = self._store, False
        for resource in np.flatnonzero(store.allocatable[EPHEMERAL_STORAGE_ROW + 1 :, row]).tolist():
            freed = EPHEMERAL_STORAGE_ROW + 1 + resource
            if self.resources.release(freed):
                store.requested[freed] = 0
                is_free = True
        is_free |= self.taint_lists.release(int(store.taint_sets[row]))
        is_free |= self.feature_lists.release(int(store.feature_sets[row]))
        if is_free:
            self.membership_generation += 1

    def _compact(self) -> None:
        """Give new ids where most are free."""
        store, count = self._store, self.count
        if self.resources.is_sparse:
            store.renumber_resources(self.resources.compact())
            self.membership_generation += 1
        for vocabulary, column in ((self.taint_lists, store.taint_sets), (self.feature_lists, store.feature_sets)):
            if vocabulary.is_sparse:
                column[:count] = vocabulary.compact()[column[:count]]
                self.membership_generation += 1
        self._views = None

    def _make_room_for(self, row: int) -> None:
        if row >= self._store.capacity:
            self._store.resize(next_capacity(self._store.capacity))

    @property
    def _labels(self) -> TopologyColumns:
        """The topology of a table that is no copy."""
        assert isinstance(self.topology, TopologyColumns)
        return self.topology

    # --- pods -----------------------------------------------------------------------------------------------------

    def add_pod(self, row: int, pod_info: PodInfo) -> None:
        """*pod_info* is on the node at *row* now."""
        self.pods[row][pod_info.pod.uid] = pod_info
        self._count_pod(row, pod_info.resources, 1)
        if pod_info.resources.host_ports:
            self.host_ports.add(row, pod_info.resources.host_ports)
        self.pod_index.add(row, pod_info.pod, pod_info.resources.requested)
        self.term_index.add(row, pod_info.pod)
        if pod_info.pod.spec.volumes:
            self.volumes.add(row, pod_info.pod)

    def remove_pod(self, row: int, uid: str) -> PodInfo:
        """The pod *uid* is on the node at *row* no longer."""
        pod_info = self.pods[row].pop(uid)
        self._count_pod(row, pod_info.resources, -1)
        if pod_info.resources.host_ports:
            self.host_ports.remove(row, pod_info.resources.host_ports)
        self.pod_index.remove(row, pod_info.pod, pod_info.resources.requested)
        self.term_index.remove(row, pod_info.pod)
        if pod_info.pod.spec.volumes:
            self.volumes.remove(row, pod_info.pod)
        return pod_info

    def sums_are_right(self, row: int, pods: Sequence[PodResources]) -> bool:
        """Whether the columns of *row* are the sums over *pods*."""
        requested = np.zeros(len(self.resources), dtype=np.int64)
        for resources in pods:
            for name, amount in resources.requested.amounts():
                resource = self.resources.get(name)
                if resource is not None:
                    requested[resource] += amount
        views = self.views
        nonzero = (sum(one.nonzero_cpu_milli for one in pods), sum(one.nonzero_memory_bytes for one in pods))
        return (
            len(pods) == views.pod_count[row]
            and nonzero == tuple(views.nonzero_requested[:, row])
            and bool(np.array_equal(requested, views.requested[:, row]))
        )

    def update_pod(self, row: int, pod_info: PodInfo, pod: Pod) -> None:
        """*pod_info* is now *pod*, another version of the same pod with the same resources."""
        old, pod_info.pod = pod_info.pod, pod
        self._generation += 1
        self._store.pod_objects_generation[row] = self._generation
        before, after = old.metadata, pod.metadata
        is_same_class = before.labels is after.labels and before.deletion_timestamp == after.deletion_timestamp
        if not is_same_class and class_key(old) != class_key(pod):
            self.pod_index.remove(row, old, pod_info.resources.requested)
            self.pod_index.add(row, pod, pod_info.resources.requested)
        if old.spec.affinity != pod.spec.affinity:
            self.term_index.remove(row, old)
            self.term_index.add(row, pod)

    def _count_pod(self, row: int, resources: PodResources, sign: int) -> None:
        requested = resources.requested
        self._store.requested[CPU_ROW, row] += sign * requested.cpu_milli
        self._store.requested[MEMORY_ROW, row] += sign * requested.memory_bytes
        if requested.ephemeral_storage_bytes:
            self._store.requested[EPHEMERAL_STORAGE_ROW, row] += sign * requested.ephemeral_storage_bytes
        for name, amount in requested.scalars:
            resource = self.resources.get(name)
            if resource is not None:
                self._store.requested[resource, row] += sign * amount
        self._store.nonzero_requested[0, row] += sign * resources.nonzero_cpu_milli
        self._store.nonzero_requested[1, row] += sign * resources.nonzero_memory_bytes
        self._store.pod_count[row] += sign
        self._usage_ids.count_pod(row, resources, sign)
        self.pods_log.append(row)
        self._generation += 1
        self._store.pods_generation[row] = self._store.pod_objects_generation[row] = self._generation

    # --- bookkeeping ------------------------------------------------------------------------------------------------

    def _devices_changed(self, node_name: str | None) -> None:
        """Results about devices are to be computed again: for one node, or for all."""
        if node_name is None:
            self.membership_generation += 1
            return
        row = self.row_of.get(node_name)
        if row is not None:
            self.pods_log.append(row)
            self._generation += 1
            self._store.pods_generation[row] = self._generation

    def _node_changed(self, row: int) -> None:
        self.node_log.append(row)
        self._usage_ids.forget(row)
        self.nodes_generation += 1
        self._generation += 1
        self._store.node_generation[row] = self._generation

    def _membership_changed(self, row: int | None) -> None:
        self.membership_generation += 1
        if row is None:
            self.nodes_generation += 1
        else:
            self._node_changed(row)
            self.pods_log.append(row)
            self._store.pods_generation[row] = self._store.pod_objects_generation[row] = self._generation


def _matters(old: Node, new: Node) -> bool:
    """Whether the difference can change a plugin's result: columns show most fields, per-node hooks see the object.

    Timestamps of heartbeats are not decoded, so most updates of a node do not matter.
    """
    return (
        old.status != new.status
        or old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.metadata.annotations != new.metadata.annotations
    )


def _image_names(node: Node) -> set[str]:
    return {name for image in node.status.images or () for name in image.names or ()}
