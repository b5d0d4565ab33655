"""VolumeBinding: filters nodes by the volumes of the pod, and binds or provisions these before the pod is bound."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar

import numpy as np

from plugins_builtin.volumes.assume_cache import AssumeCache, OutOfSync
from plugins_builtin.volumes.csi_translation import MIGRATED_PLUGINS
from plugins_builtin.volumes.pod_volumes import PodVolumeClaims, PodVolumesByNode
from plugins_builtin.volumes.storage_index import StorageIndex
from plugins_builtin.volumes.storage_scores import StorageScorer
from plugins_builtin.volumes.volume_clauses import bound_clause, claim_clauses, unbound_clause
from plugins_builtin.volumes.volume_reservation import BindingFailed, Reservation, bind_volumes
from plugins_builtin.volumes.volumes import (
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
    Clause,
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
    quote,
    unresolvable,
)
from trio_sched.plugin_api.features import Features

REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

_NAME = "VolumeBinding"
_CLAIMS = (_NAME, "claims")
_RESERVED = (_NAME, "reserved")


class VolumeBinding:
    """Finds volumes for claims that wait for their first consumer, and has them bound or provisioned."""

    name: ClassVar[str] = _NAME
    Args: ClassVar[type[VolumeBindingArgs]] = VolumeBindingArgs
    writes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "PersistentVolume": ("patch",),
        "PersistentVolumeClaim": ("patch",),
    }
    depends_on: ClassVar[frozenset[Input]] = frozenset()  # answers about pods with claims are not cached

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        self._handle = handle
        self._bind_timeout_seconds = float(args.bind_timeout_seconds)
        self._volumes: AssumeCache[PersistentVolume] = AssumeCache("PersistentVolume", handle)
        self._claims: AssumeCache[PersistentVolumeClaim] = AssumeCache("PersistentVolumeClaim", handle)
        self._storage = StorageIndex(handle, self._volumes)
        scoring = Features.of(handle.feature_enabled).storage_capacity_scoring
        self._scorer = StorageScorer(args.shape or ()) if scoring else None

    # --- finding nodes ----------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Sort the pod's claims into bound and unbound ones; Skip if it has none."""
        if not has_claims_of_any_kind(pod):
            return SKIP
        volumes = [(volume, name) for volume in pod.spec.volumes or () if (name := claim_name(pod, volume)) is not None]
        for volume, name in volumes:
            problem = self._claim_problem(pod, volume, name)
            if problem is not None:
                return unresolvable(problem)
        bound, unbound_delayed, has_immediate = [], [], False
        for _volume, name in volumes:
            claim = self._claims.get(name, pod.namespace)
            assert claim is not None  # _claim_problem has checked that
            if is_fully_bound(claim):
                bound.append(claim)
                continue
            is_delayed = self._is_binding_delayed(claim)
            if isinstance(is_delayed, Status):
                return is_delayed
            if is_delayed and not claim.spec.volume_name:
                unbound_delayed.append(claim)
            else:
                has_immediate = True
        if has_immediate:
            return unresolvable(REASON_IMMEDIATE)
        state.write(_CLAIMS, PodVolumeClaims(bound, unbound_delayed))
        return None

    def _claim_problem(self, pod: Pod, volume: Volume, name: str) -> str | None:
        is_ephemeral = volume.persistent_volume_claim is None
        claim = self._claims.stored(name, pod.namespace)
        if claim is None:
            if is_ephemeral:
                return f"waiting for ephemeral volume controller to create the persistentvolumeclaim {quote(name)}"
            return claim_not_found(name)
        if claim.status.phase == "Lost":
            gone = claim.spec.volume_name
            return f"persistentvolumeclaim {quote(name)} bound to non-existent persistentvolume {quote(gone)}"
        if claim.metadata.deletion_timestamp is not None:
            return f"persistentvolumeclaim {quote(name)} is being deleted"
        return not_owned(pod, claim) if is_ephemeral else None

    def _is_binding_delayed(self, claim: PersistentVolumeClaim) -> bool | Status:
        name = claim.storage_class
        storage_class: StorageClass | None = self._handle.object("StorageClass", name) if name else None
        if storage_class is None:
            return False
        if storage_class.volume_binding_mode is None:
            return failure(f"VolumeBindingMode not set for StorageClass {quote(name)}")
        return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def _find(self, claims: PodVolumeClaims, nodes: NodeColumns) -> PodVolumesByNode:
        return PodVolumesByNode(self._handle, self._volumes, self._storage, claims, nodes)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes must match the affinity of bound volumes, and have an existing or new volume for each unbound claim."""
        return self._find(state.read(_CLAIMS), nodes).verdicts

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each claim that has no volume, or whose volume is not to be had on some nodes."""
        yield from claim_clauses(pod, self._handle)
        claims: PodVolumeClaims | None = state.get(_CLAIMS)
        for claim in claims.bound if claims is not None else ():
            fails = ~self._find(PodVolumeClaims(bound=[claim]), nodes).verdicts.passes
            if self._volumes.get(claim.spec.volume_name) is not None:
                yield bound_clause(self._handle, nodes, claim, fails)
        for claim in claims.unbound_delayed if claims is not None else ():
            verdicts = self._find(PodVolumeClaims(unbound_delayed=[claim]), nodes).verdicts
            reasons = {verdicts.explain(code).message for code in set(verdicts.codes.tolist()) if code}
            yield unbound_clause(self._handle, claim, ~verdicts.passes, ", ".join(sorted(reasons)))

    # --- scoring nodes ----------------------------------------------------------------------------------------------

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Skip without the feature gate StorageCapacityScoring."""
        return SKIP if self._scorer is None else None

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """0..100 by the utilization of the storage that the pod would get its volumes from."""
        scores = np.zeros(len(nodes), dtype=np.int64)
        claims: PodVolumeClaims | None = state.get(_CLAIMS)
        if self._scorer is not None and claims is not None and claims.unbound_delayed:
            volumes = self._find(claims, nodes)
            for position in range(len(nodes)):
                scores[position] = self._scorer.score(volumes.at(position))
        return scores

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The same for all pods without claims; pods with claims are not cached."""
        return None if has_claims_of_any_kind(pod) else ()

    # --- reserving and binding --------------------------------------------------------------------------------------

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Assume the volumes on the chosen node, so that no other pod gets them."""
        claims: PodVolumeClaims | None = state.get(_CLAIMS)
        if claims is None or not claims.unbound_delayed:
            return None
        nodes = self._handle.nodes
        position = nodes.position(node_name)
        if position is None:
            return failure(f"node {quote(node_name)} not found")
        found = self._find(claims, nodes.take(slice(position, position + 1))).at(0)
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
        """Forget the assumed volumes; what is written to the API server already stays."""
        reservation: Reservation | None = state.get(_RESERVED)
        if reservation is not None:
            reservation.revert()

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod, node_name: str, state: CycleState) -> PreFlight | Status | None:
        """Skip if the pod has no unbound claims."""
        claims: PodVolumeClaims | None = state.get(_CLAIMS)
        if claims is None or not claims.unbound_delayed:
            return SKIP
        if state.get(_RESERVED) is None:
            return failure(f"no pod volume found for node {quote(node_name)}")
        return PreFlight(allow_parallel=True)

    @hookimpl
    async def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Write the bindings to the API server, and wait until the volume controller has completed them."""
        try:
            await bind_volumes(self._handle, pod, state.read(_RESERVED), self._bind_timeout_seconds)
        except BindingFailed as problem:
            return failure(problem)
        return None

    # --- events -----------------------------------------------------------------------------------------------------

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Volumes, claims, storage classes, storage capacities and nodes are added or change in favour of the pod."""
        add_or_update = Action.ADD | Action.UPDATE
        return [
            on(Resource.STORAGE_CLASS, add_or_update, _allowed_topologies_changed),
            on(Resource.PERSISTENT_VOLUME_CLAIM, add_or_update, is_claim),
            on(Resource.PERSISTENT_VOLUME, add_or_update),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.CSI_NODE, add_or_update, _migrated_plugins_changed),
            on(Resource.CSI_DRIVER, Action.UPDATE, _capacity_no_longer_published),
            on(Resource.CSI_STORAGE_CAPACITY, add_or_update, _capacity_grew),
        ]


def _allowed_topologies_changed(pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:
    if old is None or (old.allowed_topologies or ()) != (new.allowed_topologies or ()):
        return Hint.QUEUE
    return Hint.SKIP


def _migrated_plugins_changed(pod: Pod, old: CSINode | None, new: CSINode) -> Hint:
    if old is None:
        return Hint.QUEUE
    before, after = ((node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "") for node in (old, new))
    return Hint.QUEUE if before != after else Hint.SKIP


def _capacity_no_longer_published(pod: Pod, old: CSIDriver, new: CSIDriver) -> Hint:
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return Hint.SKIP
    drivers = {volume.csi.driver for volume in pod.spec.volumes or () if volume.csi is not None}
    return Hint.QUEUE if new.metadata.name in drivers else Hint.SKIP


def _capacity_grew(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> Hint:
    if old is None:
        return Hint.QUEUE
    before, after = limit_nano(old), limit_nano(new)
    return Hint.QUEUE if after is not None and (before is None or after > before) else Hint.SKIP
