"""On which nodes a pod can get all of its volumes, and which volumes these are.

All nodes are evaluated at once; the volumes themselves are looked up for one node, when they are asked for.
Source: FindPodVolumes of kube-scheduler's volume binder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import define, field, frozen

from plugins_builtin.volumes.assume_cache import AssumeCache
from plugins_builtin.volumes.csi_translation import (
    TranslationError,
    in_tree_plugin,
    is_migrated_on,
    translated_affinity,
)
from plugins_builtin.volumes.first_match import AffinityMasks, FirstMatch
from plugins_builtin.volumes.storage_index import (
    ClaimSelectorError,
    Pool,
    StorageIndex,
    match_topology_selector_terms,
)
from plugins_builtin.volumes.volumes import NO_PROVISIONER, SELECTED_NODE, match_volume_affinity, requested_nano
from trio_sched.plugin_api import (
    BoolArray,
    Handle,
    Int64Array,
    NodeColumns,
    PersistentVolume,
    PersistentVolumeClaim,
    Status,
    StorageClass,
    Verdicts,
    failure,
    quote,
    unresolvable,
)

REASON_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
REASON_BINDING = "node(s) didn't find available persistent volumes to bind"
REASON_SPACE = "node(s) did not have enough free storage"
REASON_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

_AFFINITY, _BINDING, _SPACE, _MISSING, _FIRST_ERROR = 1, 2, 4, 8, 16
_REASONS = {_AFFINITY: REASON_AFFINITY, _BINDING: REASON_BINDING, _SPACE: REASON_SPACE, _MISSING: REASON_MISSING}
_NO_VOLUME = -1


@frozen(eq=False)
class PodVolumeClaims:
    """The claims of a pod, as they were in pre_filter."""

    bound: Sequence[PersistentVolumeClaim] = ()
    unbound_delayed: Sequence[PersistentVolumeClaim] = ()
    """Unbound claims of classes that bind volumes when a node has been chosen (WaitForFirstConsumer)."""


@frozen(eq=False)
class DynamicProvision:
    """A claim for which a volume is to be provisioned, and from which pool, if the driver publishes its capacity."""

    claim: PersistentVolumeClaim
    pool: Pool | None = None


@frozen(eq=False)
class PodVolumes:
    """The volumes for the unbound claims of a pod on one node."""

    static_bindings: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]]
    dynamic_provisions: Sequence[DynamicProvision]


@define(eq=False)
class _Candidates:
    """The volumes that match a claim, on all nodes."""

    volumes: Sequence[PersistentVolume]
    match: FirstMatch
    numbers: Int64Array
    """The number of each volume, then `_NO_VOLUME`."""
    _in_order: dict[int, Iterator[int]] = field(factory=dict)
    """Position of a node → the numbers of the volumes there that were not asked for yet."""

    def next_free(self, position: int, taken: BoolArray) -> int:
        """The number of the first volume at *position* that is not *taken* there; what is taken stays so."""
        in_order = self._in_order.get(position)
        if in_order is None:
            in_order = self._in_order[position] = iter(self.numbers[list(self.match.all_at(position))].tolist())
        return next((number for number in in_order if not taken[number, position]), _NO_VOLUME)


@define(eq=False)
class PodVolumesByNode:
    """The volumes that one pod would get on each of some nodes."""

    handle: Handle
    volumes: AssumeCache[PersistentVolume]
    storage: StorageIndex
    claims: PodVolumeClaims
    nodes: NodeColumns
    codes: Int64Array = field(init=False)
    """Shape (nodes,): the reasons as bits, or an error; 0 where the pod can get all of its volumes."""
    _errors: list[str] = field(factory=list)
    _matching: list[PersistentVolume] = field(factory=list)
    """Volumes that match some claim of the pod; a volume's number is its index here."""
    _numbers: dict[str, int] = field(factory=dict)
    """Volume name → number."""
    _bindings: list[tuple[PersistentVolumeClaim, Int64Array]] = field(factory=list)
    """Claims, each with an array of shape (nodes,): the number of its volume on that node, or `_NO_VOLUME`."""
    _taken: BoolArray = field(init=False)
    """Shape (numbers, nodes): which volumes are in *_bindings* on which nodes."""
    _masks: AffinityMasks = field(factory=dict)
    _candidates: _Candidates | None = None
    """The candidates for the claim before: a pod can have thousands of claims that are alike."""
    _pools: tuple[Sequence[Pool], FirstMatch] | None = None
    """The pools for the claim before."""
    _migrated: dict[str, BoolArray] = field(factory=dict)
    """In-tree plugin → on which nodes it is migrated."""
    _provisions: list[tuple[PersistentVolumeClaim, BoolArray, Sequence[Pool], Int64Array | None]] = field(factory=list)
    """Claims for which volumes are to be provisioned: on which nodes, from which pools, and the index of the pool of
    each node (None if the driver does not publish its capacity)."""

    def __attrs_post_init__(self) -> None:
        self.codes = np.zeros(len(self.nodes), dtype=np.int64)
        self._taken = np.zeros((0, len(self.nodes)), dtype=np.bool_)
        self._check_bound()
        if self.claims.unbound_delayed:
            self._find_unbound()

    @property
    def verdicts(self) -> Verdicts:
        """Which nodes fail, and why."""
        return Verdicts(self.codes, self._explain, may_fail=bool(self._errors))

    def at(self, position: int) -> PodVolumes:
        """The volumes on the node at *position*, which must have passed."""
        bindings = [
            (self._matching[int(numbers[position])], claim)
            for claim, numbers in self._bindings
            if numbers[position] != _NO_VOLUME
        ]
        provisions = []
        for claim, where, pools, first in self._provisions:
            if where[position]:
                provisions.append(DynamicProvision(claim, pools[int(first[position])] if first is not None else None))
        return PodVolumes(bindings, provisions)

    def _explain(self, code: int) -> Status:
        if code >= _FIRST_ERROR:
            return failure(self._errors[code // _FIRST_ERROR - 1])
        return unresolvable(*[reason for bit, reason in _REASONS.items() if code & bit])

    def _fail(self, where: BoolArray, text: str) -> None:
        """An error is the only reason of a node; the first one is kept."""
        self._errors.append(text)
        self.codes[where & (self.codes < _FIRST_ERROR)] = _FIRST_ERROR * len(self._errors)

    # --- bound claims -----------------------------------------------------------------------------------------------

    def _check_bound(self) -> None:
        active = np.ones(len(self.nodes), dtype=np.bool_)
        for claim in self.claims.bound:
            volume = self.volumes.get(claim.spec.volume_name)
            if volume is None:
                self.codes[active] |= _MISSING
                return
            matched = self._match_affinity(volume, active)
            self.codes[active & ~matched & (self.codes < _FIRST_ERROR)] |= _AFFINITY
            active &= matched
            if not active.any():
                return

    def _match_affinity(self, volume: PersistentVolume, active: BoolArray) -> BoolArray:
        """Shape (nodes,): which nodes match the affinity of *volume*, translated where its driver is migrated."""
        matched = match_volume_affinity(volume.required_affinity, self.nodes)
        plugin = in_tree_plugin(volume.spec)
        if plugin is None or not plugin.migrated:
            return matched
        migrated = self._migrated.get(plugin.name)
        if migrated is None:
            names = self.nodes.names
            migrated = self._migrated[plugin.name] = np.fromiter(
                (is_migrated_on(plugin, self.handle.object("CSINode", name)) for name in names), np.bool_, len(names)
            )
        if not migrated.any():
            return matched
        try:
            translated = match_volume_affinity(translated_affinity(volume, plugin), self.nodes)
        except TranslationError as error:
            self._fail(active & migrated, f"could not translate pv: {error}")
            return matched & ~migrated
        return np.where(migrated, translated, matched)

    # --- unbound claims ---------------------------------------------------------------------------------------------

    def _find_unbound(self) -> None:
        active = self.codes < _FIRST_ERROR
        to_match, to_provision = [], []
        for claim in self.claims.unbound_delayed:
            selected = (claim.metadata.annotations or {}).get(SELECTED_NODE)
            if selected is None:
                to_match.append(claim)
                continue
            to_provision.append(claim)
            is_selected = np.zeros(len(self.nodes), dtype=np.bool_)
            position = self.nodes.position(selected)
            if position is not None:
                is_selected[position] = True
            self.codes[active & ~is_selected] |= _BINDING
            active &= is_selected
        unmatched = [(claim, active.copy()) for claim in to_provision]
        for claim in sorted(to_match, key=requested_nano):
            try:
                numbers = self._match_volumes(claim, active)
            except ClaimSelectorError as error:
                self._fail(active, str(error))
                return
            self._bind(claim, numbers)
            unmatched.append((claim, active & (numbers == _NO_VOLUME)))
        for claim, where in unmatched:
            needed = where & active
            if needed.any():
                active &= ~needed | self._check_provisioning(claim, needed)

    def _match_volumes(self, claim: PersistentVolumeClaim, active: BoolArray) -> Int64Array:
        """Shape (nodes,): the number of the volume for *claim* on each node that no claim before it has there."""
        matching = self.storage.matching_volumes(claim)
        if not matching.volumes or not active.any():
            return np.full(len(self.nodes), _NO_VOLUME, dtype=np.int64)
        found = self._candidates
        if found is None or found.volumes != matching.volumes:
            match = FirstMatch([volume.required_affinity for volume in matching.volumes], self.nodes, self._masks)
            numbers = np.array([*map(self._number, matching.volumes), _NO_VOLUME], dtype=np.int64)
            found = self._candidates = _Candidates(matching.volumes, match, numbers)
            self._taken = _with_rows(self._taken, len(self._matching))
        chosen: Int64Array = found.numbers[found.match.first]
        if matching.is_pre_bound:
            return chosen
        conflicts = self._taken[chosen, np.arange(len(chosen))] & (chosen != _NO_VOLUME)
        for position in np.flatnonzero(conflicts & active).tolist():
            chosen[position] = found.next_free(position, self._taken)
        return chosen

    def _bind(self, claim: PersistentVolumeClaim, numbers: Int64Array) -> None:
        self._bindings.append((claim, numbers))
        where = np.flatnonzero(numbers != _NO_VOLUME)
        self._taken[numbers[where], where] = True

    def _number(self, volume: PersistentVolume) -> int:
        number = self._numbers.get(volume.name)
        if number is None:
            number = self._numbers[volume.name] = len(self._matching)
            self._matching.append(volume)
        return number

    def _check_provisioning(self, claim: PersistentVolumeClaim, needed: BoolArray) -> BoolArray:
        """Shape (nodes,): where of *needed* a volume can be provisioned for *claim*; the others get a reason."""
        nowhere = np.zeros(len(self.nodes), dtype=np.bool_)
        name = claim.storage_class
        storage_class: StorageClass | None = self.handle.object("StorageClass", name) if name else None
        if storage_class is None:
            text = f"failed to find storage class {quote(name)}" if name else f"no class for claim {quote(claim.key)}"
            self._fail(needed, text)
            return nowhere
        if storage_class.provisioner in ("", NO_PROVISIONER):
            self.codes[needed] |= _BINDING
            return nowhere
        allowed = match_topology_selector_terms(storage_class.allowed_topologies, self.nodes)
        self.codes[needed & ~allowed] |= _BINDING
        possible = needed & allowed
        pools, first = self.storage.pools(claim, storage_class), None
        if pools is not None:
            if self._pools is None or self._pools[0] != pools:
                self._pools = pools, FirstMatch([pool.affinity for pool in pools], self.nodes, self._masks)
            match = self._pools[1]
            first = match.first
            self.codes[possible & (first == match.no_match)] |= _SPACE
            possible = possible & (first != match.no_match)
        self._provisions.append((claim, possible, pools or (), first))
        return possible


def _with_rows(array: BoolArray, rows: int) -> BoolArray:
    """*array* with at least so many rows; doubling keeps adding some cheap, and pages without a True take no memory."""
    if rows <= len(array):
        return array
    made = np.zeros((2 * rows, array.shape[1]), dtype=np.bool_)
    made[: len(array)] = array
    return made
