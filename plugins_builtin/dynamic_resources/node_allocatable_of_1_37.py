"""Devices that take resources of the node itself since 1.37; gate DRANodeAllocatableResources.

A device can be a part of a resource, which one pod alone has, and each pod that uses it can take some of one besides.

Source: node allocatable resources of DynamicResources in kube-scheduler 1.37, texts included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from plugins_builtin.dynamic_resources.device_allocator import ClaimSolution
from plugins_builtin.dynamic_resources.node_allocatable import (
    NANO,
    Amount,
    ClaimStatuses,
    NodeAllocatable,
    Used,
    containers_with,
    used_by,
    used_in,
)
from plugins_builtin.dynamic_resources.pod_claims import PodClaims, is_reserved_for, path_of
from plugins_builtin.dynamic_resources.search_effort import AllocationFailed
from trio_sched.plugin_api import (
    AllocationResult,
    DeviceTable,
    NodeAllocatableMappedResources,
    NodeAllocatableMapping,
    NodeAllocatableOverheadResources,
    NodeAllocatableResourceClaimStatus,
    NodeView,
    Pod,
    Quantity,
    ResourceClaim,
    Status,
    claimed_amounts,
    format_nano,
    nano_limits,
    parse_nano,
    replace_fields,
    style_of,
    unresolvable,
)


@define(eq=False)
class NodeAllocatableResources(NodeAllocatable):
    """What the devices of pods are of their nodes, and take besides."""

    def sharing_problem(
        self, pod: Pod, of_pod: PodClaims, index: int, node: NodeView, devices: DeviceTable
    ) -> Status | None:
        """Whether the devices of the claim at *index* are resources of a node, and another pod has them."""
        claim, in_flight = of_pod.claims[index], of_pod.shared_allocations.get(index)
        allocation = claim.status.allocation or in_flight
        if allocation is None or not _is_mapped(used_in(allocation, devices)):
            return None
        is_of_others = claim.status.reserved_for and not is_reserved_for(claim, pod, or_group=self.for_groups)
        if is_of_others or in_flight is not None:
            text = "has a mapped device and cannot be shared across pods"
            return unresolvable(f"node allocatable resource claim {claim.name} {text}")
        return None

    def claims_on(
        self, pod: Pod, of_pod: PodClaims, solutions: Sequence[ClaimSolution], node: NodeView, devices: DeviceTable
    ) -> ClaimStatuses | Status:
        """As in `NodeAllocatable`, of all claims of the pod, whether containers use them or not."""
        found = self._statuses(pod, of_pod, solutions, devices)
        return (self._problem(pod, found, node) or found) if found else ()

    def _statuses(
        self, pod: Pod, of_pod: PodClaims, solutions: Sequence[ClaimSolution], devices: DeviceTable
    ) -> ClaimStatuses:
        found: dict[str, NodeAllocatableResourceClaimStatus] = {}
        for claim, used in _used_of(of_pod, solutions, devices):
            if claim.metadata.uid in found:
                continue
            if not any(one.device is not None and one.device.node_allocatable_resources for one in used):
                continue
            taken = _Taken()
            for one in used:
                taken.add(claim, one)
            if taken.mapped or taken.overheads:
                names = {name for name, one in of_pod.entries if one.metadata.uid == claim.metadata.uid}
                found[claim.metadata.uid] = taken.status(claim.name, containers_with(pod, names))
        return tuple(sorted(found.values(), key=lambda one: one.resource_claim_name))

    def _limit_problem(self, pod: Pod) -> Status | None:
        whole = pod.spec.resources
        if not self.options.pod_level or whole is None or not whole.limits:
            return None
        limits = {name: parse_nano(amount) for name, amount in whole.limits.items()}
        claims = pod.status.node_allocatable_resource_claim_statuses or ()
        containers = nano_limits(replace_fields(pod, spec=replace_fields(pod.spec, resources=None, overhead=None)))
        for name in sorted(filter(_is_huge_page, limits)):
            total = containers.get(name, 0)
            total += sum(claimed_amounts(one, len(one.containers or ())).get(name, 0) for one in claims)
            if total > limits[name]:
                text = "is insufficient to cover the aggregated container and node-allocatable DRA limits"
                return unresolvable(f"pod level limit for {name} {text}")
        for container in pod.spec.containers or ():
            own = (None if container.resources is None else container.resources.limits) or {}
            of_container = [one for one in claims if container.name in (one.containers or ())]
            for name in sorted(own.keys() & limits.keys()):
                if _is_huge_page(name):
                    continue
                taken = sum(claimed_amounts(one, 1).get(name, 0) for one in of_container)
                if parse_nano(own[name]) + taken > limits[name]:
                    text = f"is insufficient to cover the limit and DRA overhead for container {container.name}"
                    return unresolvable(f"pod level limit for {name} {text}")
        return None


@define(eq=False)
class _Taken:
    """What the devices of one claim take, added up."""

    mapped: dict[str, Amount] = field(factory=dict)
    overheads: dict[str, dict[str, Amount]] = field(factory=dict)
    """Resource → ``per_pod`` and ``per_container``, if there is such an overhead."""

    def add(self, claim: ResourceClaim, one: Used) -> None:
        """Add what one device takes.

        Raises:
            AllocationFailed: it is gone, or it is wrong what it says.
        """
        where = f"claim {path_of(claim)}, device {one.id.device}"
        if one.device is None:
            gone = f"device {one.id.device} not found in pool {one.id.pool} for driver {one.id.driver}"
            raise AllocationFailed(f"{where}, driver {one.id.driver}: {gone}")
        for name, resource in (one.device.node_allocatable_resources or {}).items():
            mapping, overhead = resource.mapping, resource.overhead
            try:
                if mapping is not None:
                    if mapping.capacity_key and one.consumed is None:
                        raise AllocationFailed(
                            f"{where}: ConsumedCapacity is nil, but Capacity key '{mapping.capacity_key}' is set in "
                            f"NodeAllocatableResources for resource {name}"
                        )
                    _add(self.mapped, name, _mapped_amount(mapping, one.consumed or {}))
                if overhead is not None:
                    for kind, amount in (("per_pod", overhead.per_pod), ("per_container", overhead.per_container)):
                        if amount is not None:
                            _add(self.overheads.setdefault(name, {}), kind, _amount(amount))
            except ValueError as bad:  # a quantity that is none, which no API server stores
                raise AllocationFailed(f"{where}: NodeAllocatableResources for resource {name}: {bad}") from bad

    def status(self, claim_name: str, containers: tuple[str, ...]) -> NodeAllocatableResourceClaimStatus:
        """How the status of the pod says it; *containers* use the claim."""
        mapped, overheads = sorted(self.mapped.items()), sorted(self.overheads.items())
        return NodeAllocatableResourceClaimStatus(
            resource_claim_name=claim_name,
            containers=containers or None,
            mapping=tuple(NodeAllocatableMappedResources(name, _text(one)) for name, one in mapped) or None,
            overhead=tuple(
                NodeAllocatableOverheadResources(name, **{kind: _text(one) for kind, one in by_kind.items()})
                for name, by_kind in overheads
            )
            or None,
        )


def _used_of(
    of_pod: PodClaims, solutions: Sequence[ClaimSolution], devices: DeviceTable
) -> Iterator[tuple[ResourceClaim, list[Used]]]:
    """The claims with the devices that are theirs already, or were found for them."""
    remaining = iter(solutions)
    for index, claim in enumerate(of_pod.claims):
        allocation: AllocationResult | None = claim.status.allocation or of_pod.shared_allocations.get(index)
        yield claim, used_by(next(remaining)) if allocation is None else used_in(allocation, devices)


def _is_mapped(used: Sequence[Used]) -> bool:
    return any(
        resource.mapping is not None
        for one in used
        if one.device is not None
        for resource in (one.device.node_allocatable_resources or {}).values()
    )


def _mapped_amount(mapping: NodeAllocatableMapping, consumed: Mapping[str, Quantity]) -> Amount | None:
    """None if the mapping says nothing, or is about a capacity of which nothing is consumed.

    Raises:
        ValueError: a quantity is none.
    """
    if not mapping.capacity_key:
        return None if mapping.device_multiplier is None else _amount(mapping.device_multiplier)
    base = consumed.get(mapping.capacity_key)
    if base is None:
        return None
    nano = parse_nano(base)
    if mapping.capacity_multiplier is not None:
        nano = -(-nano * parse_nano(mapping.capacity_multiplier) // NANO)
    return Amount(nano, style_of(base))


def _add(amounts: dict[str, Amount], name: str, amount: Amount | None) -> None:
    if amount is not None:
        amounts[name] = amounts[name] + amount if name in amounts else amount


def _amount(quantity: Quantity) -> Amount:
    return Amount(parse_nano(quantity), style_of(quantity))


def _text(amount: Amount) -> str:
    return format_nano(amount.nano, amount.style)


def _is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")
