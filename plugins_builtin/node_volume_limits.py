"""NodeVolumeLimits: a node takes only so many volumes of each CSI driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar

import numpy as np
from attrs import define, field, frozen

from plugins_builtin._csi_translation import (
    PLUGINS,
    InTreePlugin,
    TranslationError,
    in_tree_plugin,
    inline_handle,
    volume_handle,
)
from plugins_builtin._volumes import claim_name, claim_not_found, is_claim, not_owned
from trio_sched.plugin_api import (
    SKIP,
    Action,
    CSIDriver,
    CSINode,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    NodeColumns,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Resource,
    Status,
    StorageClass,
    Verdicts,
    Volume,
    VolumeAttachment,
    failure,
    hookimpl,
    on,
    unresolvable,
    unschedulable,
)

REASON = "node(s) exceed max volume count"

_NAME = "NodeVolumeLimits"
_UNBOUND = "\0unbound/"
"""Begins the handles of volumes that do not exist yet; no driver gives such handles."""

VolumeId = tuple[str, str]
"""Driver and handle: what tells volumes apart."""


class _Problem(Exception):
    """The volumes of a pod cannot be told."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


@frozen
class _Wanted:
    """The volumes that a pod brings to nodes, or why that cannot be told."""

    on_csi_nodes: frozenset[VolumeId] | Status
    """Where there is a CSINode, and volumes of in-tree drivers are those of CSI drivers."""
    elsewhere: frozenset[VolumeId] | Status


@define(eq=False)
class _Kept:
    """Something worked out from the objects of one kind, for as long as these stay as they are."""

    version: int = -1
    limits: Mapping[str, Mapping[str, int]] = field(factory=dict)
    lowest_limits: Mapping[str, int] = field(factory=dict)
    attachments: Mapping[str, list[VolumeAttachment]] = field(factory=dict)


class NodeVolumeLimits:
    """Counts volumes per driver, on the node and of the pod, against what the CSINode says."""

    name: ClassVar[str] = _NAME
    depends_on: ClassVar[frozenset[Input]] = frozenset()  # pods with volumes that count are asked anew
    watches: ClassVar[tuple[str, ...]] = ("PersistentVolume", "StorageClass", "CSIDriver")

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle = handle
        self._drivers_must_run = handle.feature_enabled("VolumeLimitScaling")
        self._csi_nodes = _Kept()
        self._attached = _Kept()

    # --- hooks ------------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Nothing to do without volumes that count."""
        if not _concerns(pod):
            return SKIP
        wanted = [self._wanted(pod, has_csi_node=has_csi_node) for has_csi_node in (True, False)]
        state.write(_NAME, _Wanted(*wanted))
        return None

    def _wanted(self, pod: Pod, *, has_csi_node: bool) -> frozenset[VolumeId] | Status:
        try:
            return frozenset(self._volumes_of(pod, has_csi_node=has_csi_node, is_new=True))
        except _Problem as problem:
            return problem.status

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes must have room for the volumes that are not there yet."""
        wanted: _Wanted = state.read(_NAME)
        statuses: list[Status] = []
        codes = np.zeros(len(nodes), dtype=np.int64)
        for position in self._nodes_to_look_at(wanted, nodes):
            status = self._status_of(nodes, position, wanted)
            if status is not None:
                if status not in statuses:
                    statuses.append(status)
                codes[position] = 1 + statuses.index(status)
        return Verdicts(codes, lambda code: statuses[code - 1], may_fail=True)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """Pods without such volumes are all alike."""
        return None if _concerns(pod) else ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Drivers come to nodes or take more there, volumes leave them, the claim comes."""
        return [
            on(Resource.CSI_NODE, Action.ADD),
            on(Resource.CSI_NODE, Action.UPDATE, _takes_more),
            on(Resource.POD, Action.DELETE, _leaves_volumes),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, is_claim),
            on(Resource.VOLUME_ATTACHMENT, Action.DELETE, _detached),
        ]

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _nodes_to_look_at(self, wanted: _Wanted, nodes: NodeColumns) -> Iterable[int]:
        """The positions of nodes that can fail; for most a glance at the numbers shows that they have room."""
        here = wanted.on_csi_nodes
        if isinstance(here, Status) or isinstance(wanted.elsewhere, Status) or self._drivers_must_run:
            return range(len(nodes))
        if not here:
            return ()
        most = Counter(driver for driver, _handle in here)
        limits, attachments = self._limits(), self._attachments()
        # Counted generously: each volume on the node for each driver. Ephemeral ones may be found to be broken.
        disks, ephemeral = nodes.disk_counts(), nodes.ephemeral_volume_counts()
        busiest = int(disks.max(initial=0)) + max(map(len, attachments.values()), default=0)
        lowest = self._csi_nodes.lowest_limits
        if all(busiest + n <= lowest.get(driver, busiest + n) for driver, n in most.items()):
            return np.flatnonzero(ephemeral).tolist()
        found = []
        here_now, broken = disks.tolist(), ephemeral.tolist()
        for position, name in enumerate(nodes.names):
            limit_of = limits.get(name)
            if not limit_of:
                continue
            there = here_now[position] + len(attachments.get(name, ()))
            if broken[position] or any(there + n > limit_of.get(driver, there + n) for driver, n in most.items()):
                found.append(position)
        return found

    def _status_of(self, nodes: NodeColumns, position: int, wanted: _Wanted) -> Status | None:
        name = nodes.name(position)
        csi_node: CSINode | None = self._handle.object("CSINode", name)
        new = wanted.elsewhere if csi_node is None else wanted.on_csi_nodes
        if isinstance(new, Status):
            return new
        if not new:
            return None
        if self._drivers_must_run:
            missing = self._missing_driver(new, csi_node)
            if missing is not None:
                return unschedulable(f"{missing} CSI driver is not installed on the node")
        limits = self._limits().get(name)
        if csi_node is None or not limits:
            return None
        attached: set[VolumeId] = set()
        try:
            for other in nodes.node(position).pods:
                if other.spec.volumes:
                    attached.update(self._volumes_of(other, has_csi_node=True, is_new=False))
        except _Problem as problem:
            return problem.status
        used = Counter(driver for driver, _handle in attached | self._attached_to(name))
        more = Counter(driver for driver, _handle in new - attached)
        exceeds = any(driver in limits and used[driver] + count > limits[driver] for driver, count in more.items())
        return unschedulable(REASON) if exceeds else None

    def _missing_driver(self, new: Iterable[VolumeId], csi_node: CSINode | None) -> str | None:
        """A driver that must run on a node before pods with its volumes go there, and does not."""
        running = {driver.name for driver in (csi_node.spec.drivers if csi_node is not None else None) or ()}
        for name in sorted({driver for driver, _handle in new} - running):
            known: CSIDriver | None = self._handle.object("CSIDriver", name)
            if known is not None and known.spec.prevent_pod_scheduling_if_missing:
                return name
        return None

    def _limits(self) -> Mapping[str, Mapping[str, int]]:
        """Node name → driver → how many volumes it takes; what takes any number is left out."""
        kept, version = self._csi_nodes, self._handle.version("CSINode")
        if kept.version != version:
            kept.version = version
            kept.limits = {node.metadata.name: _limits_of(node) for node in self._handle.objects("CSINode")}
            lowest: dict[str, int] = {}
            for limits in kept.limits.values():
                for driver, limit in limits.items():
                    lowest[driver] = min(limit, lowest.get(driver, limit))
            kept.lowest_limits = lowest
        return kept.limits

    def _attachments(self) -> Mapping[str, list[VolumeAttachment]]:
        kept, version = self._attached, self._handle.version("VolumeAttachment")
        if kept.version != version:
            kept.version = version
            by_node: dict[str, list[VolumeAttachment]] = {}
            for attachment in self._handle.objects("VolumeAttachment"):
                by_node.setdefault(attachment.spec.node_name, []).append(attachment)
            kept.attachments = by_node
        return kept.attachments

    def _attached_to(self, node_name: str) -> set[VolumeId]:
        """Volumes that are attached to the node, whoever uses them."""
        found = set()
        for attachment in self._attachments().get(node_name, ()):
            name = attachment.spec.source.persistent_volume_name
            volume: PersistentVolume | None = self._handle.object("PersistentVolume", name) if name else None
            source = volume.spec.csi if volume is not None else None
            if attachment.spec.attacher and source is not None and source.driver and source.volume_handle:
                found.add((attachment.spec.attacher, source.volume_handle))
        return found

    # --- volumes ----------------------------------------------------------------------------------------------------

    def _volumes_of(self, pod: Pod, *, has_csi_node: bool, is_new: bool) -> Iterable[VolumeId]:
        """The volumes of *pod* that count on a node.

        Raises:
            _Problem: that cannot be told.
        """
        for volume in pod.spec.volumes or ():
            name = claim_name(pod, volume)
            if name is None:
                found = self._inline(volume) if has_csi_node else None
            else:
                claim = self._claim(pod, volume, name, is_new=is_new)
                found = None if claim is None else self._of_claim(claim, has_csi_node=has_csi_node)
            if found is not None and found[0] and found[1]:
                yield found

    def _claim(self, pod: Pod, volume: Volume, name: str, *, is_new: bool) -> PersistentVolumeClaim | None:
        if not name:
            raise _Problem(failure("PersistentVolumeClaim had no name"))
        claim: PersistentVolumeClaim | None = self._handle.object("PersistentVolumeClaim", name, pod.namespace)
        if claim is None:
            if is_new:
                raise _Problem(unresolvable(f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}"))
            return None
        if volume.ephemeral is not None and volume.persistent_volume_claim is None:
            problem = not_owned(pod, claim)
            if problem is not None:
                raise _Problem(failure(problem))
        return claim

    def _inline(self, volume: Volume) -> VolumeId | None:
        plugin = in_tree_plugin(volume)
        if plugin is None or not plugin.migrated:
            return None
        try:
            return plugin.driver, inline_handle(volume)
        except TranslationError as error:
            raise _Problem(failure(f"converting volume({volume.name}) from inline to csi: {error}")) from error

    def _of_claim(self, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> VolumeId | None:
        name = claim.spec.volume_name
        volume: PersistentVolume | None = self._handle.object("PersistentVolume", name) if name else None
        if volume is None:
            return self._of_class(claim, has_csi_node=has_csi_node)
        if volume.spec.csi is not None:
            return volume.spec.csi.driver, volume.spec.csi.volume_handle
        plugin = in_tree_plugin(volume.spec)
        if plugin is None or not _is_migrated(plugin, has_csi_node):
            return None
        try:
            return plugin.driver, volume_handle(volume)
        except TranslationError:
            return None

    def _of_class(self, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> VolumeId | None:
        """A volume that is still to be made."""
        name = claim.storage_class
        storage_class: StorageClass | None = self._handle.object("StorageClass", name) if name else None
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        plugin = PLUGINS.get(driver)
        if plugin is not None:
            if not _is_migrated(plugin, has_csi_node):
                return None
            driver = plugin.driver
        return driver, _UNBOUND + claim.key


def _is_migrated(plugin: InTreePlugin, has_csi_node: bool) -> bool:
    return has_csi_node and plugin.migrated


def _concerns(pod: Pod) -> bool:
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None or in_tree_plugin(volume):
            return True
    return False


def _limits_of(csi_node: CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _takes_more(pod: Pod, old: CSINode, new: CSINode) -> Hint:
    before = _limits_of(old)
    return Hint.QUEUE if any(n > before.get(driver, 0) for driver, n in _limits_of(new).items()) else Hint.SKIP


def _leaves_volumes(pod: Pod, old: Pod, new: None) -> Hint:
    if not old.node_name and not old.nominated_node_name:
        return Hint.SKIP
    return Hint.QUEUE if _concerns(old) else Hint.SKIP


def _detached(pod: Pod, old: VolumeAttachment, new: None) -> Hint:
    for volume in pod.spec.volumes or ():
        plugin = in_tree_plugin(volume)
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        if plugin is not None and plugin.driver == old.spec.attacher:
            return Hint.QUEUE
    return Hint.SKIP
