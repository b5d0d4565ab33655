"""VolumeZone: filters nodes by the zone and region labels of the pod's volumes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from plugins_builtin.volumes.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONES_SEPARATOR
from plugins_builtin.volumes.volume_clauses import claim_clauses, zone_clause
from plugins_builtin.volumes.volumes import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_not_found,
    class_not_found,
    has_claims,
    is_claim_by_name,
    named_claims,
    volume_not_found,
)
from trio_sched.plugin_api import (
    SKIP,
    Action,
    BoolArray,
    Clause,
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
    hookimpl,
    match_label_values,
    on,
    quote,
    unresolvable,
)

REASON = "node(s) had no available volume zone"

_NAME = "VolumeZone"
_KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEW_KEY = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_REJECTED = unresolvable(REASON)

Topology = tuple[str, frozenset[str]]
"""The key of a topology label of a volume, and its values."""


class VolumeZone:
    """Compares the zone and region labels of bound volumes with those of nodes."""

    name: ClassVar[str] = _NAME
    depends_on: ClassVar[frozenset[Input]] = frozenset()  # answers about pods with claims are not cached

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle = handle

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Collect the topology labels of the pod's volumes; Skip if there are none."""
        if not has_claims(pod):
            return SKIP
        topologies: dict[Topology, None] = {}
        for name in named_claims(pod):
            found = self._volume_of(name, pod.namespace)
            if isinstance(found, Status):
                return found
            if found is not None:
                topologies.update(dict.fromkeys(_topologies(found)))
        if not topologies:
            return SKIP
        state.write(_NAME, tuple(topologies))
        return None

    def _volume_of(self, claim_name: str, namespace: str) -> PersistentVolume | Status | None:
        """The volume of a claim; None if it is unbound and its class waits for the first consumer."""
        if not claim_name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim: PersistentVolumeClaim | None = self._handle.object("PersistentVolumeClaim", claim_name, namespace)
        if claim is None:
            return unresolvable(claim_not_found(claim_name))
        if claim.spec.volume_name:
            volume: PersistentVolume | None = self._handle.object("PersistentVolume", claim.spec.volume_name)
            return unresolvable(volume_not_found(claim.spec.volume_name)) if volume is None else volume
        if not claim.storage_class:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class: StorageClass | None = self._handle.object("StorageClass", claim.storage_class)
        if storage_class is None:
            return unresolvable(class_not_found(claim.storage_class))
        if storage_class.volume_binding_mode is None:
            return unresolvable(f"VolumeBindingMode not set for StorageClass {quote(claim.storage_class)}")
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return None
        return unresolvable("PersistentVolume had no name")

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes with topology labels fail unless they match the labels of all volumes."""
        topologies: tuple[Topology, ...] = state.read(_NAME)
        passes = np.ones(len(nodes), dtype=np.bool_)
        for topology in topologies:
            passes &= _match_topology(topology, nodes)
        without_labels = np.ones(len(nodes), dtype=np.bool_)
        for key in _KEYS:
            without_labels &= nodes.label_values(key) == 0
        return Verdicts.where(passes | without_labels, otherwise=_REJECTED)

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each claim without a volume, and each whose volume is in another zone than some nodes."""
        yield from claim_clauses(pod, self._handle)
        without_labels = np.ones(len(nodes), dtype=np.bool_)
        for key in _KEYS:
            without_labels &= nodes.label_values(key) == 0
        for name in named_claims(pod):
            claim = self._handle.object("PersistentVolumeClaim", name, pod.namespace)
            volume = self._volume_of(name, pod.namespace)
            if claim is None or volume is None or isinstance(volume, Status):
                continue
            passes, zones = np.ones(len(nodes), dtype=np.bool_), dict[str, list[str]]()
            for topology in _topologies(volume):
                passes &= _match_topology(topology, nodes)
                zones[topology[0]] = sorted(topology[1])
            yield zone_clause(self._handle, nodes, claim, zones, ~(passes | without_labels))

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The same for all pods without claims; pods with claims are not cached."""
        return None if has_claims(pod) else ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Classes, claims or volumes are added or change, nodes are added or change their labels."""
        return [
            on(Resource.STORAGE_CLASS, Action.ADD, _waits_for_first_consumer),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, is_claim_by_name),
            on(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE, _topology_changed),
        ]


def _topologies(volume: PersistentVolume) -> list[Topology]:
    """The zone and region labels of *volume*; a label with an empty value in its list is ignored."""
    labels = volume.metadata.labels or {}
    found = []
    for key in _KEYS:
        if key in labels:
            values = frozenset(value.strip() for value in labels[key].split(ZONES_SEPARATOR))
            if "" not in values:
                found.append((key, values))
    return found


def _match_topology(topology: Topology, nodes: NodeColumns) -> BoolArray:
    key, values = topology
    matched = match_label_values(key, values, nodes)
    new_key = _NEW_KEY.get(key)
    if new_key is not None:
        matched |= (nodes.label_values(key) == 0) & match_label_values(new_key, values, nodes)
    return matched


def _waits_for_first_consumer(pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:
    return Hint.QUEUE if new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else Hint.SKIP


def _topology_changed(pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> Hint:
    return Hint.QUEUE if old is None or _topologies(old) != _topologies(new) else Hint.SKIP
