"""What was found for a claim, as the allocation in its status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import structs

from plugins_builtin.dynamic_resources.device_allocator import Allocated, ClaimSolution
from plugins_builtin.dynamic_resources.device_capacity import consumed_text
from plugins_builtin.dynamic_resources.search_effort import AllocationFailed
from trio_sched.plugin_api import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Quantity,
)

ConfigurationsOf: TypeAlias = Callable[
    [ClaimSolution, Callable[[str], DeviceClass | None]], Iterable[DeviceAllocationConfiguration]
]

FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


def allocation_of(
    solution: ClaimSolution,
    node_name: str,
    class_named: Callable[[str], DeviceClass | None],
    new_share_id: Callable[[], str],
    *,
    binding_conditions: bool = True,
    configurations_of: ConfigurationsOf | None = None,
) -> AllocationResult:
    """The allocation of *solution* on the node.

    Args:
        solution: the devices of the claim.
        node_name: of the node for which they were found.
        class_named: looks up device classes.
        new_share_id: gives an id that no other result has.
        binding_conditions: gates DRADeviceBindingConditions and DRAResourceClaimDeviceStatus.
        configurations_of: `configurations`, if it is None, or `merged_configurations`.

    Raises:
        AllocationFailed: a node selector has several terms.
    """
    results = tuple(_result(one, new_share_id, binding_conditions) for one in solution.devices)
    found = tuple((configurations_of or configurations)(solution, class_named))
    return AllocationResult(
        devices=DeviceAllocationResult(results=results, config=found or None),
        node_selector=_node_selector(solution, node_name),
    )


def _result(
    found: Allocated, new_share_id: Callable[[], str], binding_conditions: bool
) -> DeviceRequestAllocationResult:
    device, wanted = found.device, found.wanted
    return DeviceRequestAllocationResult(
        request=wanted.full_name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if wanted.admin_access else None,
        tolerations=wanted.tolerations or None,
        binding_conditions=(device.device.binding_conditions or None) if binding_conditions else None,
        binding_failure_conditions=(device.device.binding_failure_conditions or None) if binding_conditions else None,
        share_id=None if found.consumed is None else new_share_id(),
        consumed_capacity=consumed_capacity_of(found) or None,
    )


def consumed_capacity_of(found: Allocated) -> dict[str, Quantity]:
    """What is consumed of the capacities of a shared device."""
    spec = found.wanted.spec
    requested = None if spec.capacity is None else spec.capacity.requests
    return {**consumed_text(found.device, requested, found.consumed or {}, found.capacity_rules)}


def configurations(
    solution: ClaimSolution, class_named: Callable[[str], DeviceClass | None]
) -> Iterable[DeviceAllocationConfiguration]:
    """Those of the classes, each with the requests that it is for, then those of the claim."""
    yield from _of_classes(solution, class_named)
    yield from _of_claim(solution, per_request=True)


def merged_configurations(
    solution: ClaimSolution, class_named: Callable[[str], DeviceClass | None]
) -> Iterable[DeviceAllocationConfiguration]:
    """The same, each once, and without requests if it is for all of them."""
    for one in (*_of_classes(solution, class_named), *_of_claim(solution)):
        is_for_all = one.requests and all(chosen.is_among(one.requests) for chosen in solution.chosen)
        yield structs.replace(one, requests=None) if is_for_all else one


def _of_classes(
    solution: ClaimSolution, class_named: Callable[[str], DeviceClass | None]
) -> Iterable[DeviceAllocationConfiguration]:
    names_by_class: dict[str, list[str]] = {}
    for wanted in solution.chosen:
        names_by_class.setdefault(wanted.class_name, []).append(wanted.full_name)
    for class_name, names in names_by_class.items():
        device_class = class_named(class_name)
        for from_class in () if device_class is None else device_class.spec.config or ():
            yield DeviceAllocationConfiguration(source=FROM_CLASS, requests=tuple(names), opaque=from_class.opaque)


def _of_claim(solution: ClaimSolution, *, per_request: bool = False) -> Iterable[DeviceAllocationConfiguration]:
    """Those of the claim that are for a request of it: once, or once *per_request*."""
    for config in solution.wanted.claim.spec.devices.config or ():
        requests = config.requests or None
        times = 1 if requests is None else sum(one.is_among(requests) for one in solution.chosen)
        for _time in range(times if per_request else min(times, 1)):
            yield DeviceAllocationConfiguration(source=FROM_CLAIM, requests=requests, opaque=config.opaque)


def _node_selector(solution: ClaimSolution, node_name: str) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for found in solution.devices:
        device, spec = found.device.device, found.device.slice.spec
        of_device = bool(spec.per_device_node_selection)
        named = device.node_name if of_device else spec.node_name
        if named is not None or device.binds_to_node:
            one = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(one,)),))
        selector = device.node_selector if of_device else spec.node_selector
        terms = () if selector is None else selector.node_selector_terms or ()
        if len(terms) > 1:
            name = solution.wanted.claim.metadata.name
            raise AllocationFailed(
                f"create NodeSelector for claim {name}: unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _add_new(term.match_fields or (), fields)
            _add_new(term.match_expressions or (), expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields) or None, match_expressions=tuple(expressions) or None)
    return NodeSelector(node_selector_terms=(term,))


def _add_new(requirements: Sequence[NodeSelectorRequirement], to: list[NodeSelectorRequirement]) -> None:
    for one in requirements:
        if not any(_is_same(one, other) for other in to):
            to.append(one)


def _is_same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    same_values = set(one.values or ()) == set(other.values or ())
    return one.key == other.key and one.operator == other.operator and same_values


MAX_ALTERNATIVES = 8
"""The most alternatives of a prioritised list."""


def score_of(requests: Iterable[tuple[str, Sequence[str]]], results: Iterable[str]) -> int:
    """The score of an allocation: the earlier an alternative of a prioritised list, the more.

    Args:
        requests: the prioritised lists: name, and the names of the alternatives.
        results: the names in the results of the allocation.
    """
    chosen = set(results)
    return sum(
        MAX_ALTERNATIVES - index
        for name, alternatives in requests
        for index, alternative in enumerate(alternatives)
        if f"{name}/{alternative}" in chosen
    )
