"""Claims that the pods of a group share, reserved for the group and not for each pod; gate DRAWorkloadResourceClaims.

Source: package resourceclaim of Kubernetes 1.36 and DynamicResources of its scheduler, texts included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trio_sched.plugin_api import ClaimCache, Pod, PodGroup, ResourceClaim, quote

API_GROUP = "scheduling.k8s.io"
RESOURCE = "podgroups"
UNSUPPORTED = "none of the supported fields are set"


class GroupClaimProblem(Exception):
    """A claim of a pod group cannot be used; the text says which, and why."""


def group_name_of(pod: Pod) -> str:
    """The pod group that *pod* is in, "" if there is none."""
    group = pod.spec.scheduling_group
    return "" if group is None else group.pod_group_name or ""


def belongs_to_group(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether *claim* was made for the group of *pod*, which knows the name of its group and not its UID."""
    name = group_name_of(pod)
    if not name:
        return False
    for owner in claim.metadata.owner_references or ():
        if owner.controller:
            return owner.kind == "PodGroup" and owner.name == name and owner.api_version.startswith(f"{API_GROUP}/")
    return False


def is_reserved_for_group(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the group of *pod* may use the claim."""
    name = group_name_of(pod)
    return bool(name) and any(
        one.api_group == API_GROUP and one.resource == RESOURCE and one.name == name
        for one in claim.status.reserved_for or ()
    )


def reference_to(group: PodGroup) -> Mapping[str, str]:
    """An entry of ``status.reservedFor``."""
    metadata = group.metadata
    return {"apiGroup": API_GROUP, "resource": RESOURCE, "name": metadata.name, "uid": metadata.uid}


def shared_entries(pod: Pod, group: PodGroup) -> frozenset[str]:
    """The names of those ``spec.resourceClaims`` of *pod* that its group has too, with the same claim or template.

    Raises:
        GroupClaimProblem: one of the group's names neither a claim nor a template.
    """
    found = []
    for one in pod.spec.resource_claims or ():
        wanted = one.name, one.resource_claim_name, one.resource_claim_template_name
        for other in group.spec.resource_claims or ():
            if other.resource_claim_name is None and other.resource_claim_template_name is None:
                text = f"PodGroup {group.namespace}/{group.name} claim {other.name}: {UNSUPPORTED}"
                raise GroupClaimProblem(text)
            if wanted == (other.name, other.resource_claim_name, other.resource_claim_template_name):
                found.append(one.name)
                break
    return frozenset(found)


def claims_of_group(group: PodGroup, claims: ClaimCache) -> Iterator[ResourceClaim]:
    """The claims of *group*, but not those that were made for somebody else.

    Raises:
        GroupClaimProblem: one of them is missing.
    """
    path = f"{group.namespace}/{group.name}"
    for one in group.spec.resource_claims or ():
        name = one.resource_claim_name
        if name is None:
            if one.resource_claim_template_name is None:
                raise GroupClaimProblem(f"PodGroup {path}, spec.resourceClaim {one.name}: {UNSUPPORTED}")
            for status in group.status.resource_claim_statuses or ():
                if status.name == one.name:
                    name = status.resource_claim_name
                    break
            else:
                raise GroupClaimProblem(f"PodGroup {path}: ResourceClaim not created yet")
            if name is None:
                continue  # none is needed
        claim = claims.get(group.namespace, name)
        if claim is None:
            raise GroupClaimProblem(f"could not find ResourceClaim {quote(f'{group.namespace}/{name}')}")
        owners = claim.metadata.owner_references or ()
        if one.resource_claim_name is not None or any(
            owner.controller and owner.uid == group.metadata.uid for owner in owners
        ):
            yield claim
