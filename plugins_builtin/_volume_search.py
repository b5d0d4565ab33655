"""On which nodes a pod can have all of its volumes, and which these would be.

The nodes are asked all at once; what exactly the pod would get is worked out for the chosen one alone.
Source: FindPodVolumes of kube-scheduler's volume binder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field, frozen

from plugins_builtin._assume_cache import AssumeCache
from plugins_builtin._csi_translation import TranslationError, in_tree_plugin, is_migrated_on, translated_affinity
from plugins_builtin._first_reachable import FirstReachable
from plugins_builtin._volume_supply import BadSelector, Pool, VolumeSupply, allowed_by, first_pools
from plugins_builtin._volumes import NO_PROVISIONER, SELECTED_NODE, reachable_from, requested_nano
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
    unresolvable,
)

REASON_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
REASON_BINDING = "node(s) didn't find available persistent volumes to bind"
REASON_SPACE = "node(s) did not have enough free storage"
REASON_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

_AFFINITY, _BINDING, _SPACE, _MISSING, _FIRST_ERROR = 1, 2, 4, 8, 16
_REASONS = {_AFFINITY: REASON_AFFINITY, _BINDING: REASON_BINDING, _SPACE: REASON_SPACE, _MISSING: REASON_MISSING}
_NOTHING = -1


@frozen(eq=False)
class PodClaims:
    """The claims of a pod, as they were when its scheduling cycle began."""

    bound: Sequence[PersistentVolumeClaim] = ()
    delayed: Sequence[PersistentVolumeClaim] = ()
    """Those that get their volume once the pod has its node."""


@frozen(eq=False)
class Provision:
    """A claim for which a volume is made, and the pool that it comes from, if the driver says what pools it has."""

    claim: PersistentVolumeClaim
    pool: Pool | None = None


@frozen(eq=False)
class PodVolumes:
    """What a pod gets on one node."""

    static: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]]
    dynamic: Sequence[Provision]


@define(eq=False)
class VolumeSearch:
    """Looks for the volumes of one pod on some nodes."""

    handle: Handle
    volumes: AssumeCache[PersistentVolume]
    supply: VolumeSupply
    claims: PodClaims
    nodes: NodeColumns
    codes: Int64Array = field(init=False)
    """Shape (nodes,): what is wrong, as bits; 0 where the pod gets everything."""
    _errors: list[str] = field(factory=list)
    _known: list[PersistentVolume] = field(factory=list)
    """Volumes that lie ready for some claim of the pod; their numbers are places in this list."""
    _numbers: dict[str, int] = field(factory=dict)
    _chosen: list[tuple[PersistentVolumeClaim, Int64Array]] = field(factory=list)
    """For each claim the number of the volume that each node would give it."""
    _provisions: list[tuple[PersistentVolumeClaim, BoolArray, Sequence[Pool], Int64Array | None]] = field(factory=list)
    """Claims for which volumes would be made, where, and from which pools."""

    def run(self) -> VolumeSearch:
        """Do it; returns itself."""
        self.codes = np.zeros(len(self.nodes), dtype=np.int64)
        self._check_bound()
        if self.claims.delayed:
            self._find_delayed()
        return self

    @property
    def verdicts(self) -> Verdicts:
        """What is wrong with each node."""
        return Verdicts(self.codes, self._explain, may_fail=bool(self._errors))

    def at(self, position: int) -> PodVolumes:
        """What the pod gets on the node at *position*, which must have passed."""
        static = [
            (self._known[int(chosen[position])], claim)
            for claim, chosen in self._chosen
            if chosen[position] != _NOTHING
        ]
        dynamic = []
        for claim, where, pools, first in self._provisions:
            if where[position]:
                dynamic.append(Provision(claim, pools[int(first[position])] if first is not None else None))
        return PodVolumes(static, dynamic)

    def _explain(self, code: int) -> Status:
        if code >= _FIRST_ERROR:
            return failure(self._errors[code // _FIRST_ERROR - 1])
        return unresolvable(*[reason for bit, reason in _REASONS.items() if code & bit])

    def _fail(self, where: BoolArray, text: str) -> None:
        """An error is all that counts on a node, whatever else is wrong with it."""
        self._errors.append(text)
        self.codes[where & (self.codes < _FIRST_ERROR)] = _FIRST_ERROR * len(self._errors)

    # --- claims that have their volume ------------------------------------------------------------------------------

    def _check_bound(self) -> None:
        going = np.ones(len(self.nodes), dtype=np.bool_)
        for claim in self.claims.bound:
            volume = self.volumes.get(claim.spec.volume_name)
            if volume is None:
                self.codes[going] |= _MISSING
                return
            reached = self._reached(volume, going)
            self.codes[going & ~reached & (self.codes < _FIRST_ERROR)] |= _AFFINITY
            going &= reached
            if not going.any():
                return

    def _reached(self, volume: PersistentVolume, going: BoolArray) -> BoolArray:
        """Shape (nodes,): where *volume* can be reached; in the labels of the CSI driver where that has taken over."""
        reached = reachable_from(volume.required_affinity, self.nodes)
        plugin = in_tree_plugin(volume.spec)
        if plugin is None or not plugin.migrated:
            return reached
        names = self.nodes.names
        migrated = np.fromiter(
            (is_migrated_on(plugin, self.handle.object("CSINode", name)) for name in names), np.bool_, len(names)
        )
        if not migrated.any():
            return reached
        try:
            translated = reachable_from(translated_affinity(volume, plugin), self.nodes)
        except TranslationError as error:
            self._fail(going & migrated, f"could not translate pv: {error}")
            return reached & ~migrated
        return np.where(migrated, translated, reached)

    # --- claims that wait for the pod's node ------------------------------------------------------------------------

    def _find_delayed(self) -> None:
        active = self.codes < _FIRST_ERROR
        to_match, to_provision = [], []
        for claim in self.claims.delayed:
            selected = (claim.metadata.annotations or {}).get(SELECTED_NODE)
            if selected is None:
                to_match.append(claim)
                continue
            to_provision.append(claim)
            there = np.zeros(len(self.nodes), dtype=np.bool_)
            position = self.nodes.position(selected)
            if position is not None:
                there[position] = True
            self.codes[active & ~there] |= _BINDING
            active &= there
        needs = [(claim, active.copy()) for claim in to_provision]
        for claim in sorted(to_match, key=requested_nano):
            try:
                chosen = self._choose(claim, active)
            except BadSelector as error:
                self._fail(active, str(error))
                return
            self._chosen.append((claim, chosen))
            needs.append((claim, active & (chosen == _NOTHING)))
        for claim, where in needs:
            going = where & active
            if going.any():
                active &= ~going | self._can_provision(claim, going)

    def _choose(self, claim: PersistentVolumeClaim, active: BoolArray) -> Int64Array:
        """Shape (nodes,): the number of the volume that each node gives to *claim*, besides those given already."""
        candidates = self.supply.candidates(claim)
        nothing = np.full(len(self.nodes), _NOTHING, dtype=np.int64)
        if not candidates.volumes or not active.any():
            return nothing
        first = FirstReachable([volume.required_affinity for volume in candidates.volumes], self.nodes)
        numbers = np.array([*map(self._number, candidates.volumes), _NOTHING], dtype=np.int64)
        chosen: Int64Array = numbers[first.best]
        if candidates.kept_for_it:
            return chosen
        clash = np.zeros(len(self.nodes), dtype=np.bool_)
        for _claim, others in self._chosen:
            clash |= (others == chosen) & (chosen != _NOTHING)
        for position in np.flatnonzero(clash & active).tolist():
            taken = {int(others[position]) for _claim, others in self._chosen}
            free = (int(numbers[rank]) for rank in first.ranks_at(position))
            chosen[position] = next((number for number in free if number not in taken), _NOTHING)
        return chosen

    def _number(self, volume: PersistentVolume) -> int:
        number = self._numbers.get(volume.name)
        if number is None:
            number = self._numbers[volume.name] = len(self._known)
            self._known.append(volume)
        return number

    def _can_provision(self, claim: PersistentVolumeClaim, going: BoolArray) -> BoolArray:
        """Shape (nodes,): where a volume can be made for *claim*; notes on the other nodes of *going* why not."""
        nowhere = np.zeros(len(self.nodes), dtype=np.bool_)
        name = claim.storage_class
        storage_class: StorageClass | None = self.handle.object("StorageClass", name) if name else None
        if storage_class is None:
            text = f'failed to find storage class "{name}"' if name else f'no class for claim "{claim.key}"'
            self._fail(going, text)
            return nowhere
        if storage_class.provisioner in ("", NO_PROVISIONER):
            self.codes[going] |= _BINDING
            return nowhere
        allowed = allowed_by(storage_class.allowed_topologies, self.nodes)
        self.codes[going & ~allowed] |= _BINDING
        possible = going & allowed
        pools, first = self.supply.pools(claim, storage_class), None
        if pools is not None:
            found = first_pools(pools, self.nodes)
            first = found.best
            self.codes[possible & (first == found.none)] |= _SPACE
            possible = possible & (first != found.none)
        self._provisions.append((claim, possible, pools or (), first))
        return possible
