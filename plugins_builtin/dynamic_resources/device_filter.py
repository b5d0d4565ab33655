"""On which nodes the claims of a pod can be allocated, or are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from plugins_builtin.dynamic_resources.binding_conditions import BindingFailed, has_timed_out, is_ready
from plugins_builtin.dynamic_resources.device_allocator import (
    AllocatorFeatures,
    ClaimSolution,
    DeviceSearch,
    NoDevicesFromInvalidPools,
)
from plugins_builtin.dynamic_resources.device_requests import WantedClaim
from plugins_builtin.dynamic_resources.device_results import score_of
from plugins_builtin.dynamic_resources.device_shapes import TIMED_OUT, Answer, Shape, Shapes
from plugins_builtin.dynamic_resources.extended_resources import ResourceClasses, device_requests
from plugins_builtin.dynamic_resources.pod_claims import NodeResult, PodClaims
from plugins_builtin.dynamic_resources.search_effort import AllocationFailed, Effort, SearchTimedOut
from plugins_builtin.resources.resources import DEVICE_CLASS_PREFIX
from trio_sched.plugin_api import (
    BadNodeSelector,
    BoolArray,
    DeviceClass,
    Handle,
    NodeColumns,
    NodeDevicesCache,
    Pod,
    PoolDevice,
    ResourceClaim,
    Status,
    Verdicts,
    check_node_selector,
    failure,
    is_extended,
    match_node_selector,
    replace_fields,
    unresolvable,
)

if TYPE_CHECKING:
    from plugins_builtin.dynamic_resources.device_selectors import DeviceSelectors
    from plugins_builtin.dynamic_resources.node_allocatable import NodeAllocatable

NO_SOLUTION = unresolvable("cannot allocate all claims")
NOT_AVAILABLE = unresolvable("resourceclaim not available on the node")
NO_SUCH_RESOURCE = unresolvable("cannot fit resource")
LEFT_OVER_CLAIM = unresolvable("cannot schedule extended resource claim")
INVALID_POOLS = unresolvable("invalid resource pools were encountered")


@define(eq=False)
class _Variant:
    """What is to be allocated on some nodes: the same but for the claim for extended resources."""

    wanted: list[WantedClaim]
    shape: Shape
    extended_claim: ResourceClaim | None = None
    mappings: tuple[dict[str, str], ...] = ()


@define(eq=False)
class DeviceFilter:
    """The filter of one profile."""

    handle: Handle
    features: AllocatorFeatures
    selectors: DeviceSelectors
    classes: ResourceClasses
    binding_timeout_seconds: float
    max_tried: int
    node_allocatable: NodeAllocatable | None = None
    """Gate DRANodeAllocatableResources."""
    devices: NodeDevicesCache = field(init=False)
    _shapes: Shapes = field(init=False)

    def __attrs_post_init__(self) -> None:
        features = self.features
        self.devices = NodeDevicesCache(features.partitionable, features.counters_belong_to_nodes)
        self._shapes = Shapes(self.selectors, self.class_named, self.features)

    def shape_of(self, wanted: Sequence[WantedClaim]) -> Shape:
        """The shape of these claims."""
        return self._shapes.of(wanted, self.handle.version("DeviceClass"))

    def verdicts(self, pod: Pod, nodes: NodeColumns, of_pod: PodClaims) -> Verdicts:
        """What the filter says; notes in *of_pod* the scores, and which claims are not available somewhere."""
        self.selectors.effort = Effort(self.max_tried)
        return _NodeFilter(self, pod, nodes, of_pod).verdicts()

    def result_on(self, pod: Pod, node_name: str, of_pod: PodClaims) -> NodeResult | None:
        """What can be allocated on one node, the devices included; None if nothing can, or nothing has to.

        Raises:
            AllocationFailed: something is wrong with a claim, a class, an expression or a slice.
        """
        nodes = self.handle.nodes
        position = nodes.position(node_name)
        if position is None:
            return None
        node = nodes.take(slice(position, position + 1))
        self.selectors.effort = Effort(self.max_tried)
        return _NodeFilter(self, pod, node, of_pod).result()

    def class_named(self, name: str) -> DeviceClass | None:
        """The device class."""
        found: DeviceClass | None = self.handle.object("DeviceClass", name)
        return found


@define(eq=False)
class _NodeFilter:
    """One call of the filter."""

    plugin: DeviceFilter
    pod: Pod
    nodes: NodeColumns
    of_pod: PodClaims
    _statuses: list[Status] = field(factory=list)
    _code_of: dict[int, int] = field(factory=dict)
    _variants: dict[tuple[str, ...], _Variant] = field(factory=dict)
    _may_fail: bool = False

    def verdicts(self) -> Verdicts:
        codes = np.zeros(len(self.nodes), dtype=np.int32)
        unavailable, variants, scores = self._unavailable(), self._variants_by_node(), self.of_pod.scores
        # Claims that are allocated count only beside others that are not.
        has_more = next(self.of_pod.to_allocate(), None) is not None
        of_allocated = sum(map(_score_of_allocated, self.of_pod.claims)) if has_more else 0
        rule = self.plugin.node_allocatable
        for position in range(len(self.nodes)):
            variant = variants[position]
            if isinstance(variant, Status):
                found: Status | int = variant
            elif rule is None or variant is None:
                found = self._score_on(position, variant)
            else:
                found = self._sharing_problem(rule, position) or self._score_on(position, variant)
            missing = [index for index, here in unavailable.items() if here[position]]
            if missing and not isinstance(found, Status):
                self.of_pod.unavailable.update(missing)
                found = NOT_AVAILABLE
            if isinstance(found, Status):
                codes[position] = self._code(found)
            elif variant is not None and found + of_allocated:
                scores[self.nodes.name(position)] = found + of_allocated
        statuses = self._statuses
        return Verdicts(codes, lambda code: statuses[code - 1], may_fail=self._may_fail)

    def result(self) -> NodeResult | None:
        """What was found on the only node; see `DeviceFilter.result_on`."""
        (variant,) = self._variants_by_node()
        if variant is None or isinstance(variant, Status):
            return None
        try:
            solutions = self._search(0, variant.wanted)
        except (NoDevicesFromInvalidPools, BadNodeSelector) as failed:
            raise AllocationFailed(str(failed)) from failed
        return None if solutions is None else NodeResult(tuple(solutions), variant.extended_claim, variant.mappings)

    def _code(self, status: Status) -> int:
        code = self._code_of.get(id(status))
        if code is None:
            self._statuses.append(status)
            code = self._code_of[id(status)] = len(self._statuses)
            self._may_fail |= not status.is_rejected
        return code

    def _variants_by_node(self) -> Sequence[Status | _Variant | None]:
        """Per node what is to be allocated there, None if nothing is; or why the pod cannot run there."""
        handled = self._extended_resources()
        if handled is None:
            return [self._variant(None)] * len(self.nodes)
        return [
            one if isinstance(one, Status) else self._variant(one) if one or self.of_pod.user_claims else None
            for one in handled
        ]

    # --- claims that are allocated ----------------------------------------------------------------------------------

    def _unavailable(self) -> dict[int, BoolArray]:
        """Claims that are allocated and cannot be used everywhere: shape (nodes,), where they cannot."""
        found: dict[int, BoolArray] = {}
        for index, claim in enumerate(self.of_pod.claims):
            if claim.status.allocation is None and index not in self.of_pod.shared_allocations:
                continue
            selector = self.of_pod.selectors.get(index)
            if claim.status.allocation is not None and self.plugin.features.binding_conditions and self._is_lost(claim):
                found[index] = np.ones(len(self.nodes), dtype=np.bool_)
            elif selector is not None:
                found[index] = ~match_node_selector(selector, self.nodes)
        return found

    def _sharing_problem(self, rule: NodeAllocatable, position: int) -> Status | None:
        """Whether the devices of a claim are resources of the node that another pod has."""
        node = self.nodes.node(position)
        for index in range(len(self.of_pod.claims)):
            problem = rule.sharing_problem(self.pod, self.of_pod, index, node, self.nodes.devices)
            selector = self.of_pod.selectors.get(index)
            if problem is not None and (selector is None or match_node_selector(selector, self._one(position))[0]):
                return problem
        return None

    def _one(self, position: int) -> NodeColumns:
        return self.nodes.take(slice(position, position + 1))

    def _is_lost(self, claim: ResourceClaim) -> bool:
        """Whether devices of the claim have failed, or have not become ready in time."""
        try:
            return not is_ready(claim) and has_timed_out(
                claim, self.plugin.binding_timeout_seconds, self.plugin.handle.wall_seconds()
            )
        except BindingFailed:
            return True

    # --- extended resources -----------------------------------------------------------------------------------------

    def _extended_resources(self) -> list[Status | tuple[str, ...]] | None:
        """Per node, the extended resources that devices have to provide, or why the pod cannot run there.

        None if the pod requests none.
        """
        extended = self.of_pod.extended
        if extended is None:
            return None
        if extended.spec.devices.requests is not None:
            return [LEFT_OVER_CLAIM] * len(self.nodes)
        found: list[Status | tuple[str, ...]] = [()] * len(self.nodes)
        for resource in sorted(self.of_pod.extended_amounts):
            if not self.of_pod.extended_amounts[resource] or not is_backed_by_name(resource):
                continue
            row = self.nodes.resource_row(resource)
            is_mapped = self.plugin.classes.class_of(resource) is not None
            allocatable = None if row is None else self.nodes.allocatable[row].tolist()
            for position, here in enumerate(found):
                if isinstance(here, Status) or (allocatable is not None and allocatable[position]):
                    continue
                if is_mapped:
                    found[position] = (*here, resource)
                elif resource not in (self.nodes.node(position).node.status.allocatable or {}):
                    found[position] = NO_SUCH_RESOURCE
        return found

    def _variant(self, resources: tuple[str, ...] | None) -> _Variant:
        """What is to be allocated where devices provide *resources*; None if the pod requests none that they could."""
        key = ("",) if resources is None else resources
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants[key] = self._new_variant(resources)
        return variant

    def _new_variant(self, resources: tuple[str, ...] | None) -> _Variant:
        of_pod = self.of_pod
        extended = of_pod.extended if resources is not None else None
        mappings: tuple[dict[str, str], ...] = ()
        if extended is not None and resources is not None:
            class_of = {one: name for one in resources if (name := self.plugin.classes.class_of(one)) is not None}
            requests, mappings = device_requests(self.pod, class_of)
            devices = replace_fields(extended.spec.devices, requests=requests or None)
            extended = replace_fields(extended, spec=replace_fields(extended.spec, devices=devices))
        wanted = []
        for index, claim in of_pod.to_allocate():
            if index in of_pod.shared_allocations:
                continue
            wanted.append(WantedClaim(claim if extended is None or index != of_pod.extended_index else extended))
        return _Variant(wanted, self.plugin.shape_of(wanted), extended, mappings)

    # --- claims to allocate -----------------------------------------------------------------------------------------

    def _score_on(self, position: int, variant: _Variant | None) -> Status | int:
        """The score of the devices that are found on a node, or why there are none."""
        if variant is None:
            return 0
        rule = self.plugin.node_allocatable
        try:
            if rule is not None and (self.of_pod.shared_allocations or self._has_mappings(position)):
                return self._score_with_node(rule, position, variant)
            if not variant.wanted:
                return 0
            answer = self._answer(position, variant)
        except NoDevicesFromInvalidPools:
            return INVALID_POOLS
        except SearchTimedOut:
            return failure(f"node {self.nodes.name(position)}: timed out trying to allocate devices")
        except (AllocationFailed, BadNodeSelector) as failed:
            return failure(str(failed))
        return answer[1] if answer[0] else NO_SOLUTION

    def _has_mappings(self, position: int) -> bool:
        """Whether devices may take resources of the node itself."""
        return self.plugin.devices.get(self.nodes, position).has_mappings

    def _score_with_node(self, rule: NodeAllocatable, position: int, variant: _Variant) -> Status | int:
        """As `_score_on`, where the devices that are found may take more of the node than it has.

        Raises:
            Exception: what `_search` raises.
        """
        solutions = self._search(position, variant.wanted) if variant.wanted else []
        if solutions is None:
            return NO_SOLUTION
        node = self.nodes.node(position)
        found = rule.claims_on(self.pod, self.of_pod, solutions, node, self.nodes.devices)
        if isinstance(found, Status):
            return found
        if found:
            self.of_pod.node_statuses[node.name] = found
        else:
            self.of_pod.node_statuses.pop(node.name, None)
        return sum(map(_score, solutions))

    def _answer(self, position: int, variant: _Variant) -> Answer:
        """Raises what `_search` raises."""

        def search() -> Answer:
            try:
                solutions = self._search(position, variant.wanted)
            except SearchTimedOut as problem:
                if problem.is_final:
                    return TIMED_OUT
                raise
            return (False, 0) if solutions is None else (True, sum(map(_score, solutions)))

        nodes = self.nodes
        devices = self.plugin.devices.get(nodes, position)
        answer = variant.shape.answer(devices, nodes.devices.allocated, search)
        if answer is None:
            answer = search()
        if answer == TIMED_OUT:
            raise SearchTimedOut(is_final=True)
        return answer

    def _search(self, position: int, wanted: Sequence[WantedClaim]) -> list[ClaimSolution] | None:
        """Look for devices on one node.

        Raises:
            AllocationFailed: something is wrong with a claim, a class, an expression or a slice.
            BadNodeSelector: that of a slice or device.
            NoDevicesFromInvalidPools: there are none, and some pool is invalid.
        """
        plugin, nodes = self.plugin, self.nodes

        def matches(device: PoolDevice) -> bool:
            one = device.device
            if one.node_name:
                return one.node_name == nodes.name(position)
            if one.all_nodes or one.node_selector is None:
                return bool(one.all_nodes)
            check_node_selector(one.node_selector)
            return bool(match_node_selector(one.node_selector, self._one(position))[0])

        search = DeviceSearch(
            wanted,
            plugin.devices.get(nodes, position),
            nodes.devices.allocated,
            plugin.selectors,
            plugin.class_named,
            matches,
            plugin.features,
            plugin.max_tried,
        )
        return search.run()


def is_backed_by_name(resource: str) -> bool:
    """Whether devices can stand behind a resource of that name."""
    return is_extended(resource) or resource.startswith(DEVICE_CLASS_PREFIX)


def _score_of_allocated(claim: ResourceClaim) -> int:
    allocation = claim.status.allocation
    if allocation is None:
        return 0
    lists = [
        (one.name, [alternative.name for alternative in one.first_available])
        for one in claim.spec.devices.requests or ()
        if one.first_available
    ]
    return score_of(lists, [one.request for one in allocation.devices.results or ()]) if lists else 0


def _score(solution: ClaimSolution) -> int:
    lists = [
        (one.name, [wanted.name for wanted in one.alternatives]) for one in solution.wanted.requests if one.is_list
    ]
    return score_of(lists, [one.wanted.full_name for one in solution.devices]) if lists else 0
