"""The claims of a pod: which they are, and what is known of them in its scheduling cycle.

Source: DynamicResources of kube-scheduler, its texts included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, field, frozen

from plugins_builtin.dynamic_resources.device_allocator import ClaimSolution
from plugins_builtin.dynamic_resources.group_claims import belongs_to_group, group_name_of, is_reserved_for_group
from trio_sched.plugin_api import (
    AllocationResult,
    ClaimCache,
    NodeAllocatableResourceClaimStatus,
    NodeSelector,
    Pod,
    PodResourceClaim,
    ResourceClaim,
    quote,
)

IN_MEMORY = "<extended-resources>"
"""The name of a claim for extended resources that is not in the API server yet; no real claim can have it."""


class ClaimNotReady(Exception):
    """A claim of the pod cannot be used yet; the text says which, and why."""


def claims_of(pod: Pod, claims: ClaimCache, *, of_group: bool = False) -> list[ResourceClaim]:
    """The claims that the spec of *pod* names; see `entries_of`."""
    return [claim for _name, claim in entries_of(pod, claims, of_group=of_group)]


def entries_of(pod: Pod, claims: ClaimCache, *, of_group: bool = False) -> list[tuple[str, ResourceClaim]]:
    """The entries of ``spec.resourceClaims`` for which a claim is needed, each with its name and that claim.

    Args:
        pod: the pod.
        claims: all claims.
        of_group: gate DRAWorkloadResourceClaims; a claim that was made for the pod's group will do too.

    Raises:
        ClaimNotReady: one of them is missing, is being deleted, or is not the pod's.
    """
    found = ((one.name, _claim_of(pod, one, claims, of_group)) for one in pod.spec.resource_claims or ())
    return [(name, claim) for name, claim in found if claim is not None]


def _claim_of(pod: Pod, one: PodResourceClaim, claims: ClaimCache, of_group: bool) -> ResourceClaim | None:
    """None if no claim is needed.

    Raises:
        ClaimNotReady: it is missing, is being deleted, or is not the pod's.
    """
    name = one.resource_claim_name
    if name is None:
        if one.resource_claim_template_name is None:
            text = f'pod "{pod.key}", spec.resourceClaim {quote(one.name)}: none of the supported fields are set'
            raise ClaimNotReady(text)
        for status in pod.status.resource_claim_statuses or ():
            if status.name == one.name:
                name = status.resource_claim_name
                break
        else:
            raise ClaimNotReady(f'pod "{pod.key}": ResourceClaim not created yet')
        if name is None:
            return None
    claim = claims.get(pod.namespace, name)
    if claim is None:
        raise ClaimNotReady(f"could not find ResourceClaim {quote(f'{pod.namespace}/{name}')}")
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimNotReady(f"resourceclaim {quote(name)} is being deleted")
    if one.resource_claim_name is None and not _is_controlled_by(claim, pod):
        group = group_name_of(pod) if of_group else ""
        if not group or not belongs_to_group(claim, pod):
            why = f"neither Pod nor PodGroup {group} is the owner" if group else "Pod is not owner"
            raise ClaimNotReady(f"ResourceClaim {pod.namespace}/{name} was not created for Pod {pod.key} ({why})")
    return claim


def _is_controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    return any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owner_references or ())


def is_reserved_for(claim: ResourceClaim, pod: Pod, *, or_group: bool = False) -> bool:
    """Whether *pod* may use the claim; with *or_group*, also as a member of its group."""
    if any(one.uid == pod.uid for one in claim.status.reserved_for or ()):
        return True
    return or_group and is_reserved_for_group(claim, pod)


def path_of(claim: ResourceClaim) -> str:
    """Namespace and name."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


@frozen(eq=False)
class NodeResult:
    """What was found on one node for the claims to allocate."""

    solutions: tuple[ClaimSolution, ...]
    extended_claim: ResourceClaim | None = None
    """The claim for extended resources, with the requests that are right for this node."""
    mappings: tuple[dict[str, str], ...] = ()
    """Which container gets what it requests of which extended resource from which request of that claim."""


@define(eq=False)
class PodClaims:
    """The claims of a pod in one scheduling cycle; those for extended resources come last."""

    claims: list[ResourceClaim]
    entries: list[tuple[str, ResourceClaim]] = field(factory=list)
    """Those that the spec of the pod names, with the names of its entries."""
    node_statuses: dict[str, tuple[NodeAllocatableResourceClaimStatus, ...]] = field(factory=dict)
    """Node → what the devices that were found there take of it; gate DRANodeAllocatableResources."""
    has_node_status: bool = False
    """Whether that was written to the status of the pod, or may have been."""
    group_references: dict[int, Mapping[str, str]] = field(factory=dict)
    """For claims that are reserved for the pod's group, how ``status.reservedFor`` names it."""
    extended: ResourceClaim | None = None
    extended_amounts: dict[str, int] = field(factory=dict)
    """Scalar resource → how much of it the pod requests."""
    selectors: dict[int, NodeSelector] = field(factory=dict)
    """For claims that are allocated, where the devices can be used."""
    shared_allocations: dict[int, AllocationResult] = field(factory=dict)
    """In flight for another pod of the same group."""
    unavailable: set[int] = field(factory=set)
    """Claims that are allocated and cannot be used on some node."""
    scores: dict[str, int] = field(factory=dict)
    """By the name of the node; 0 where it is missing."""
    in_flight: dict[int, AllocationResult] = field(factory=dict)
    """What reserve has put in flight."""
    in_flight_uid: dict[int, str] = field(factory=dict)
    node_result: NodeResult | None = None
    """The result of the chosen node."""

    @property
    def user_claims(self) -> list[ResourceClaim]:
        """Those that the spec of the pod names."""
        return self.claims if self.extended is None else self.claims[:-1]

    @property
    def extended_index(self) -> int | None:
        """The position of the claim for extended resources."""
        return None if self.extended is None else len(self.claims) - 1

    def to_allocate(self) -> Iterator[tuple[int, ResourceClaim]]:
        """The claims without an allocation, and their positions."""
        return ((index, one) for index, one in enumerate(self.claims) if one.status.allocation is None)
