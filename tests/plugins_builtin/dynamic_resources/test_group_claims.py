"""Claims that a pod group shares, in DynamicResources: gate DRAWorkloadResourceClaims."""

from typing import Any

import pytest
from msgspec.structs import replace

from trio_sched.engine.evaluation.filtering import run_pre_filters
from trio_sched.objects.metadata import ObjectMeta, OwnerReference
from trio_sched.objects.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from trio_sched.objects.pod_groups.pod_group import (
    PodGroup,
    PodGroupResourceClaim,
    PodGroupResourceClaimStatus,
    PodGroupStatus,
)
from trio_sched.objects.resource.resource_claim import (
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from trio_sched.plugin_api import (
    Code,
    CycleState,
    Diagnosis,
    NodeStatuses,
    Status,
    failure,
    unresolvable,
    unschedulable,
)
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import (
    FakeHandle,
    device,
    device_class,
    device_request,
    make_plugin,
    make_profile,
    make_table,
    node,
    pod,
    pod_group,
    resource_claim,
    resource_slice,
)

DRA = "DynamicResources"
DRIVER = "gpu.example.com"
NODES = [node("a"), node("b")]
NOWHERE = Diagnosis(NodeStatuses((), (), unresolvable("no")))
GIVEN = DeviceRequestAllocationResult(request="gpu", driver=DRIVER, pool="a", device="gpu-0")
STILL = unschedulable("still not schedulable")


def cluster(*objects: Any, gate: bool = True) -> FakeHandle:
    known: dict[str, list[Any]] = {"DeviceClass": [device_class(DRIVER, f'device.driver == "{DRIVER}"')]}
    known |= {"ResourceSlice": [resource_slice("a", device("gpu-0"))], "ResourceClaim": [], "PodGroup": []}
    for one in objects:
        known[type(one).__name__].append(one)
    gates = {"GenericWorkload": True, "DRAWorkloadResourceClaims": gate}
    handle = FakeHandle(known_objects=known, gates=gates)
    handle.nodes = NodeColumns(make_table(NODES))
    return handle


def from_template(name: str = "p", group: str = "gang", claim: str = "made") -> Pod:
    """A pod with a claim from a template, which is called *claim*."""
    entry = PodResourceClaim(name="gpu", resource_claim_template_name="one-gpu")
    found = pod(name, claims=[entry], group=group)
    status = replace(found.status, resource_claim_statuses=(PodResourceClaimStatus("gpu", claim),))
    return replace(found, status=status)


def templated_group(name: str = "gang") -> PodGroup:
    entry = PodGroupResourceClaim(name="gpu", resource_claim_template_name="one-gpu")
    status = PodGroupStatus(resource_claim_statuses=(PodGroupResourceClaimStatus("gpu", "made"),))
    return replace(pod_group(name, min_count=2, claims=[entry]), status=status)


def owned(claim: ResourceClaim, **fields: Any) -> ResourceClaim:
    """*claim*, controlled by the group called gang."""
    owner = {"api_version": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "gang"}
    uid = templated_group().metadata.uid
    reference = OwnerReference(**{**owner, "uid": uid, "controller": True, **fields})
    return replace(claim, metadata=replace(claim.metadata, owner_references=(reference,)))


def made(**fields: Any) -> ResourceClaim:
    """A claim that was made for the group called gang."""
    return owned(resource_claim("made", device_request(), **fields))


def reserved_for(claim: ResourceClaim, *references: ResourceClaimConsumerReference) -> ResourceClaim:
    return replace(claim, status=replace(claim.status, reserved_for=references))


def gang_reference(**fields: str) -> ResourceClaimConsumerReference:
    uid = templated_group().metadata.uid
    return ResourceClaimConsumerReference(
        **{"api_group": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": uid, **fields}
    )


def reserve(handle: FakeHandle, plugin: Any, incoming: Pod, *, is_trial: bool = False) -> CycleState:
    state = CycleState(is_trial=is_trial)
    assert plugin.pre_filter(incoming, handle.nodes, state) is None
    assert plugin.filter(incoming, handle.nodes, state).passes.tolist() == [True, False]
    assert plugin.reserve(incoming, "a", state) is None
    return state


def written(handle: FakeHandle, name: str = "made") -> ResourceClaim:
    found = handle.object("ResourceClaim", name, "default")
    assert isinstance(found, ResourceClaim)
    return found


# --- whose claim it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "group", "why"),
    [
        ({}, "gang", None),
        ({"api_version": "scheduling.k8s.io/v1"}, "gang", None),
        ({"uid": "of an earlier one"}, "gang", None),
        ({"api_version": "example.com/v1"}, "gang", "neither Pod nor PodGroup gang is the owner"),
        ({"kind": "Workload"}, "gang", "neither Pod nor PodGroup gang is the owner"),
        ({"name": "other"}, "gang", "neither Pod nor PodGroup gang is the owner"),
        ({"controller": False}, "gang", "neither Pod nor PodGroup gang is the owner"),
        ({}, "", "Pod is not owner"),
    ],
)
def test_a_claim_may_be_made_for_the_group_of_a_pod(owner: dict[str, Any], group: str, why: str | None) -> None:
    claim = owned(resource_claim("made", device_request()), **owner)
    status = make_plugin(DRA, None, cluster(claim)).pre_enqueue(from_template(group=group))
    expected = f"ResourceClaim default/made was not created for Pod default/p ({why})"
    assert status == (None if why is None else unresolvable(expected))


def test_without_the_gate_only_the_pod_may_be_the_owner() -> None:
    plugin = make_plugin(DRA, None, cluster(made(), gate=False))
    status = plugin.pre_enqueue(from_template())
    assert status.message == "ResourceClaim default/made was not created for Pod default/p (Pod is not owner)"
    assert "PodGroup" not in plugin.watches
    assert "PodGroup" in make_plugin(DRA, None, cluster()).watches


def test_pods_of_groups_that_are_missing_wait() -> None:
    handle = cluster(resource_claim("c", device_request()))
    profile = make_profile([DRA], handle=handle)
    for incoming in (pod("p", group="gang"), pod("p", group="gang", claims=["c"])):
        rejected = run_pre_filters(profile.pre_filter, incoming, handle.nodes, CycleState()).rejected
        assert rejected is not None
        assert rejected.message == 'podgroup.scheduling.k8s.io "gang" not found'
        assert rejected.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_group_with_an_entry_of_no_kind_is_reported() -> None:
    group = pod_group("gang", claims=[PodGroupResourceClaim(name="gpu")])
    handle = cluster(group, resource_claim("c", device_request()))
    plugin, incoming = make_plugin(DRA, None, handle), pod("p", group="gang", claims=["c"])
    status = plugin.pre_filter(incoming, handle.nodes, CycleState())
    assert status == unresolvable("PodGroup default/gang claim gpu: none of the supported fields are set")


# --- what it is reserved for ------------------------------------------------------------------------------------------


async def test_the_pods_of_a_group_share_one_reservation() -> None:
    handle = cluster(made(), templated_group())
    plugin, pods = make_plugin(DRA, None, handle), [from_template(name) for name in ("p", "q", "r")]
    states = [reserve(handle, plugin, one) for one in pods]
    for one, state in zip(pods, states, strict=True):
        assert await plugin.pre_bind(one, "a", state) is None
    status = written(handle).status
    assert status.reserved_for == (gang_reference(),)
    assert status.allocation is not None
    assert handle.nodes.devices.claims.in_flight(written(handle).metadata.uid) is None
    finalizer, status_patch = handle.patched  # the first pod did it for all
    assert "finalizers" in finalizer[2]["metadata"]
    assert "reservedFor" in status_patch[2]["status"]


async def test_a_member_that_was_slower_finds_the_reservation() -> None:
    handle = cluster(made(), templated_group())
    plugin, first, second = make_plugin(DRA, None, handle), from_template("p"), from_template("q")
    states = [reserve(handle, plugin, one) for one in (first, second)]
    stale = handle.nodes.devices.claims.get("default", "made")
    assert await plugin.pre_bind(first, "a", states[0]) is None
    assert stale is not None
    claims = handle.nodes.devices.claims
    claims.remove("default", "made")  # the watch is behind: it shows the claim as it was
    claims.put(stale)
    assert await plugin.pre_bind(second, "a", states[1]) is None
    assert written(handle).status.reserved_for == (gang_reference(),)


async def test_claims_that_the_group_does_not_have_are_reserved_for_the_pod() -> None:
    handle = cluster(pod_group("gang", claims=["other"]), resource_claim("c", device_request()))
    plugin, incoming = make_plugin(DRA, None, handle), pod("p", group="gang", claims=["c"])
    state = reserve(handle, plugin, incoming)
    assert await plugin.pre_bind(incoming, "a", state) is None
    (reference,) = written(handle, "c").status.reserved_for or ()
    assert (reference.api_group, reference.resource, reference.uid) == ("", "pods", incoming.uid)


async def test_a_named_claim_of_the_group_is_reserved_for_it() -> None:
    handle = cluster(pod_group("gang", claims=["c"]), resource_claim("c", device_request()))
    plugin, incoming = make_plugin(DRA, None, handle), pod("p", group="gang", claims=["c"])
    state = reserve(handle, plugin, incoming)
    assert await plugin.pre_bind(incoming, "a", state) is None
    assert written(handle, "c").status.reserved_for == (gang_reference(),)


async def test_without_the_gate_each_pod_has_its_own_reservation() -> None:
    handle = cluster(pod_group("gang", claims=["c"]), resource_claim("c", device_request()), gate=False)
    plugin, incoming = make_plugin(DRA, None, handle), pod("p", group="gang", claims=["c"])
    state = reserve(handle, plugin, incoming)
    assert await plugin.pre_bind(incoming, "a", state) is None
    assert [one.resource for one in written(handle, "c").status.reserved_for or ()] == ["pods"]


async def test_unreserve_leaves_the_reservation_of_the_group() -> None:
    handle = cluster(made(), templated_group())
    plugin, incoming = make_plugin(DRA, None, handle), from_template()
    state = reserve(handle, plugin, incoming)
    assert await plugin.pre_bind(incoming, "a", state) is None
    plugin.unreserve(incoming, "a", state)
    assert handle.jobs == []
    assert written(handle).status.reserved_for == (gang_reference(),)


# --- post_filter ------------------------------------------------------------------------------------------------------


async def after_a_failure(handle: FakeHandle, incoming: Pod, plugin: Any = None) -> Status:
    plugin, state = plugin or make_plugin(DRA, None, handle), CycleState()
    assert plugin.pre_filter(incoming, handle.nodes, state) is None
    status = (await plugin.post_filter(incoming, NOWHERE, state)).status
    assert isinstance(status, Status)
    return status


async def test_a_group_without_a_scheduled_pod_gives_its_reservation_up() -> None:
    other = ResourceClaimConsumerReference(resource="pods", name="x", uid="x")
    claim = reserved_for(made(allocated=[GIVEN]), gang_reference(), other)
    handle = cluster(claim, templated_group())
    handle.grouped = [from_template()]
    status = await after_a_failure(handle, from_template())
    assert status == unresolvable("ResourceClaim unreserved for PodGroup")
    assert written(handle).status.reserved_for == (other,)
    assert written(handle).status.allocation is not None
    assert await after_a_failure(handle, from_template()) == STILL


async def test_pods_that_are_scheduled_keep_the_reservation() -> None:
    claim = reserved_for(made(allocated=[GIVEN]), gang_reference())
    handle = cluster(claim, templated_group())
    member = from_template("q")
    handle.grouped = [from_template(), member]
    handle.assumed = [(member, "a")]
    assert await after_a_failure(handle, from_template()) == STILL
    assert handle.patched == []


async def test_pods_that_are_only_tried_do_not_keep_it() -> None:
    claim = reserved_for(made(allocated=[GIVEN]), gang_reference())
    handle = cluster(claim, templated_group())
    plugin, member = make_plugin(DRA, None, handle), from_template("q")
    handle.grouped, handle.assumed = [from_template(), member], [(member, "a")]
    state = CycleState(is_trial=True)
    assert plugin.pre_filter(member, handle.nodes, state) is None
    assert plugin.reserve(member, "a", state) is None
    status = await after_a_failure(handle, from_template(), plugin)
    assert status == unresolvable("ResourceClaim unreserved for PodGroup")
    plugin.unreserve(member, "a", state)
    await handle.patch(
        "ResourceClaim",
        "made",
        {"status": {"reservedFor": [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang"}]}},
        namespace="default",
    )
    assert await after_a_failure(handle, from_template(), plugin) == STILL  # now it counts


@pytest.mark.parametrize(
    ("objects", "status"),
    [
        ([made(allocated=[GIVEN]), templated_group()], STILL),
        ([reserved_for(made(allocated=[GIVEN]), gang_reference(name="other")), templated_group()], STILL),
        (
            [
                reserved_for(made(allocated=[GIVEN]), gang_reference()),
                replace(templated_group(), status=PodGroupStatus()),
            ],
            failure("PodGroup default/gang: ResourceClaim not created yet"),
        ),
        (
            [
                made(allocated=[GIVEN]),
                replace(
                    templated_group(),
                    status=PodGroupStatus(resource_claim_statuses=(PodGroupResourceClaimStatus("gpu", "gone"),)),
                ),
            ],
            failure('could not find ResourceClaim "default/gone"'),
        ),
    ],
)
async def test_what_cannot_be_given_up(objects: list[Any], status: Status) -> None:
    handle = cluster(*objects)
    handle.grouped = [from_template()]
    found = await after_a_failure(handle, from_template())
    assert (found.code, found.message) == (status.code, status.message)


async def test_a_group_that_nobody_counts_is_an_error() -> None:
    handle = cluster(made(), templated_group())
    status = await after_a_failure(handle, from_template())
    assert (status.code, status.message) == (Code.ERROR, "pod group state not found for pod group default/gang")


async def test_a_reservation_that_cannot_be_taken_back_is_tried_again_later() -> None:
    claim = reserved_for(made(allocated=[GIVEN]), gang_reference())
    handle = cluster(claim, templated_group())
    handle.grouped, handle.refusal = [from_template()], RuntimeError("no")
    assert await after_a_failure(handle, from_template()) == STILL


def test_signatures_tell_groups_apart() -> None:
    plugin = make_plugin(DRA, None, cluster(made(), templated_group()))
    assert plugin.sign(from_template()) is None
    assert plugin.sign(pod("x", group="gang")) == plugin.sign(pod("y", group="gang"))
    assert plugin.sign(pod("x", group="gang")) != plugin.sign(pod("x", group="other"))
    assert plugin.sign(pod("x")) == ()


def test_a_claim_without_owners_is_nobodys() -> None:
    claim = ResourceClaim(metadata=ObjectMeta(name="made", namespace="default", uid="u"))
    assert make_plugin(DRA, None, cluster(claim)).pre_enqueue(from_template()) is not None
