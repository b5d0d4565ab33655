"""Looks for devices for claims on one node: depth first, the first solution wins.

The order in which devices are tried, which `trio_sched.snapshot.node_devices` has made, and what is found are those of
kube-scheduler's "incubating" allocator. Its bookkeeping is followed where it shows: before 1.37,
counters stay consumed if a later check rejects the device.

Source: the structured allocator of Kubernetes 1.36 and 1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, field, frozen

from plugins_builtin.dynamic_resources.device_capacity import (
    DEFAULT_RULES,
    CapacityRules,
    ImpossibleCapacity,
    consumed_capacity,
    has_room,
)
from plugins_builtin.dynamic_resources.device_constraints import Constraint, UnknownConstraint, constraint_of
from plugins_builtin.dynamic_resources.device_counters import PoolCounters
from plugins_builtin.dynamic_resources.device_requests import (
    ALL,
    EXACT_COUNT,
    MAX_RESULTS,
    Wanted,
    WantedClaim,
    WantedRequest,
)
from plugins_builtin.dynamic_resources.search_effort import (
    MAX_DEVICES_TRIED,
    AllocationFailed,
    SearchTimedOut,
    SelectorFailed,
)
from trio_sched.plugin_api import (
    AllocatedDevices,
    DeviceClass,
    DeviceConstraint,
    DeviceId,
    NodeDevices,
    PoolDevice,
    SharedUse,
    quote,
)

if TYPE_CHECKING:
    from plugins_builtin.dynamic_resources.device_selectors import DeviceSelectors

_FREE_STEPS = 64
_FREE_REQUESTS = 4


class NoDevicesFromInvalidPools(Exception):
    """There is no solution, but some pool of the node is invalid."""


@frozen
class AllocatorFeatures:
    """Gates."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable: bool = True
    taints: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    list_attributes: bool = False
    capacity_rules: CapacityRules = DEFAULT_RULES
    # No gates; see `trio_sched.plugin_api.behaviour.Behaviour`.
    failed_selectors_name_device: bool = False
    search_undoes_everything: bool = False
    every_device_is_distinct: bool = False
    all_devices_need_room: bool = False
    counters_belong_to_nodes: bool = False


@frozen(eq=False)
class Allocated:
    """A device that was found for a request."""

    wanted: Wanted
    device: PoolDevice
    consumed: Mapping[str, int] | None
    """What is consumed of its capacities, in nano units; None if the device is not shared."""
    has_taken_counters: bool = False
    """Whether it was for this request that the counters were taken which the device consumes."""
    capacity_rules: CapacityRules = DEFAULT_RULES


@frozen(eq=False)
class ClaimSolution:
    """The devices for one claim."""

    wanted: WantedClaim
    devices: tuple[Allocated, ...]
    chosen: tuple[Wanted, ...]
    """The alternative that was chosen for each request."""


class _Outcome(Enum):
    FAILED = "failed"
    DONE = "done"
    TOO_MANY = "too many devices"


_Search: TypeAlias = Generator["_Search", _Outcome, _Outcome]


@define(eq=False)
class _Candidates:
    """What is known of one alternative before the search."""

    wanted: Wanted
    device_class: DeviceClass
    count: int = 0
    all_devices: list[PoolDevice] = field(factory=list)


@define(eq=False)
class DeviceSearch:
    """Looks for devices for some claims on one node."""

    claims: Sequence[WantedClaim]
    node: NodeDevices
    allocated: AllocatedDevices
    selectors: DeviceSelectors
    class_named: Callable[[str], DeviceClass | None]
    device_matches_node: Callable[[PoolDevice], bool]
    """Whether the node is one of those that a device with a node selection of its own can be used on."""
    features: AllocatorFeatures = AllocatorFeatures()
    max_tried: int = MAX_DEVICES_TRIED
    _candidates: list[list[list[_Candidates]]] = field(factory=list, init=False)
    """By claim, request and alternative."""
    _chosen: list[list[int]] = field(factory=list, init=False)
    _constraints: list[list[Constraint]] = field(factory=list, init=False)
    _results: list[list[Allocated]] = field(factory=list, init=False)
    _taken: dict[DeviceId, set[int]] = field(factory=dict, init=False)
    """Devices found in this attempt that are not shareable, with the claims they are for."""
    _consumed: dict[DeviceId, SharedUse] = field(factory=dict, init=False)
    """What is consumed in this attempt of shareable devices."""
    _counters: PoolCounters = field(init=False)
    _selectable: dict[tuple[int, DeviceId], bool] = field(factory=dict, init=False)
    _tried: int = field(default=0, init=False)
    _may_try: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._counters = PoolCounters(self.node, self.allocated, by_driver=self.features.search_undoes_everything)

    def run(self) -> list[ClaimSolution] | None:
        """A solution for all claims, or None if there is none.

        Raises:
            AllocationFailed: a claim, a class or an expression is wrong, or the search took too long.
            NoDevicesFromInvalidPools: there is none, and some pool is invalid.
        """
        effort = self.selectors.effort
        requests = min(sum(len(claim.requests) for claim in self.claims), _FREE_REQUESTS)
        free = _FREE_STEPS + 2 * requests * len(self.node.devices)
        self._may_try = min(self.max_tried, free + max(effort.left, 0))
        try:
            for index, claim in enumerate(self.claims):
                self._prepare(index, claim)
            outcome = self._run()
        finally:
            effort.left -= max(self._tried - free, 0)
        if outcome is _Outcome.TOO_MANY:
            return None
        if outcome is _Outcome.FAILED:
            if any(pool.is_invalid for pool in self.node.pools):
                raise NoDevicesFromInvalidPools
            return None
        return [self._solution(index) for index in range(len(self.claims))]

    def _solution(self, index: int) -> ClaimSolution:
        chosen = tuple(
            alternatives[self._chosen[index][request]].wanted
            for request, alternatives in enumerate(self._candidates[index])
        )
        return ClaimSolution(self.claims[index], tuple(self._results[index]), chosen)

    def _run(self) -> _Outcome:
        """A stack of generators in place of recursion: pods can ask for more devices than Python nests calls."""
        stack: list[_Search] = [self._from_request(0, 0)]
        outcome: _Outcome | None = None
        while stack:
            try:
                inner = next(stack[-1]) if outcome is None else stack[-1].send(outcome)
            except StopIteration as stop:
                stack.pop()
                outcome = stop.value
            else:
                stack.append(inner)
                outcome = None
        assert outcome is not None
        return outcome

    # --- before the search ------------------------------------------------------------------------------------------

    def _prepare(self, index: int, claim: WantedClaim) -> None:
        fewest_in_all = 0
        of_claim: list[list[_Candidates]] = []
        self._candidates.append(of_claim)
        self._chosen.append([0] * len(claim.requests))
        self._results.append([])
        for request in claim.requests:
            self._check_gates(claim, request)
            of_claim.append([self._candidates_of(claim, wanted) for wanted in request.alternatives])
            fewest_in_all += min(one.count for one in of_claim[-1])
        if fewest_in_all > MAX_RESULTS:
            raise AllocationFailed(
                f"claim {claim}: number of requested devices {fewest_in_all} exceeds the claim limit of {MAX_RESULTS}"
            )
        constraints: list[Constraint] = []
        for number, spec in enumerate(claim.constraints):
            try:
                constraints.append(self._constraint(spec))
            except UnknownConstraint:
                text = f"claim {claim}, constraint #{number}: empty constraint (unsupported constraint type?)"
                raise AllocationFailed(text) from None
        self._constraints.append(constraints)

    def _constraint(self, spec: DeviceConstraint) -> Constraint:
        features = self.features
        return constraint_of(spec, lists=features.list_attributes, every_distinct=features.every_device_is_distinct)

    def _check_gates(self, claim: WantedClaim, request: WantedRequest) -> None:
        if request.is_list and not self.features.prioritized_list:
            text = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise AllocationFailed(f"claim {claim}, request {request.name}: {text}")
        if self.features.consumable_capacity:
            return
        for wanted in request.alternatives:
            if wanted.spec.capacity is not None:
                what = "subrequest" if wanted.parent else "request"
                raise AllocationFailed(
                    f"claim {claim}, {what} {wanted.name}: has capacity requests, but the DRAConsumableCapacity "
                    "feature is disabled"
                )

    def _candidates_of(self, claim: WantedClaim, wanted: Wanted) -> _Candidates:
        where = f"claim {claim}, request {wanted.name}"
        for number, expression in enumerate(wanted.selectors):
            if expression is None:
                raise AllocationFailed(
                    f"{where}, selector #{number}: CEL expression empty (unsupported selector type?)"
                )
        if wanted.has_admin_access and not self.features.admin_access:
            raise AllocationFailed(f"{where}: admin access is requested, but the feature is disabled")
        if not wanted.class_name:
            raise AllocationFailed(f"{where}: missing device class name (unsupported request type?)")
        device_class = self.class_named(wanted.class_name)
        if device_class is None:
            not_found = f"deviceclass.resource.k8s.io {quote(wanted.class_name)} not found"
            raise AllocationFailed(f"{where}: could not retrieve device class {wanted.class_name}: {not_found}")
        found = _Candidates(wanted, device_class)
        if wanted.mode == EXACT_COUNT:
            found.count = wanted.count
        elif wanted.mode == ALL:
            self._collect_all(claim, found, where)
        else:
            raise AllocationFailed(f"{where}: unsupported count mode {wanted.mode}")
        return found

    def _collect_all(self, claim: WantedClaim, found: _Candidates, where: str) -> None:
        for pool in self.node.pools:
            if not pool.is_usable:
                state = "currently being updated" if pool.is_incomplete else "currently invalid"
                raise AllocationFailed(f"{where}: asks for all devices, but resource pool {pool} is {state}")
            for device in pool.devices:
                if self._is_selectable(claim, found, device) and self._is_one_of_all(claim, found.wanted, device):
                    found.all_devices.append(device)
        found.count = len(found.all_devices)

    def _is_one_of_all(self, claim: WantedClaim, wanted: Wanted, device: PoolDevice) -> bool:
        if self.features.all_devices_need_room:
            return self._has_room(claim, wanted, device, if_unused=True)
        return self._has_room(claim, wanted, device)

    # --- the search -------------------------------------------------------------------------------------------------

    def _from_request(self, claim: int, request: int) -> _Search:
        """Everything from this request on."""
        if claim >= len(self.claims):
            return _Outcome.DONE
        if request >= len(self._candidates[claim]):
            outcome = yield self._from_request(claim + 1, 0)
            # A later claim needs too many devices: with other alternatives for this one it may need fewer.
            return _Outcome.FAILED if outcome is _Outcome.TOO_MANY else outcome
        if not self.claims[claim].requests[request].is_list:
            outcome = yield self._from_device(claim, request, 0, 0, 0)
            return outcome
        all_too_many = True
        for number in range(len(self._candidates[claim][request])):
            outcome = yield self._from_device(claim, request, number, 0, 0)
            if outcome is _Outcome.DONE:
                self._chosen[claim][request] = number
                return outcome
            all_too_many &= outcome is _Outcome.TOO_MANY
        return _Outcome.TOO_MANY if all_too_many else _Outcome.FAILED

    def _from_device(self, claim: int, request: int, number: int, device_index: int, start: int) -> _Search:
        """Everything from one device of an alternative on; devices before *start* have been tried."""
        self._count_step()
        candidates = self._candidates[claim][request][number]
        wanted, of_all = candidates.wanted, candidates.wanted.mode == ALL
        if of_all and not candidates.all_devices:
            return _Outcome.FAILED
        if device_index >= candidates.count:
            outcome = yield self._from_request(claim, request + 1)
            return outcome
        if len(self._results[claim]) + candidates.count - device_index > MAX_RESULTS:
            return _Outcome.TOO_MANY
        if of_all:
            device = candidates.all_devices[device_index]
            if not self._take(claim, wanted, device, must=True):
                return _Outcome.FAILED
            outcome = yield self._from_device(claim, request, number, device_index + 1, 0)
            if outcome is not _Outcome.DONE:
                self._give_back(claim, wanted, device)
            return outcome
        devices = self.node.devices
        for position in range(start, len(devices)):
            device = devices[position]
            if not self._is_candidate(claim, candidates, device) or not self._take(claim, wanted, device, must=False):
                continue
            outcome = yield self._from_device(claim, request, number, device_index + 1, position + 1)
            if outcome is _Outcome.DONE:
                return outcome
            self._give_back(claim, wanted, device)
            if outcome is _Outcome.TOO_MANY:
                return outcome
        return _Outcome.FAILED

    def _is_candidate(self, claim: int, candidates: _Candidates, device: PoolDevice) -> bool:
        self._count_step()
        wanted = candidates.wanted
        if claim in self._taken.get(device.id, ()) if wanted.admin_access else self._is_in_use(device.id):
            return False
        of_claim = self.claims[claim]
        return self._is_selectable(of_claim, candidates, device) and self._has_room(of_claim, wanted, device)

    def _count_step(self) -> None:
        self._tried += 1
        if self._tried > self._may_try:
            raise SearchTimedOut(is_final=self._tried > self.max_tried)

    def _is_in_use(self, device: DeviceId) -> bool:
        if self._taken.get(device) or device in self.allocated.dedicated:
            return True
        return not self.features.consumable_capacity and device in self.allocated.shared

    # --- one device -------------------------------------------------------------------------------------------------

    def _is_selectable(self, claim: WantedClaim, candidates: _Candidates, device: PoolDevice) -> bool:
        if device.device.binding_conditions and not self.features.binding_conditions:
            return False
        key = id(candidates), device.id
        found = self._selectable.get(key)
        if found is None:
            found = self._selectable[key] = self._matches(claim, candidates, device)
        return found

    def _matches(self, claim: WantedClaim, candidates: _Candidates, device: PoolDevice) -> bool:
        device_class = candidates.device_class
        for number, selector in enumerate(device_class.spec.selectors or ()):
            expression = "" if selector.cel is None else selector.cel.expression
            if not self._expression_matches(expression, device, f"class {device_class.name}: selector #{number}"):
                return False
        for number, wanted_expression in enumerate(candidates.wanted.selectors):
            where = f"claim {claim}: selector #{number}"
            if not self._expression_matches(wanted_expression or "", device, where):
                return False
        return not device.slice.spec.per_device_node_selection or self.device_matches_node(device)

    def _expression_matches(self, expression: str, device: PoolDevice, where: str) -> bool:
        try:
            return self.selectors.matches(expression, device)
        except SelectorFailed as failed:
            if self.features.failed_selectors_name_device and failed.is_runtime_error:
                raise AllocationFailed(f"{where} on device {device.id}: {failed}{_advice(failed)}") from failed
            raise AllocationFailed(f"{where}: {failed}") from failed

    def _has_room(self, claim: WantedClaim, wanted: Wanted, device: PoolDevice, *, if_unused: bool = False) -> bool:
        """Whether as much is left of the capacities of *device*; *if_unused*: of those that nothing is consumed of.

        Raises:
            AllocationFailed: no device can serve what is requested.
        """
        if not self.features.consumable_capacity:
            return True
        if not device.device.capacity:
            return not wanted.capacity
        used = None if if_unused else self.allocated.consumed.get(device.id)
        in_attempt = None if if_unused else self._consumed.get(device.id)
        try:
            return has_room(
                device,
                wanted.capacity,
                {} if used is None else used.consumed,
                {} if in_attempt is None else in_attempt.consumed,
                rules=self.features.capacity_rules,
            )
        except ImpossibleCapacity as problem:
            raise AllocationFailed(f"claim {claim}, request {wanted.name}: {problem}") from problem

    def _take(self, claim: int, wanted: Wanted, device: PoolDevice, *, must: bool) -> bool:
        """Allocate *device* in this attempt; False if it cannot be.

        Raises:
            AllocationFailed: it cannot, although all devices are asked for.
        """
        is_shared = self.features.consumable_capacity and device.is_shareable
        if wanted.admin_access and not is_shared and claim in self._taken.get(device.id, ()):
            return False
        if not wanted.admin_access and self._is_in_use(device.id):
            return False
        takes_counters = False
        if device.device.consumes_counters:
            if not self.features.partitionable:
                return False
            takes_counters = not (is_shared and self._is_shared_already(device.id))
            if takes_counters and not self._counters.take(device):
                return False
        if self.features.taints and is_tainted(wanted, device):
            self._undo(device, takes_counters)
            return False
        constraints = self._constraints[claim]
        for number, constraint in enumerate(constraints):
            if constraint.add(wanted, device):
                continue
            if must:
                raise AllocationFailed(
                    f"claim {self.claims[claim]}, request {wanted.name}: cannot add device {device.id} because a claim "
                    "constraint would not be satisfied"
                )
            for earlier in constraints[:number]:
                earlier.remove(wanted, device)
            self._undo(device, takes_counters)
            return False
        if not is_shared:
            self._taken.setdefault(device.id, set()).add(claim)
        consumed: Mapping[str, int] | None = None
        if self.features.consumable_capacity:
            if not self._has_room(self.claims[claim], wanted, device):
                if self.features.search_undoes_everything:
                    self._taken.get(device.id, set()).discard(claim)
                    for constraint in constraints:
                        constraint.remove(wanted, device)
                    self._undo(device, takes_counters)
                return False
            if is_shared:
                consumed = consumed_capacity(device, wanted.capacity, self.features.capacity_rules)
                use = self._consumed.setdefault(device.id, SharedUse())
                use.shares += 1
                for name, amount in consumed.items():
                    use.consumed[name] += amount
        self._results[claim].append(Allocated(wanted, device, consumed, takes_counters, self.features.capacity_rules))
        return True

    def _is_shared_already(self, device: DeviceId) -> bool:
        if device in self.allocated.consumed or device in self._consumed:
            return True
        return self.features.search_undoes_everything and device in self.allocated.shared

    def _undo(self, device: PoolDevice, has_taken_counters: bool) -> None:
        """Give back the counters of *device*, which was rejected."""
        if has_taken_counters and self.features.search_undoes_everything:
            self._counters.give_back(device)

    def _give_back(self, claim: int, wanted: Wanted, device: PoolDevice) -> None:
        for constraint in self._constraints[claim]:
            constraint.remove(wanted, device)
        self._taken.get(device.id, set()).discard(claim)
        given_back = self._results[claim].pop()
        if given_back.consumed is not None:
            use = self._consumed[device.id]
            use.shares -= 1
            for name, amount in given_back.consumed.items():
                use.consumed[name] -= amount
            if use.shares <= 0:
                del self._consumed[device.id]
        if given_back.has_taken_counters and (given_back.consumed is None or self.features.search_undoes_everything):
            self._counters.give_back(device)


def is_tainted(wanted: Wanted, device: PoolDevice) -> bool:
    """Whether *device* has a taint that *wanted* does not tolerate."""
    for taint in device.device.taints or ():
        if taint.effect not in ("NoSchedule", "NoExecute"):
            continue
        for one in wanted.tolerations:
            if one.effect and one.effect != taint.effect:
                continue
            if one.key and one.key != taint.key:
                continue
            if one.operator == "Exists" or (one.operator in ("", "Equal") and one.value == taint.value):
                break
        else:
            return True
    return False


_MISSING_KEY_ADVICE = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)


def _advice(failed: SelectorFailed) -> str:
    """What to write instead of a selector that reads what the device does not have; empty for other errors."""
    return _MISSING_KEY_ADVICE if "no such key:" in str(failed) else ""
