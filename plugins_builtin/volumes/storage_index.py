"""What a claim can get its volume from: existing PersistentVolumes, and storage with capacity for a new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import define, field, frozen

from plugins_builtin.volumes.assume_cache import AssumeCache
from plugins_builtin.volumes.volumes import (
    FILESYSTEM,
    STORAGE,
    capacity_nano,
    limit_nano,
    refers_to,
    requested_nano,
    selector_term,
    whole_bytes,
)
from trio_sched.plugin_api import (
    BoolArray,
    CSIDriver,
    CSIStorageCapacity,
    Handle,
    NodeColumns,
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    SelectorError,
    StorageClass,
    TopologySelectorTerm,
    compile_selector,
    match_label_values,
    parse_nano,
)


class ClaimSelectorError(ValueError):
    """The selector of a claim does not parse."""


@frozen(eq=False)
class MatchingVolumes:
    """The unbound volumes that match one claim, the smallest first; or the one that is pre-bound to it."""

    volumes: Sequence[PersistentVolume]
    is_pre_bound: bool = False


@frozen(eq=False)
class Pool:
    """A CSIStorageCapacity: storage for volumes of up to *limit* bytes on the nodes of *affinity* (None: all nodes)."""

    affinity: NodeSelector | None
    limit: int
    capacity: int
    """The available bytes."""


@define(eq=False)
class StorageIndex:
    """Indexes of PersistentVolumes and CSIStorageCapacities, rebuilt when these have changed."""

    _handle: Handle
    _volumes: AssumeCache[PersistentVolume]
    _volumes_version: int = -1
    _unclaimed: dict[str, list[str]] = field(factory=dict)
    """Storage class → names of volumes without a claimRef, the smallest first, then by name."""
    _claimed: dict[tuple[str, str, str], list[str]] = field(factory=dict)
    """Storage class, namespace and name of a claim → names of volumes with a claimRef to it, in the same order."""
    _pools_version: int = -1
    _pools: Mapping[str, list[Pool]] = field(factory=dict)

    # --- existing volumes -------------------------------------------------------------------------------------------

    def matching_volumes(self, claim: PersistentVolumeClaim) -> MatchingVolumes:
        """The volumes that can be bound to *claim*, whatever their node affinity is.

        Raises:
            ClaimSelectorError: the selector of *claim* does not parse.
        """
        self._index_volumes()
        name = claim.storage_class
        matcher = None
        if claim.spec.selector is not None:
            try:
                matcher = compile_selector(claim.spec.selector)
            except SelectorError as problem:
                text = f"error creating internal label selector for claim: {claim.key}: {problem}"
                raise ClaimSelectorError(text) from problem
        requested, modes = requested_nano(claim), frozenset(claim.spec.access_modes or ())
        matching = []
        claimed = self._claimed.get((name, claim.metadata.namespace, claim.name), ())
        for volume_name in (*claimed, *self._unclaimed.get(name, ())):
            volume = self._volumes.get(volume_name)
            if volume is None:
                continue
            spec = volume.spec
            is_pre_bound = refers_to(volume, claim)
            if (
                (spec.claim_ref is not None and not is_pre_bound)
                or capacity_nano(volume) < requested
                or (spec.volume_mode or FILESYSTEM) != (claim.spec.volume_mode or FILESYSTEM)
                or (spec.volume_attributes_class_name or "") != (claim.spec.volume_attributes_class_name or "")
                or volume.metadata.deletion_timestamp is not None
            ):
                continue
            if is_pre_bound:
                return MatchingVolumes((volume,), is_pre_bound=True)
            if volume.status.phase != "Available" or not modes <= frozenset(spec.access_modes or ()):
                continue
            if matcher is not None and not matcher.matches(volume.metadata.labels or {}):
                continue
            matching.append(volume)
        return MatchingVolumes(matching)

    def _index_volumes(self) -> None:
        version = self._handle.version("PersistentVolume")
        if version == self._volumes_version:
            return
        self._volumes_version = version
        self._unclaimed, self._claimed = {}, {}
        for volume in sorted(self._handle.objects("PersistentVolume"), key=_size_and_name):
            reference = volume.spec.claim_ref
            if reference is None:
                self._unclaimed.setdefault(volume.storage_class, []).append(volume.name)
            else:
                key = (volume.storage_class, reference.namespace, reference.name)
                self._claimed.setdefault(key, []).append(volume.name)

    # --- new volumes ------------------------------------------------------------------------------------------------

    def pools(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> list[Pool] | None:
        """The pools with capacity for *claim*; None if the driver does not publish its capacity."""
        if STORAGE not in (claim.spec.resources.requests or {}):
            return None
        driver: CSIDriver | None = self._handle.object("CSIDriver", storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        version = self._handle.version("CSIStorageCapacity")
        if version != self._pools_version:
            self._pools_version = version
            self._pools = _pools_by_class(self._handle.objects("CSIStorageCapacity"))
        size = whole_bytes(requested_nano(claim))
        return [pool for pool in self._pools.get(storage_class.metadata.name, ()) if pool.limit >= size]


def _size_and_name(volume: PersistentVolume) -> tuple[int, str]:
    return capacity_nano(volume), volume.name


def _pools_by_class(capacities: Iterable[CSIStorageCapacity]) -> dict[str, list[Pool]]:
    found: dict[str, list[Pool]] = {}
    for one in sorted(capacities, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        limit = limit_nano(one)
        if limit is None or one.node_topology is None:
            continue
        term = selector_term(one.node_topology)
        if term is not None:
            affinity = NodeSelector(node_selector_terms=(term,)) if term.match_expressions else None
            found.setdefault(one.storage_class_name, []).append(Pool(affinity, whole_bytes(limit), _capacity_of(one)))
    return found


def _capacity_of(one: CSIStorageCapacity) -> int:
    return 0 if one.capacity is None else whole_bytes(parse_nano(one.capacity))


def match_topology_selector_terms(terms: Sequence[TopologySelectorTerm] | None, nodes: NodeColumns) -> BoolArray:
    """Shape (nodes,): which nodes match one of *terms*, the ``allowedTopologies`` of a class; all if there are none."""
    if not terms:
        return np.ones(len(nodes), dtype=np.bool_)
    matched = np.zeros(len(nodes), dtype=np.bool_)
    for term in terms:
        if not term.match_label_expressions:
            continue
        in_term = np.ones(len(nodes), dtype=np.bool_)
        for expression in term.match_label_expressions:
            in_term &= match_label_values(expression.key, expression.values or (), nodes)
        matched |= in_term
    return matched
