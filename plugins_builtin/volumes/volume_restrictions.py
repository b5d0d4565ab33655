"""VolumeRestrictions: disks that can be mounted once on a node, and ReadWriteOncePod claims."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import ClassVar

import numpy as np
from attrs import define

from plugins_builtin.volumes.volume_clauses import claim_clauses, disk_clause, in_use_clause
from plugins_builtin.volumes.volumes import claim_not_found, is_claim_by_name, named_claims
from trio_sched.plugin_api import (
    SKIP,
    Action,
    Clause,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    NodeColumns,
    NodeView,
    PersistentVolumeClaim,
    Pod,
    Resource,
    Status,
    Verdicts,
    Volume,
    hookimpl,
    on,
    unresolvable,
    unschedulable,
)

REASON_DISK = "node(s) had no available disk"
REASON_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

_READ_WRITE_ONCE_POD = "ReadWriteOncePod"
_NAME = "VolumeRestrictions"
_OK, _DISK, _IN_USE = 0, 1, 2
_STATUSES = {_DISK: unschedulable(REASON_DISK), _IN_USE: unschedulable(REASON_IN_USE)}


@define(eq=False)
class _PreFilterState:
    """The ReadWriteOncePod claims of the pod, and how many references to them existing pods have.

    Source: preFilterState of kube-scheduler's VolumeRestrictions.
    """

    read_write_once_pod_claims: frozenset[str]
    conflicting_references: int

    def clone(self) -> _PreFilterState:
        return _PreFilterState(self.read_write_once_pod_claims, self.conflicting_references)

    def update(self, pod: Pod, multiplier: int) -> None:
        # Pods of other namespaces count too: kube-scheduler compares the names only.
        self.conflicting_references += multiplier * sum(
            name in self.read_write_once_pod_claims for name in named_claims(pod)
        )


class VolumeRestrictions:
    """Filters out nodes where a disk of the pod is mounted, and all nodes while a ReadWriteOncePod claim is in use."""

    name: ClassVar[str] = _NAME
    depends_on: ClassVar[frozenset[Input]] = frozenset()  # answers about pods with disks or claims are not cached

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle = handle

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Skip unless the pod has such a disk, or an existing pod uses one of its ReadWriteOncePod claims."""
        if not _has_disk_or_claim(pod):
            return SKIP
        read_write_once_pod_claims = set()
        for name in named_claims(pod):
            claim: PersistentVolumeClaim | None = self._handle.object("PersistentVolumeClaim", name, pod.namespace)
            if claim is None:
                return unresolvable(claim_not_found(name))
            if _READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                read_write_once_pod_claims.add(name)
        conflicts = sum(nodes.claim_users(pod.namespace, name) > 0 for name in read_write_once_pod_claims)
        if not conflicts and not _disks(pod):
            return SKIP
        state.write(_NAME, _PreFilterState(frozenset(read_write_once_pod_claims), conflicts))
        return None

    @hookimpl
    def add_pod(self, pod: Pod, added: Pod, node: NodeView, state: CycleState) -> None:
        """Count the references of *added*."""
        state.read(_NAME).update(added, 1)

    @hookimpl
    def remove_pod(self, pod: Pod, removed: Pod, node: NodeView, state: CycleState) -> None:
        """Do not count the references of *removed*."""
        state.read(_NAME).update(removed, -1)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes with a pod that has the same disk fail; all nodes fail if a ReadWriteOncePod claim is in use."""
        pre_filtered: _PreFilterState = state.read(_NAME)
        codes = np.full(len(nodes), _IN_USE if pre_filtered.conflicting_references > 0 else _OK, dtype=np.int64)
        if _disks(pod):
            wanted = _WantedDisks.of(pod)
            for position, existing in nodes.pods_with_disks():
                if any(map(wanted.conflict_with, existing)):
                    codes[position] = _DISK
        return Verdicts(codes, _STATUSES.__getitem__)

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each claim that does not exist or is in use by another pod, and disks that are mounted."""
        yield from claim_clauses(pod, self._handle)
        pre_filtered: _PreFilterState | None = state.get(_NAME)
        if pre_filtered is None:
            return
        for name in sorted(pre_filtered.read_write_once_pod_claims):
            if nodes.claim_users(pod.namespace, name):
                yield in_use_clause(self._handle, nodes, pod, name)
        if _disks(pod):
            wanted = _WantedDisks.of(pod)
            fails = np.zeros(len(nodes), dtype=np.bool_)
            for position, existing in nodes.pods_with_disks():
                fails[position] = any(map(wanted.conflict_with, existing))
            yield disk_clause(nodes, fails, wanted.conflict_with)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The same for all pods without disks and claims; the others are not cached."""
        return None if _has_disk_or_claim(pod) else ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A pod with a conflicting disk or claim is deleted, a node is added, the claim is added."""
        return [
            on(Resource.POD, Action.DELETE, _conflicting_pod_deleted),
            on(Resource.NODE, Action.ADD),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, is_claim_by_name),
        ]


def _is_disk(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.iscsi is not None
        or volume.rbd is not None
    )


def _disks(pod: Pod) -> list[Volume]:
    return [volume for volume in pod.spec.volumes or () if _is_disk(volume)]


def _has_disk_or_claim(pod: Pod) -> bool:
    for volume in pod.spec.volumes or ():  # noqa: SIM110 - any() takes twice as long
        if volume.persistent_volume_claim is not None or _is_disk(volume):
            return True
    return False


@define(eq=False)
class _WantedDisks:
    """The disks of a pod by what identifies them, so that each disk on a node is looked up and not compared with all.

    Anybody can create pods with thousands of disks.
    """

    _is_writable: dict[Hashable, bool]
    """For each identity whether a volume of the pod mounts it for writing."""

    @classmethod
    def of(cls, pod: Pod) -> _WantedDisks:
        is_writable: dict[Hashable, bool] = {}
        for disk in _disks(pod):
            for identity, read_only in _identities(disk):
                is_writable[identity] = is_writable.get(identity, False) or not read_only
        return cls(is_writable)

    def conflict_with(self, other: Pod) -> bool:
        """Whether the pod cannot be on a node where *other* is: they share a disk, and not both only read it."""
        for disk in _disks(other):
            for identity, read_only in _identities(disk):
                is_writable = self._is_writable.get(identity)
                if is_writable or (is_writable is not None and not read_only):
                    return True
        return False


def _identities(volume: Volume) -> Iterator[tuple[Hashable, bool]]:
    """What identifies the disks of *volume*, each with whether it is only read; RBD has one for each monitor.

    Volumes on AWS are compared whole, and conflict even if both are only read.
    """
    if volume.gce_persistent_disk is not None:
        yield ("gce", volume.gce_persistent_disk.pd_name), volume.gce_persistent_disk.read_only
    if volume.aws_elastic_block_store is not None:
        yield ("aws", volume.aws_elastic_block_store), False
    if volume.iscsi is not None:
        yield ("iscsi", volume.iscsi.iqn), volume.iscsi.read_only
    if volume.rbd is not None:
        for monitor in volume.rbd.monitors or ():
            yield ("rbd", monitor, volume.rbd.pool, volume.rbd.image), volume.rbd.read_only


def _conflicting_pod_deleted(pod: Pod, old: Pod, new: None) -> Hint:
    if old.namespace != pod.namespace:
        return Hint.SKIP
    if _WantedDisks.of(pod).conflict_with(old):
        return Hint.QUEUE
    return Hint.SKIP if set(named_claims(pod)).isdisjoint(named_claims(old)) else Hint.QUEUE
