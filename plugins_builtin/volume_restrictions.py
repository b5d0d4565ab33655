"""VolumeRestrictions: disks that a node takes once only, and claims that one pod has for itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np
from attrs import define

from plugins_builtin._volumes import claim_not_found, is_claim_by_name, named_claims
from trio_sched.plugin_api import (
    SKIP,
    Action,
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
class _OnlyUsers:
    """The claims that the pod must have for itself, and how often others use them."""

    claims: frozenset[str]
    uses: int

    def clone(self) -> _OnlyUsers:
        return _OnlyUsers(self.claims, self.uses)

    def count(self, pod: Pod, sign: int) -> None:
        # Other namespaces count too: kube-scheduler compares the names alone.
        self.uses += sign * sum(name in self.claims for name in named_claims(pod))


class VolumeRestrictions:
    """Keeps disks from being mounted twice on a node, and ReadWriteOncePod claims from being used twice at all."""

    name: ClassVar[str] = _NAME
    depends_on: ClassVar[frozenset[Input]] = frozenset()  # pods with disks or claims are asked anew

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle = handle

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Nothing to do unless the pod has such a disk, or somebody uses a claim that it must have for itself."""
        if not _concerns(pod):
            return SKIP
        wanted = set()
        for name in named_claims(pod):
            claim: PersistentVolumeClaim | None = self._handle.object("PersistentVolumeClaim", name, pod.namespace)
            if claim is None:
                return unresolvable(claim_not_found(name))
            if _READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                wanted.add(name)
        uses = sum(nodes.claim_users(pod.namespace, name) > 0 for name in wanted)
        if not uses and not _disks(pod):
            return SKIP
        state.write(_NAME, _OnlyUsers(frozenset(wanted), uses))
        return None

    @hookimpl
    def add_pod(self, pod: Pod, added: Pod, node: NodeView, state: CycleState) -> None:
        """One more may use the claims."""
        state.read(_NAME).count(added, 1)

    @hookimpl
    def remove_pod(self, pod: Pod, removed: Pod, node: NodeView, state: CycleState) -> None:
        """One less may use the claims."""
        state.read(_NAME).count(removed, -1)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes with a pod that has the same disk; all nodes, if a claim has its pod already."""
        only_users: _OnlyUsers = state.read(_NAME)
        codes = np.full(len(nodes), _IN_USE if only_users.uses > 0 else _OK, dtype=np.int64)
        disks = _disks(pod)
        if disks:
            for position, others in nodes.pods_with_disks():
                if any(_conflict(disk, other) for pod_there in others for other in _disks(pod_there) for disk in disks):
                    codes[position] = _DISK
        return Verdicts(codes, _STATUSES.__getitem__)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """Pods without such volumes are all alike."""
        return None if _concerns(pod) else ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A pod gives a disk or a claim back, a node comes, the claim comes."""
        return [
            on(Resource.POD, Action.DELETE, _gives_back),
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


def _concerns(pod: Pod) -> bool:
    return any(volume.persistent_volume_claim is not None or _is_disk(volume) for volume in pod.spec.volumes or ())


def _conflict(disk: Volume, other: Volume) -> bool:
    """Whether *disk* cannot be where *other* is."""
    if disk.gce_persistent_disk is not None and other.gce_persistent_disk is not None:
        gce, other_gce = disk.gce_persistent_disk, other.gce_persistent_disk
        if gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only):
            return True
    if disk.aws_elastic_block_store is not None and disk.aws_elastic_block_store == other.aws_elastic_block_store:
        return True
    if disk.iscsi is not None and other.iscsi is not None:
        iscsi, other_iscsi = disk.iscsi, other.iscsi
        if iscsi.iqn == other_iscsi.iqn and not (iscsi.read_only and other_iscsi.read_only):
            return True
    if disk.rbd is not None and other.rbd is not None:
        rbd, other_rbd = disk.rbd, other.rbd
        return (
            not set(rbd.monitors or ()).isdisjoint(other_rbd.monitors or ())
            and (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
            and not (rbd.read_only and other_rbd.read_only)
        )
    return False


def _gives_back(pod: Pod, old: Pod, new: None) -> Hint:
    if old.namespace != pod.namespace:
        return Hint.SKIP
    if any(_conflict(disk, other) for other in _disks(old) for disk in _disks(pod)):
        return Hint.QUEUE
    return Hint.SKIP if set(named_claims(pod)).isdisjoint(named_claims(old)) else Hint.QUEUE
