"""Devices that take resources of the node itself, CPU for instance, as in 1.36; gate DRANodeAllocatableResources.

Source: node allocatable resources of DynamicResources in kube-scheduler 1.36, texts included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, frozen

from plugins_builtin.dynamic_resources.device_allocator import ClaimSolution
from plugins_builtin.dynamic_resources.device_results import consumed_capacity_of
from plugins_builtin.dynamic_resources.pod_claims import PodClaims, path_of
from plugins_builtin.dynamic_resources.search_effort import AllocationFailed
from trio_sched.plugin_api import (
    AllocationResult,
    Device,
    DeviceId,
    DeviceTable,
    NodeAllocatableResourceClaimStatus,
    NodeAllocatableResourceMapping,
    NodeView,
    Pod,
    Quantity,
    QuantityStyle,
    ResourceAmounts,
    ResourceClaim,
    ResourceOptions,
    Status,
    format_nano,
    nano_requests,
    parse_nano,
    replace_fields,
    style_of,
    to_amounts,
    unresolvable,
    unschedulable,
)

NANO = 10**9
ClaimStatuses = tuple[NodeAllocatableResourceClaimStatus, ...]


@frozen
class Used:
    """An allocated device, and what is consumed of its capacities; None if it is not shared."""

    id: DeviceId
    device: Device | None
    consumed: Mapping[str, Quantity] | None


@frozen
class Amount:
    """An amount that is shown as the first quantity that was not zero."""

    nano: int
    style: QuantityStyle

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nano + other.nano, self.style if self.nano else other.style)


@define(eq=False)
class NodeAllocatable:
    """What the devices of pods take of their nodes."""

    options: ResourceOptions
    """With *device_claims*."""
    for_groups: bool = False
    """Gate DRAWorkloadResourceClaims."""

    def sharing_problem(
        self, pod: Pod, of_pod: PodClaims, index: int, node: NodeView, devices: DeviceTable
    ) -> Status | None:
        """Whether the devices of the claim at *index* are resources of *node* that another pod has already."""
        claim = of_pod.claims[index]
        if claim.status.allocation is None:
            return None
        users = {
            one.uid
            for one in node.pods
            for status in one.status.node_allocatable_resource_claim_statuses or ()
            if status.resource_claim_name == claim.name and one.namespace == pod.namespace
        }
        if len(users) > 1:
            return unresolvable(f"node allocatable resource claim {claim.name} shared by multiple pods")
        if users and pod.uid not in users:
            return unresolvable(f"node allocatable resource claim {claim.name} is already used by another pod")
        return None

    def claims_on(
        self, pod: Pod, of_pod: PodClaims, solutions: Sequence[ClaimSolution], node: NodeView, devices: DeviceTable
    ) -> ClaimStatuses | Status:
        """What the devices for the claims that are not allocated yet take of *node*; or why that is too much.

        Args:
            pod: the pod.
            of_pod: its claims.
            solutions: what was found on the node, for the claims that are not in flight.
            node: the node.
            devices: those of the cluster.

        Raises:
            AllocationFailed: a mapping of a device cannot be followed.
        """
        found = self._statuses(pod, of_pod, solutions, devices)
        for one in found:
            if not one.containers:
                text = "node-allocatable resource claim not referenced by any container within the pod"
                return unresolvable(f"claim {one.resource_claim_name}: {text}")
        return (self._problem(pod, found, node) or found) if found else ()

    # --- what they take ---------------------------------------------------------------------------------------------

    def _statuses(
        self, pod: Pod, of_pod: PodClaims, solutions: Sequence[ClaimSolution], devices: DeviceTable
    ) -> ClaimStatuses:
        remaining = iter(solutions)
        found = []
        seen: set[str] = set()
        for index, claim in of_pod.to_allocate():
            in_flight = of_pod.shared_allocations.get(index)
            used = used_by(next(remaining)) if in_flight is None else used_in(in_flight, devices)
            is_mapped = any(one.device is not None and one.device.node_allocatable_resource_mappings for one in used)
            if not is_mapped or claim.metadata.uid in seen:
                continue
            seen.add(claim.metadata.uid)
            amounts = _amounts_of(claim, used)
            if amounts:
                names = {name for name, one in of_pod.entries if one.metadata.uid == claim.metadata.uid}
                found.append(
                    NodeAllocatableResourceClaimStatus(
                        resource_claim_name=claim.name,
                        containers=containers_with(pod, names) or None,
                        resources={name: format_nano(one.nano, one.style) for name, one in amounts.items()},
                    )
                )
        return tuple(sorted(found, key=lambda one: one.resource_claim_name))

    # --- whether the node has that much -----------------------------------------------------------------------------

    def _problem(self, pod: Pod, statuses: ClaimStatuses, node: NodeView) -> Status | None:
        status = replace_fields(pod.status, node_allocatable_resource_claim_statuses=statuses)
        pod = replace_fields(pod, status=status)
        total = nano_requests(pod, self.options)
        if self.options.pod_level and pod.spec.resources is not None and pod.spec.resources.requests is not None:
            # The API server compares pod-level requests with those of the containers, but knows no devices.
            without_pod_level = nano_requests(pod, self.options, use_pod_level=False)
            for name in sorted(total):
                if without_pod_level.get(name, total[name]) > total[name]:
                    return unresolvable(
                        f"pod level request for {name} is insufficient to cover the aggregated container and "
                        "node-allocatable DRA requests"
                    )
        return self._limit_problem(pod) or _fit_problem(to_amounts(total), node)

    def _limit_problem(self, pod: Pod) -> Status | None:
        """Whether the limits of *pod* as a whole are too low for what its status says that its devices take."""
        return None


def _fit_problem(amounts: ResourceAmounts, node: NodeView) -> Status | None:
    reasons, is_unresolvable = [], False
    for name, amount in amounts.amounts():
        is_huge_page = name.startswith("hugepages-")
        if not is_huge_page and (amount <= 0 or name not in ("cpu", "memory", "ephemeral-storage")):
            continue  # NodeResourcesFit looks at the others
        allocatable = node.allocatable(name)
        if amount > allocatable - node.requested(name):
            reasons.append(f"Insufficient {name}")
            is_unresolvable |= amount > allocatable
    if not reasons:
        return None
    return unresolvable(*reasons) if is_unresolvable else unschedulable(*reasons)


def used_by(solution: ClaimSolution) -> list[Used]:
    """The devices that were found for a claim."""
    return [
        Used(one.device.id, one.device.device, None if one.consumed is None else consumed_capacity_of(one))
        for one in solution.devices
    ]


def used_in(allocation: AllocationResult, devices: DeviceTable) -> list[Used]:
    """The devices of *allocation*, as the slices describe them."""
    used = []
    for one in allocation.devices.results or ():
        id_ = DeviceId(one.driver, one.pool, one.device)
        found = devices.device(id_)
        consumed = one.consumed_capacity
        if consumed is None and one.share_id is not None:
            consumed = {}  # it is shared, and has no capacities
        used.append(Used(id_, None if found is None else found.device, consumed))
    return used


def _amounts_of(claim: ResourceClaim, used: Sequence[Used]) -> dict[str, Amount]:
    """What the devices of *claim* take of their node, by resource.

    Raises:
        AllocationFailed: a device is gone, or a mapping cannot be followed.
    """
    found: dict[str, Amount] = {}
    for one in used:
        where = f"claim {path_of(claim)}, device {one.id.device}: "
        if one.device is None:
            raise AllocationFailed(f"{where}device {one.id.device} not found in pool {one.id.pool}")
        for name, mapping in (one.device.node_allocatable_resource_mappings or {}).items():
            if mapping.capacity_key and one.consumed is None:
                raise AllocationFailed(
                    f"{where}ConsumedCapacity is nil, but Capacity key '{mapping.capacity_key}' is set in "
                    f"NodeAllocatableResourceMappings for resource {name}"
                )
            try:
                amount = _amount_of(mapping, one.consumed or {})
            except ValueError as bad:  # a quantity that is none, which no API server stores
                raise AllocationFailed(f"{where}NodeAllocatableResourceMappings for resource {name}: {bad}") from bad
            if amount is not None:
                found[name] = found[name] + amount if name in found else amount
    return found


def _amount_of(mapping: NodeAllocatableResourceMapping, consumed: Mapping[str, Quantity]) -> Amount | None:
    """None if the mapping is about a capacity of which nothing is consumed.

    Raises:
        ValueError: a quantity is none.
    """
    multiplier = mapping.allocation_multiplier
    if mapping.capacity_key:
        base = consumed.get(mapping.capacity_key)
        if base is None:
            return None
        nano = parse_nano(base)
        if multiplier is not None:
            nano = -(-nano * parse_nano(multiplier) // NANO)
        return Amount(nano, style_of(base))
    if multiplier is None:
        return Amount(0, QuantityStyle.DECIMAL)
    return Amount(parse_nano(multiplier), style_of(multiplier))


def containers_with(pod: Pod, entries: set[str]) -> tuple[str, ...]:
    """The names of the containers that use one of these ``spec.resourceClaims``."""
    return tuple(
        [
            one.name
            for one in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
            if one.resources is not None and any(claim.name in entries for claim in one.resources.claims or ())
        ]
    )
