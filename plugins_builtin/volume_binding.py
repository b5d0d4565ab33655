"""VolumeBinding: pods go where their volumes are or can be made, and get these volumes before they run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from plugins_builtin._assume_cache import AssumeCache, OutOfSync
from plugins_builtin._csi_translation import MIGRATED_PLUGINS
from plugins_builtin._storage_scores import StorageScorer
from plugins_builtin._volume_reservation import BindingFailed, Reservation, bind_volumes
from plugins_builtin._volume_search import PodClaims, VolumeSearch
from plugins_builtin._volume_supply import VolumeSupply
from plugins_builtin._volumes import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_name,
    claim_not_found,
    has_claims_of_any_kind,
    is_claim,
    is_fully_bound,
    limit_nano,
    not_owned,
)
from trio_sched.plugin_api import (
    SKIP,
    Action,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Int64Array,
    NodeColumns,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PreFlight,
    Resource,
    Status,
    StorageClass,
    Verdicts,
    Volume,
    VolumeBindingArgs,
    failure,
    hookimpl,
    on,
    unresolvable,
)

REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

_NAME = "VolumeBinding"
_CLAIMS = (_NAME, "claims")
_RESERVED = (_NAME, "reserved")


class VolumeBinding:
    """Finds volumes for the claims of pods that wait for their first consumer, and has them bound or made."""

    name: ClassVar[str] = _NAME
    Args: ClassVar[type[VolumeBindingArgs]] = VolumeBindingArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset()  # pods with claims are asked anew

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        self._handle = handle
        self._bind_timeout_seconds = float(args.bind_timeout_seconds)
        self._volumes: AssumeCache[PersistentVolume] = AssumeCache("PersistentVolume", handle)
        self._claims: AssumeCache[PersistentVolumeClaim] = AssumeCache("PersistentVolumeClaim", handle)
        self._supply = VolumeSupply(handle, self._volumes)
        scoring = handle.feature_enabled("StorageCapacityScoring")
        self._scorer = StorageScorer(args.shape or ()) if scoring else None

    # --- finding nodes ----------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Look at the pod's claims; nothing to do if it has none."""
        if not has_claims_of_any_kind(pod):
            return SKIP
        volumes = [(volume, name) for volume in pod.spec.volumes or () if (name := claim_name(pod, volume)) is not None]
        for volume, name in volumes:
            problem = self._claim_problem(pod, volume, name)
            if problem is not None:
                return unresolvable(problem)
        bound, delayed, has_immediate = [], [], False
        for _volume, name in volumes:
            claim = self._claims.get(name, pod.namespace)
            assert claim is not None  # that has just been looked at
            if is_fully_bound(claim):
                bound.append(claim)
                continue
            binds_late = self._binds_late(claim)
            if isinstance(binds_late, Status):
                return binds_late
            if binds_late and not claim.spec.volume_name:
                delayed.append(claim)
            else:
                has_immediate = True
        if has_immediate:
            return unresolvable(REASON_IMMEDIATE)
        state.write(_CLAIMS, PodClaims(bound, delayed))
        return None

    def _claim_problem(self, pod: Pod, volume: Volume, name: str) -> str | None:
        is_ephemeral = volume.persistent_volume_claim is None
        claim = self._claims.stored(name, pod.namespace)
        if claim is None:
            if is_ephemeral:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return claim_not_found(name)
        if claim.status.phase == "Lost":
            gone = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{gone}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        return not_owned(pod, claim) if is_ephemeral else None

    def _binds_late(self, claim: PersistentVolumeClaim) -> bool | Status:
        name = claim.storage_class
        storage_class: StorageClass | None = self._handle.object("StorageClass", name) if name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            return failure(f'VolumeBindingMode not set for StorageClass "{name}"')
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _search(self, claims: PodClaims, nodes: NodeColumns) -> VolumeSearch:
        return VolumeSearch(self._handle, self._volumes, self._supply, claims, nodes).run()

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes must reach the volumes that are bound, and have or get one for every other claim."""
        return self._search(state.read(_CLAIMS), nodes).verdicts

    # --- ranking them -----------------------------------------------------------------------------------------------

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Nothing to say without the feature gate StorageCapacityScoring."""
        return SKIP if self._scorer is None else None

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """How full the storage would be from which the pod gets its volumes."""
        scores = np.zeros(len(nodes), dtype=np.int64)
        claims: PodClaims | None = state.get(_CLAIMS)
        if self._scorer is not None and claims is not None and claims.delayed:
            search = self._search(claims, nodes)
            for position in range(len(nodes)):
                scores[position] = self._scorer.score(search.at(position))
        return scores

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """Pods without claims are all alike."""
        return None if has_claims_of_any_kind(pod) else ()

    # --- the node is chosen -----------------------------------------------------------------------------------------

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Decide which volumes the pod gets, so that nobody else gets them."""
        claims: PodClaims | None = state.get(_CLAIMS)
        if claims is None or not claims.delayed:
            return None
        nodes = self._handle.nodes
        position = nodes.position(node_name)
        if position is None:
            return failure(f'node "{node_name}" not found')
        found = self._search(claims, nodes.take(slice(position, position + 1))).at(0)
        reservation = Reservation(self._volumes, self._claims, node_name)
        try:
            reservation.assume(found)
        except OutOfSync as problem:
            reservation.revert()
            return failure(problem)
        state.write(_RESERVED, reservation)
        return None

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Others may have the volumes; what the API server has been told already stays."""
        reservation: Reservation | None = state.get(_RESERVED)
        if reservation is not None:
            reservation.revert()

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod, node_name: str, state: CycleState) -> PreFlight | Status | None:
        """Nothing to do if all claims have their volumes already."""
        claims: PodClaims | None = state.get(_CLAIMS)
        if claims is None or not claims.delayed:
            return SKIP
        if state.get(_RESERVED) is None:
            return failure(f'no pod volume found for node "{node_name}"')
        return PreFlight(allow_parallel=True)

    @hookimpl
    async def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Tell the API server what was decided, and wait until the volume controller has done its part."""
        try:
            await bind_volumes(self._handle, pod, state.read(_RESERVED), self._bind_timeout_seconds)
        except BindingFailed as problem:
            return failure(problem)
        return None

    # --- events -----------------------------------------------------------------------------------------------------

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Volumes, claims, classes, room in storage or nodes may have come, or changed for the better."""
        add_or_update = Action.ADD | Action.UPDATE
        return [
            on(Resource.STORAGE_CLASS, add_or_update, _other_topologies),
            on(Resource.PERSISTENT_VOLUME_CLAIM, add_or_update, is_claim),
            on(Resource.PERSISTENT_VOLUME, add_or_update),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.CSI_NODE, add_or_update, _migrates_others),
            on(Resource.CSI_DRIVER, Action.UPDATE, _stops_counting),
            on(Resource.CSI_STORAGE_CAPACITY, add_or_update, _has_more_room),
        ]


def _other_topologies(pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:
    if old is None or (old.allowed_topologies or ()) != (new.allowed_topologies or ()):
        return Hint.QUEUE
    return Hint.SKIP


def _migrates_others(pod: Pod, old: CSINode | None, new: CSINode) -> Hint:
    if old is None:
        return Hint.QUEUE
    before, after = ((node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "") for node in (old, new))
    return Hint.QUEUE if before != after else Hint.SKIP


def _stops_counting(pod: Pod, old: CSIDriver, new: CSIDriver) -> Hint:
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return Hint.SKIP
    drivers = {volume.csi.driver for volume in pod.spec.volumes or () if volume.csi is not None}
    return Hint.QUEUE if new.metadata.name in drivers else Hint.SKIP


def _has_more_room(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> Hint:
    if old is None:
        return Hint.QUEUE
    before, after = limit_nano(old), limit_nano(new)
    return Hint.QUEUE if after is not None and (before is None or after > before) else Hint.SKIP
