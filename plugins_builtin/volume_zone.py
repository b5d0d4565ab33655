"""VolumeZone: pods go where the zone and region labels of their volumes say."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from plugins_builtin._csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONES_SEPARATOR
from plugins_builtin._volumes import (
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
    unresolvable,
)

REASON = "node(s) had no available volume zone"

_NAME = "VolumeZone"
_KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEW_KEY = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_REFUSED = unresolvable(REASON)

Topology = tuple[str, frozenset[str]]
"""A label of a volume and the values of it that the volume can be reached from."""


class VolumeZone:
    """Compares the zone and region labels of bound volumes with those of nodes."""

    name: ClassVar[str] = _NAME
    depends_on: ClassVar[frozenset[Input]] = frozenset()  # pods with claims are asked anew

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle = handle

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Collect the labels of the pod's volumes; nothing to do if there are none."""
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
        """The volume of a claim; None if it will get one where its first pod runs."""
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
            return unresolvable(f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"')
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return None
        return unresolvable("PersistentVolume had no name")

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes that say where they are must be where the volumes are."""
        topologies: tuple[Topology, ...] = state.read(_NAME)
        passes = np.ones(len(nodes), dtype=np.bool_)
        for topology in topologies:
            passes &= _is_in(topology, nodes)
        says_nothing = np.ones(len(nodes), dtype=np.bool_)
        for key in _KEYS:
            says_nothing &= nodes.label_values(key) == 0
        return Verdicts.where(passes | says_nothing, otherwise=_REFUSED)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """Pods without claims are all alike."""
        return None if has_claims(pod) else ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """What the pod's claims and volumes are, and where nodes are, may change."""
        return [
            on(Resource.STORAGE_CLASS, Action.ADD, _binds_late),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, is_claim_by_name),
            on(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE, _has_moved),
        ]


def _topologies(volume: PersistentVolume) -> list[Topology]:
    """The zone and region labels of *volume*; those with an empty value among theirs are ignored."""
    labels = volume.metadata.labels or {}
    found = []
    for key in _KEYS:
        if key in labels:
            values = frozenset(value.strip() for value in labels[key].split(ZONES_SEPARATOR))
            if "" not in values:
                found.append((key, values))
    return found


def _is_in(topology: Topology, nodes: NodeColumns) -> BoolArray:
    key, values = topology
    matched = match_label_values(key, values, nodes)
    new_key = _NEW_KEY.get(key)
    if new_key is not None:
        matched |= (nodes.label_values(key) == 0) & match_label_values(new_key, values, nodes)
    return matched


def _binds_late(pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:
    return Hint.QUEUE if new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else Hint.SKIP


def _has_moved(pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> Hint:
    return Hint.QUEUE if old is None or _topologies(old) != _topologies(new) else Hint.SKIP
