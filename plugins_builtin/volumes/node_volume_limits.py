"""NodeVolumeLimits: filters out nodes that would exceed the volume limit of a CSI driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar

import numpy as np
from attrs import define, field, frozen

from plugins_builtin.volumes.csi_translation import (
    PLUGINS,
    InTreePlugin,
    TranslationError,
    in_tree_plugin,
    inline_handle,
    volume_handle,
)
from plugins_builtin.volumes.volume_clauses import claim_clauses, limit_clause
from plugins_builtin.volumes.volumes import claim_name, claim_not_found, is_claim, not_owned
from trio_sched.plugin_api import (
    SKIP,
    Action,
    Clause,
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
from trio_sched.plugin_api.features import Features

REASON = "node(s) exceed max volume count"

_NAME = "NodeVolumeLimits"
_UNBOUND = "\0unbound/"
"""The prefix of the handles of volumes that do not exist yet; no driver's handles have it."""

VolumeId = tuple[str, str]
"""Driver and handle, which identify a volume."""


class _VolumesUnknown(Exception):
    """The volumes of a pod cannot be determined."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


@frozen
class _NewVolumes:
    """The volumes of the pod that count on a node, or why they cannot be determined."""

    with_csi_node: frozenset[VolumeId] | Status
    """On nodes with a CSINode, where volumes of migrated in-tree drivers count as those of CSI drivers."""
    without_csi_node: frozenset[VolumeId] | Status


@define(eq=False)
class _Cached:
    """Values computed from the objects of one kind; valid for one version of that kind."""

    version: int = -1
    limits: Mapping[str, Mapping[str, int]] = field(factory=dict)
    lowest_limits: Mapping[str, int] = field(factory=dict)
    attachments: Mapping[str, list[tuple[str, str]]] = field(factory=dict)
    """Node → attacher and volume; not the objects, which may be deleted long before this is looked at again."""


class NodeVolumeLimits:
    """Compares the volumes per driver, on the node and of the pod, with the limits in the CSINode."""

    name: ClassVar[str] = _NAME
    depends_on: ClassVar[frozenset[Input]] = frozenset()  # answers about pods with volumes that count are not cached
    watches: ClassVar[tuple[str, ...]] = ("PersistentVolume", "StorageClass", "CSIDriver")

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle = handle
        self._drivers_must_run = Features.of(handle.feature_enabled).volume_limit_scaling
        self._csi_nodes = _Cached()
        self._attached = _Cached()

    # --- hooks ------------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Skip without volumes that count."""
        if not _has_countable_volumes(pod):
            return SKIP
        new = [self._new_volumes(pod, has_csi_node=has_csi_node) for has_csi_node in (True, False)]
        state.write(_NAME, _NewVolumes(*new))
        return None

    def _new_volumes(self, pod: Pod, *, has_csi_node: bool) -> frozenset[VolumeId] | Status:
        try:
            return frozenset(self._volumes_of(pod, has_csi_node=has_csi_node, is_new=True))
        except _VolumesUnknown as problem:
            return problem.status

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes fail where the volumes of the pod that are not there yet would exceed a limit."""
        new: _NewVolumes = state.read(_NAME)
        statuses: list[Status] = []
        codes = np.zeros(len(nodes), dtype=np.int64)
        for position in self._nodes_to_check(new, nodes):
            status = self._status_of(nodes, position, new)
            if status is not None:
                if status not in statuses:
                    statuses.append(status)
                codes[position] = 1 + statuses.index(status)
        return Verdicts(codes, lambda code: statuses[code - 1], may_fail=True)

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Claims that the limits cannot be counted for, and the drivers of which nodes would have too many volumes."""
        yield from claim_clauses(pod, self._handle)
        new: _NewVolumes | None = state.get(_NAME)
        if new is None:
            return
        counts: dict[str, dict[int, tuple[int, int, int]]] = {}
        for position in self._nodes_to_check(new, nodes):
            exceeded = self._exceeded(nodes, position, new)
            for driver, found in () if isinstance(exceeded, Status) else exceeded.items():
                counts.setdefault(driver, {})[position] = found
        for driver, of_driver in counts.items():
            fails = np.zeros(len(nodes), dtype=np.bool_)
            fails[list(of_driver)] = True
            yield limit_clause(self._handle, nodes, pod, driver, fails, of_driver)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The same for all pods without volumes that count; the others are not cached."""
        return None if _has_countable_volumes(pod) else ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """CSINodes are added or raise a limit, pods with volumes or attachments are deleted, the claim is added."""
        return [
            on(Resource.CSI_NODE, Action.ADD),
            on(Resource.CSI_NODE, Action.UPDATE, _limit_raised),
            on(Resource.POD, Action.DELETE, _pod_with_volumes_deleted),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, is_claim),
            on(Resource.VOLUME_ATTACHMENT, Action.DELETE, _attachment_deleted),
        ]

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _nodes_to_check(self, new: _NewVolumes, nodes: NodeColumns) -> Iterable[int]:
        """The positions of nodes that can fail; an upper bound of the number of volumes excludes most nodes."""
        with_csi_node = new.with_csi_node
        if isinstance(with_csi_node, Status) or isinstance(new.without_csi_node, Status) or self._drivers_must_run:
            return range(len(nodes))
        if not with_csi_node:
            return ()
        new_by_driver = Counter(driver for driver, _handle in with_csi_node)
        limits, attachments = self._limits(), self._attachments()
        # The upper bound counts each volume on the node for each driver. Nodes with ephemeral volumes are always
        # checked: the claim of such a volume can belong to another pod, which is an error.
        disks, ephemeral = nodes.disk_counts(), nodes.ephemeral_volume_counts()
        highest = int(disks.max(initial=0)) + max(map(len, attachments.values()), default=0)
        lowest = self._csi_nodes.lowest_limits
        if all(highest + n <= lowest.get(driver, highest + n) for driver, n in new_by_driver.items()):
            return np.flatnonzero(ephemeral).tolist()
        found = []
        disk_list, ephemeral_list = disks.tolist(), ephemeral.tolist()
        for position, name in enumerate(nodes.names):
            limit_of = limits.get(name)
            if not limit_of:
                continue
            existing = disk_list[position] + len(attachments.get(name, ()))
            if ephemeral_list[position] or any(
                existing + n > limit_of.get(driver, existing + n) for driver, n in new_by_driver.items()
            ):
                found.append(position)
        return found

    def _status_of(self, nodes: NodeColumns, position: int, volumes: _NewVolumes) -> Status | None:
        exceeded = self._exceeded(nodes, position, volumes)
        if isinstance(exceeded, Status):
            return exceeded
        return unschedulable(REASON) if exceeded else None

    def _exceeded(
        self, nodes: NodeColumns, position: int, volumes: _NewVolumes
    ) -> Mapping[str, tuple[int, int, int]] | Status:
        """The drivers of which the node would have too many volumes → how many it has, how many more, the limit."""
        name = nodes.name(position)
        csi_node: CSINode | None = self._handle.object("CSINode", name)
        new = volumes.without_csi_node if csi_node is None else volumes.with_csi_node
        if isinstance(new, Status):
            return new
        if not new:
            return {}
        if self._drivers_must_run:
            missing = self._missing_driver(new, csi_node)
            if missing is not None:
                return unschedulable(f"{missing} CSI driver is not installed on the node")
        limits = self._limits().get(name)
        if csi_node is None or not limits:
            return {}
        attached: set[VolumeId] = set()
        try:
            for other in nodes.node(position).pods:
                if other.spec.volumes:
                    attached.update(self._volumes_of(other, has_csi_node=True, is_new=False))
        except _VolumesUnknown as problem:
            return problem.status
        used = Counter(driver for driver, _handle in attached | self._attached_to(name))
        more = Counter(driver for driver, _handle in new - attached)
        return {
            driver: (used[driver], count, limits[driver])
            for driver, count in more.items()
            if driver in limits and used[driver] + count > limits[driver]
        }

    def _missing_driver(self, new: Iterable[VolumeId], csi_node: CSINode | None) -> str | None:
        """A driver of *new* that the node lacks, if its CSIDriver prevents pods from being scheduled there."""
        running = {driver.name for driver in (csi_node.spec.drivers if csi_node is not None else None) or ()}
        for name in sorted({driver for driver, _handle in new} - running):
            known: CSIDriver | None = self._handle.object("CSIDriver", name)
            if known is not None and known.spec.prevent_pod_scheduling_if_missing:
                return name
        return None

    def _limits(self) -> Mapping[str, Mapping[str, int]]:
        """Node name → driver → volume limit; drivers without a limit are left out."""
        cached, version = self._csi_nodes, self._handle.version("CSINode")
        if cached.version != version:
            cached.version = version
            cached.limits = {node.metadata.name: _limits_of(node) for node in self._handle.objects("CSINode")}
            lowest: dict[str, int] = {}
            for limits in cached.limits.values():
                for driver, limit in limits.items():
                    lowest[driver] = min(limit, lowest.get(driver, limit))
            cached.lowest_limits = lowest
        return cached.limits

    def _attachments(self) -> Mapping[str, list[tuple[str, str]]]:
        cached, version = self._attached, self._handle.version("VolumeAttachment")
        if cached.version != version:
            cached.version = version
            by_node: dict[str, list[tuple[str, str]]] = {}
            for attachment in self._handle.objects("VolumeAttachment"):
                spec = attachment.spec
                volume = spec.source.persistent_volume_name or ""
                by_node.setdefault(spec.node_name, []).append((spec.attacher, volume))
            cached.attachments = by_node
        return cached.attachments

    def _attached_to(self, node_name: str) -> set[VolumeId]:
        """The CSI volumes that are attached to the node, used by a pod or not."""
        found = set()
        for attacher, name in self._attachments().get(node_name, ()):
            volume: PersistentVolume | None = self._handle.object("PersistentVolume", name) if name else None
            source = volume.spec.csi if volume is not None else None
            if attacher and source is not None and source.driver and source.volume_handle:
                found.add((attacher, source.volume_handle))
        return found

    # --- volumes ----------------------------------------------------------------------------------------------------

    def _volumes_of(self, pod: Pod, *, has_csi_node: bool, is_new: bool) -> Iterable[VolumeId]:
        """The volumes of *pod* that count on a node.

        Raises:
            _VolumesUnknown: they cannot be determined.
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
            raise _VolumesUnknown(failure("PersistentVolumeClaim had no name"))
        claim: PersistentVolumeClaim | None = self._handle.object("PersistentVolumeClaim", name, pod.namespace)
        if claim is None:
            if is_new:
                raise _VolumesUnknown(unresolvable(f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}"))
            return None
        if volume.ephemeral is not None and volume.persistent_volume_claim is None:
            problem = not_owned(pod, claim)
            if problem is not None:
                raise _VolumesUnknown(failure(problem))
        return claim

    def _inline(self, volume: Volume) -> VolumeId | None:
        plugin = in_tree_plugin(volume)
        if plugin is None or not plugin.migrated:
            return None
        try:
            return plugin.driver, inline_handle(volume)
        except TranslationError as error:
            raise _VolumesUnknown(failure(f"converting volume({volume.name}) from inline to csi: {error}")) from error

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
        """The volume that is to be provisioned for *claim*."""
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


def _has_countable_volumes(pod: Pod) -> bool:
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


def _limit_raised(pod: Pod, old: CSINode, new: CSINode) -> Hint:
    before = _limits_of(old)
    return Hint.QUEUE if any(n > before.get(driver, 0) for driver, n in _limits_of(new).items()) else Hint.SKIP


def _pod_with_volumes_deleted(pod: Pod, old: Pod, new: None) -> Hint:
    if not old.node_name and not old.nominated_node_name:
        return Hint.SKIP
    return Hint.QUEUE if _has_countable_volumes(old) else Hint.SKIP


def _attachment_deleted(pod: Pod, old: VolumeAttachment, new: None) -> Hint:
    for volume in pod.spec.volumes or ():
        plugin = in_tree_plugin(volume)
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        if plugin is not None and plugin.driver == old.spec.attacher:
            return Hint.QUEUE
    return Hint.SKIP
