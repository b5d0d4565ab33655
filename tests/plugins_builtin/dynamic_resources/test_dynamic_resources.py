import subprocess
import sys
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from trio_sched.engine.evaluation.filtering import run_pre_filters
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.objects.resource.device_class import DeviceClass, DeviceClassSpec
from trio_sched.objects.resource.resource_claim import (
    DeviceClaimConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from trio_sched.objects.resource.resource_slice import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceAttribute,
    DeviceCapacity,
)
from trio_sched.plugin_api import (
    Action,
    ClusterEvent,
    Code,
    CycleState,
    Diagnosis,
    Hint,
    NodeStatuses,
    OutcomeUnknown,
    Resource,
    to_builtins,
    unresolvable,
    unschedulable,
)
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import (
    FakeHandle,
    ask_hint,
    device,
    device_class,
    device_request,
    make_plugin,
    make_profile,
    make_table,
    node,
    pod,
    resource_claim,
    resource_slice,
    schedule,
    sub_request,
)

DRA = "DynamicResources"
DRIVER = "gpu.example.com"
EXTENDED = [node("n", allocatable={"example.com/gpu": 2})]
NODES = [node("a"), node("b"), node("c")]
NOWHERE = Diagnosis(NodeStatuses((), (), unresolvable("no")))
EVERYTHING = device_class(DRIVER, f'device.driver == "{DRIVER}"')


def with_class(name: str = "gpus", extended: str | None = "example.com/gpu", **gates: bool) -> FakeHandle:
    made = DeviceClass(ObjectMeta(name), DeviceClassSpec(extended_resource_name=extended))
    return FakeHandle(known_objects={"DeviceClass": [made]}, gates={"DRAExtendedResource": True, **gates})


def cluster(*objects: Any, **gates: bool) -> FakeHandle:
    """A cluster with the class for everything, and *objects*."""
    known: dict[str, list[Any]] = {"DeviceClass": [EVERYTHING], "ResourceSlice": [], "ResourceClaim": []}
    for one in objects:
        known[type(one).__name__].append(one)
    return FakeHandle(known_objects=known, gates=gates)


def given(pool: str, name: str = "gpu-0") -> DeviceRequestAllocationResult:
    return DeviceRequestAllocationResult(request="gpu", driver=DRIVER, pool=pool, device=name)


def claiming(*claims: str) -> Pod:
    return pod("p", claims=list(claims or ("c",)))


def reserved(handle: FakeHandle, incoming: Pod, node_name: str) -> tuple[Any, CycleState]:
    """The plugin after reserve on the node, and the state of the cycle."""
    handle.nodes = NodeColumns(make_table(NODES))
    profile, state = make_profile([DRA], handle=handle), CycleState()
    plugin = profile.plugins[DRA]
    assert run_pre_filters(profile.pre_filter, incoming, handle.nodes, state).rejected is None
    plugin.filter(incoming, handle.nodes, state)
    assert plugin.reserve(incoming, node_name, state) is None
    return plugin, state


def written(handle: FakeHandle, name: str = "c") -> ResourceClaim:
    found = handle.object("ResourceClaim", name, "default")
    assert isinstance(found, ResourceClaim)
    return found


def devices_of(claim: ResourceClaim) -> list[str]:
    assert claim.status.allocation is not None
    return [f"{one.pool}/{one.device}" for one in claim.status.allocation.devices.results or ()]


# --- pods without claims --------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [pod(), pod(cpu=1), pod(requests={"example.com/gpu": 1})])
def test_pods_without_claims_are_skipped(one: Pod) -> None:
    outcome = schedule(one, on=EXTENDED, plugins=[DRA])
    assert outcome.feasible == ("n",)
    assert DRA in outcome.state.skip_filter


@pytest.mark.parametrize(
    ("requests", "handle"),
    [
        ({"example.com/gpu": 0}, with_class()),
        ({"example.com/other": 1}, with_class()),
        ({"example.com/gpu": 1}, with_class(DRAExtendedResource=False)),
        ({"cpu": 1}, with_class()),
        ({"example.com/gpu": 1}, with_class()),
    ],
    ids=["none of it", "another resource", "gate off", "common resources", "the node has it"],
)
def test_other_resources_are_left_to_the_nodes(requests: Any, handle: FakeHandle) -> None:
    outcome = schedule(pod(requests=requests), on=EXTENDED, plugins=[DRA], handle=handle)
    assert outcome.feasible == ("n",)


async def test_without_claims_there_is_none_to_deallocate() -> None:
    nothing = unschedulable("no new claims to deallocate")
    skipped, rejected = CycleState(), CycleState()
    profile = make_profile([DRA])
    for incoming, state in ((pod(), skipped), (claiming(), rejected)):
        run_pre_filters(profile.pre_filter, incoming, NodeColumns(make_table([])), state)
        assert (await profile.plugins[DRA].post_filter(incoming, NOWHERE, state)).status == nothing


async def test_post_filter_without_the_state_of_pre_filter_is_an_error() -> None:
    status = (await make_plugin(DRA).post_filter(pod(), NOWHERE, CycleState())).status
    assert (status.code, status.message) == (Code.ERROR, "not found")


def test_pre_bind_is_skipped_and_reserve_does_nothing() -> None:
    plugin = make_plugin(DRA)
    assert plugin.pre_bind_pre_flight(pod(), "n", CycleState()).code == Code.SKIP
    assert plugin.reserve(pod(), "n", CycleState()) is None
    assert plugin.pre_enqueue(pod()) is None


# --- which nodes ----------------------------------------------------------------------------------------------


def test_a_pod_fits_where_a_device_is_free() -> None:
    taken = resource_claim("other", device_request(), allocated=[given("b")])
    handle = cluster(
        resource_slice("a", device("gpu-0")),
        resource_slice("b", device("gpu-0")),
        resource_claim("c", device_request()),
        taken,
    )
    outcome = schedule(claiming(), on=NODES, plugins=[DRA], handle=handle)
    assert outcome.feasible == ("a",)
    assert outcome.statuses["b"].message == "cannot allocate all claims"
    assert outcome.statuses["b"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_selectors_see_attributes_and_capacities() -> None:
    ask = f'device.attributes["{DRIVER}"].model == "h100" && device.capacity["{DRIVER}"].memory == quantity("80Gi")'
    handle = cluster(
        resource_slice("a", device("gpu-0", attributes={"model": "a100"}, capacity={"memory": "80Gi"})),
        resource_slice("b", device("gpu-0", attributes={"model": "h100"}, capacity={"memory": "40Gi"})),
        resource_slice("c", device("gpu-0", attributes={"model": "h100"}, capacity={"memory": "80Gi"})),
        resource_claim("c", device_request(selectors=[ask])),
    )
    assert schedule(claiming(), on=NODES, plugins=[DRA], handle=handle).feasible == ("c",)


def test_an_expression_that_fails_ends_the_attempt() -> None:
    handle = cluster(
        resource_slice("a", device("gpu-0")),
        resource_claim("c", device_request(selectors=[f'device.attributes["{DRIVER}"].model == "a100"'])),
    )
    outcome = schedule(claiming(), on=NODES[:1], plugins=[DRA], handle=handle)
    assert outcome.error is not None
    assert "claim default/c: selector #0: CEL runtime error: no such key: model" in str(outcome.error)


def test_a_version_that_is_none_fails_every_selector() -> None:
    handle = cluster(
        resource_slice("a", device("gpu-0", attributes={"v": DeviceAttribute(version="one")})),
        resource_claim("c", device_request()),
    )
    outcome = schedule(claiming(), on=NODES[:1], plugins=[DRA], handle=handle)
    assert "attribute v: parse semantic version" in str(outcome.error)


# --- reserve, pre_bind, unreserve -----------------------------------------------------------------------------


async def test_pre_bind_writes_finalizer_allocation_and_reservation() -> None:
    handle = cluster(resource_slice("a", device("gpu-0")), resource_claim("c", device_request()))
    incoming = claiming()
    plugin, state = reserved(handle, incoming, "a")
    assert handle.nodes.devices.claims.in_flight(written(handle).metadata.uid) is not None
    assert await plugin.pre_bind(incoming, "a", state) is None
    claim = written(handle)
    assert devices_of(claim) == ["a/gpu-0"]
    assert claim.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert [one.uid for one in claim.status.reserved_for or ()] == [incoming.uid]
    assert claim.status.allocation is not None
    assert claim.status.allocation.allocation_timestamp == "1970-01-01T00:00:00Z"
    assert handle.nodes.devices.claims.in_flight(claim.metadata.uid) is None
    assert len(handle.nodes.devices.allocated.dedicated) == 1


async def test_devices_in_flight_are_taken_until_they_are_given_back() -> None:
    handle = cluster(
        resource_slice("a", device("gpu-0")),
        resource_claim("c", device_request()),
        resource_claim("d", device_request()),
    )
    incoming = claiming()
    plugin, state = reserved(handle, incoming, "a")
    devices = handle.nodes.devices.allocated
    assert len(devices.dedicated) == 1
    plugin.unreserve(incoming, "a", state)
    assert len(devices.dedicated) == 0
    assert handle.jobs == []
    assert handle.patched == []


async def test_a_written_reservation_is_taken_back() -> None:
    handle = cluster(resource_slice("a", device("gpu-0")), resource_claim("c", device_request()))
    incoming = claiming()
    plugin, state = reserved(handle, incoming, "a")
    await plugin.pre_bind(incoming, "a", state)
    plugin.unreserve(incoming, "a", state)
    (job,) = handle.jobs
    await job()
    claim = written(handle)
    assert not claim.status.reserved_for
    assert devices_of(claim) == ["a/gpu-0"]


async def test_a_claim_that_was_allocated_elsewhere_is_left_alone() -> None:
    handle = cluster(resource_slice("a", device("gpu-0")), resource_claim("c", device_request()))
    incoming = claiming()
    plugin, state = reserved(handle, incoming, "a")
    theirs = {"allocation": {"devices": {"results": [{"driver": DRIVER, "pool": "x", "device": "y"}]}}}
    await handle.patch("ResourceClaim", "c", {"status": theirs}, namespace="default", subresource="status")
    status = await plugin.pre_bind(incoming, "a", state)
    assert status.message == "claim default/c got allocated elsewhere in the meantime"
    assert devices_of(written(handle)) == ["x/y"]
    assert [str(one) for one in handle.nodes.devices.allocated.dedicated] == [f"{DRIVER}/x/y"]


# --- signatures and events ------------------------------------------------------------------------------------


def test_pods_whose_claims_ask_for_the_same_have_equal_signatures() -> None:
    handle = cluster(
        resource_slice("a", device("gpu-0")),
        resource_claim("c", device_request()),
        resource_claim("d", device_request()),
        resource_claim("e", device_request(count=2)),
        resource_claim("f", device_request(), allocated=[given("a")]),
    )
    plugin = make_plugin(DRA, None, handle)
    assert plugin.sign(pod("x")) == plugin.sign(pod("y", cpu=3)) is not None
    assert plugin.sign(claiming("c")) == plugin.sign(claiming("d")) is not None
    assert plugin.sign(claiming("c")) != plugin.sign(claiming("e"))
    assert plugin.sign(claiming("f")) is None
    assert plugin.sign(claiming("missing")) is None


def test_with_devices_of_several_nodes_pods_with_claims_have_no_signature() -> None:
    handle = cluster(resource_slice(None, device("gpu-0")), resource_claim("c", device_request()))
    plugin = make_plugin(DRA, None, handle)
    assert plugin.sign(claiming("c")) is None
    assert plugin.sign(pod("x")) is not None
    assert make_plugin(DRA, None, with_class()).sign(pod(requests={"example.com/gpu": 1})) is None


@pytest.mark.parametrize(
    ("resource", "action", "expected"),
    [
        (Resource.NODE, Action.ADD, Hint.QUEUE),
        (Resource.DEVICE_CLASS, Action.ADD, Hint.QUEUE),
        (Resource.RESOURCE_SLICE, Action.UPDATE, Hint.QUEUE),
        (Resource.RESOURCE_CLAIM, Action.ADD, Hint.SKIP),
        (Resource.ASSIGNED_POD, Action.DELETE, None),
    ],
)
def test_events_and_hints(resource: Resource, action: Action, expected: Hint | None) -> None:
    changed = node("n") if resource == Resource.NODE else ResourceClaim()
    assert ask_hint(DRA, ClusterEvent(resource, action), claiming(), new=changed) is expected


@pytest.mark.parametrize("version", [(1, 36), (1, 37)], ids=["1.36", "1.37"])
@pytest.mark.parametrize("allocated", [False, True])
def test_since_1_37_the_deletion_of_a_claim_that_still_has_devices_frees_them(version: Any, allocated: bool) -> None:
    handle = cluster(resource_claim("c"))
    handle.emulated_version = version
    gone = resource_claim("gone", allocated=[given("a")] if allocated else [])
    event = ClusterEvent(Resource.RESOURCE_CLAIM, Action.DELETE)
    expected = None if version == (1, 36) else Hint.QUEUE if allocated else Hint.SKIP
    assert ask_hint(DRA, event, claiming(), old=gone, new=None, handle=handle) is expected


def test_a_pod_with_a_claim_for_all_nodes_and_one_of_its_own_is_scored() -> None:
    shared = resource_claim("shared", allocated=[given("pool")])
    own = resource_claim("own", device_request(first_available=[sub_request("s")]))
    slices = [resource_slice(None, device("gpu-0")), *(resource_slice(one, device("gpu-0")) for one in "ab")]
    outcome = schedule(claiming("shared", "own"), on=NODES, plugins=[DRA], handle=cluster(shared, own, *slices))
    assert outcome.error is None
    assert outcome.feasible == ("a", "b")


def test_a_claim_that_is_not_there_gates_the_pod() -> None:
    status = make_plugin(DRA, None, cluster()).pre_enqueue(claiming())
    assert status == unresolvable('could not find ResourceClaim "default/c"')


def test_importing_the_plugin_does_not_import_cel() -> None:
    code = "import sys, plugins_builtin.dynamic_resources.dynamic_resources; sys.exit('trio_sched.cel' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- pod groups -------------------------------------------------------------------------------------------------------


async def test_pods_of_a_group_share_an_allocation_before_it_is_written() -> None:
    handle = cluster(resource_slice("a", device("gpu-0")), resource_claim("c", device_request()), GenericWorkload=True)
    first, second = pod("p", claims=["c"], group="gang"), pod("q", claims=["c"], group="gang")
    plugin, state = reserved(handle, first, "a")
    other = pod("r", claims=["c"], group="another")
    assert plugin.pre_filter(other, handle.nodes, CycleState()).message == (
        "resource claim default/c is in the process of being allocated"
    )
    sharing = CycleState()
    assert plugin.pre_filter(second, handle.nodes, sharing) is None
    assert plugin.filter(second, handle.nodes, sharing).passes.tolist() == [True, False, False]
    assert plugin.reserve(second, "a", sharing) is None
    assert await plugin.pre_bind(first, "a", state) is None
    assert await plugin.pre_bind(second, "a", sharing) is None
    assert [one.name for one in written(handle).status.reserved_for or ()] == ["p", "q"]
    assert devices_of(written(handle)) == ["a/gpu-0"]
    assert handle.nodes.devices.claims.in_flight(written(handle).metadata.uid) is None


async def test_a_trial_leaves_what_is_written() -> None:
    handle = cluster(resource_slice("a", device("gpu-0")), resource_claim("c", device_request()))
    incoming = claiming()
    plugin, state = reserved(handle, incoming, "a")
    await plugin.pre_bind(incoming, "a", state)
    state.is_trial = True
    plugin.unreserve(incoming, "a", state)
    assert handle.jobs == []


# --- binding conditions --------------------------------------------------------------------------------------------

UNREADY = device("gpu-0", binding_conditions=("attached",), binding_failure_conditions=("broken",))


def report(handle: FakeHandle, condition: str) -> None:
    """The driver says that *condition* holds for the device."""
    status = {"driver": DRIVER, "pool": "a", "device": "gpu-0", "conditions": [{"type": condition, "status": "True"}]}
    merged = {**to_builtins(written(handle).status), "devices": [status]}
    changed = replace(written(handle), status=msgspec.convert(merged, ResourceClaimStatus))
    version = str(int(changed.metadata.resource_version) + 1)
    changed = replace(changed, metadata=replace(changed.metadata, resource_version=version))
    handle.known_objects["ResourceClaim"] = [changed]
    handle.nodes.devices.put(changed)


async def test_a_pod_is_bound_when_its_devices_are_ready() -> None:
    handle = cluster(resource_slice("a", UNREADY), resource_claim("c", device_request()))
    incoming = claiming()
    plugin, state = reserved(handle, incoming, "a")
    handle.while_waiting = lambda: report(handle, "attached")
    assert await plugin.pre_bind(incoming, "a", state) is None
    assert [(reason, note) for _pod, reason, note in handle.events] == [
        ("BindingConditionsPending", "waiting for binding conditions for device on node a")
    ]
    assert handle.counted == [
        ("dra_bindingconditions_wait_duration_seconds", DRIVER, "default-scheduler", "success"),
        ("dra_bindingconditions_allocations_total", DRIVER, "default-scheduler", "success"),
    ]


async def test_a_device_that_fails_ends_the_attempt_and_is_given_back_in_the_next() -> None:
    handle = cluster(resource_slice("a", UNREADY), resource_claim("c", device_request()))
    incoming = claiming()
    plugin, state = reserved(handle, incoming, "a")
    handle.while_waiting = lambda: report(handle, "broken")
    status = await plugin.pre_bind(incoming, "a", state)
    assert status.message == 'device binding failed: claim=c, reason=, message=""'
    outcome = schedule(incoming, on=NODES, plugins=[DRA], handle=handle)
    assert outcome.statuses["a"].message == "resourceclaim not available on the node"
    room = (await plugin.post_filter(incoming, NOWHERE, outcome.state)).status
    assert room == unschedulable("deallocation of ResourceClaim completed")
    assert written(handle).status.allocation is None
    assert not handle.nodes.devices.allocated.dedicated


async def test_devices_that_are_never_ready_end_the_attempt() -> None:
    handle = cluster(resource_slice("a", UNREADY), resource_claim("c", device_request()))
    incoming = claiming()
    plugin, state = reserved(handle, incoming, "a")
    status = await plugin.pre_bind(incoming, "a", state)
    assert status.message.startswith("device binding timeout: ")
    assert 595 < handle.clock < 610


# --- extended resources --------------------------------------------------------------------------------------------


async def test_an_extended_resource_becomes_a_claim_where_devices_provide_it() -> None:
    handle = cluster(resource_slice("a", device("gpu-0"), device("gpu-1")))
    handle.known_objects["DeviceClass"] = [device_class(DRIVER, extended_resource_name="example.com/gpu")]
    incoming = pod("p", requests={"example.com/gpu": 2})
    plugin, state = reserved(handle, incoming, "a")
    handle.while_waiting = lambda: None
    assert await plugin.pre_bind(incoming, "a", state) is None
    (claim,) = handle.known_objects["ResourceClaim"]
    assert claim.metadata.name.startswith("p-extended-resources-")
    assert claim.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert devices_of(claim) == ["a/gpu-0", "a/gpu-1"]
    (patch,) = [patch for kind, _name, patch in handle.patched if kind == "Pod"]
    (mapping,) = patch["status"]["extendedResourceClaimStatus"]["requestMappings"]
    assert mapping["resourceName"] == "example.com/gpu"
    assert handle.counted == [("resourceclaim_creates_total", "success")]
    plugin.unreserve(incoming, "a", state)
    (job,) = handle.jobs
    await job()
    assert handle.known_objects["ResourceClaim"] == []
    assert not handle.nodes.devices.allocated.dedicated


async def test_a_left_over_claim_for_extended_resources_is_deleted() -> None:
    handle = cluster(resource_slice("a", device("gpu-0")))
    handle.known_objects["DeviceClass"] = [device_class(DRIVER, extended_resource_name="example.com/gpu")]
    incoming = pod("p", requests={"example.com/gpu": 1})
    plugin, state = reserved(handle, incoming, "a")
    assert await plugin.pre_bind(incoming, "a", state) is None
    outcome = schedule(incoming, on=NODES, plugins=[DRA], handle=handle)
    assert outcome.statuses["a"].message == "cannot schedule extended resource claim"
    room = (await plugin.post_filter(incoming, NOWHERE, outcome.state)).status
    assert room == unschedulable("deletion of ResourceClaim completed")
    assert handle.known_objects["ResourceClaim"] == []


# --- lost responses ------------------------------------------------------------------------------------------------


async def test_devices_stay_taken_until_it_is_known_whether_a_write_was_made() -> None:
    handle = cluster(resource_slice("a", device("gpu-0")), resource_claim("c", device_request()))
    incoming = claiming()
    plugin, state = reserved(handle, incoming, "a")
    handle.refusal = OutcomeUnknown("connection reset")
    status = await plugin.pre_bind(incoming, "a", state)
    assert "connection reset" in status.message
    plugin.unreserve(incoming, "a", state)
    assert len(handle.nodes.devices.allocated.dedicated) == 1
    handle.refusal = None
    (job,) = handle.jobs
    await job()
    assert not handle.nodes.devices.allocated.dedicated
    assert handle.clock == 5.0
    assert handle.activated == [incoming]


def test_amounts_that_are_no_quantities_are_named_and_cost_nobody_else_anything() -> None:
    policy = CapacityRequestPolicy(default="much", valid_range=CapacityRequestPolicyRange(min="x", step="y"))
    bad = device("bad", capacity={"memory": DeviceCapacity(value="80Gi", request_policy=policy)})
    slice_ = resource_slice("a", bad, device("good", capacity={"memory": "80Gi"}))
    asking = resource_claim("c", device_request(capacity={"memory": "1Gi"}))
    outcome = schedule(claiming(), on=NODES, plugins=[DRA], handle=cluster(slice_, asking))
    assert outcome.node_name == "a"
    wrong = resource_claim("c", device_request(capacity={"memory": "much"}))
    outcome = schedule(claiming(), on=NODES, plugins=[DRA], handle=cluster(slice_, wrong))
    assert "resource claim default/c, request gpu: capacity memory: quantities must match" in outcome.message


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ((1, 36), "claim default/c: selector #0: CEL runtime error: no such key: model"),
        (
            (1, 37),
            f"claim default/c: selector #0 on device {DRIVER}/a/gpu-0: CEL runtime error: no such key: model. consider "
            "using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
            "fields",
        ),
    ],
)
def test_since_1_37_an_expression_that_fails_names_the_device(version: Any, text: str) -> None:
    handle = cluster(
        resource_slice("a", device("gpu-0")),
        resource_claim("c", device_request(selectors=[f'device.attributes["{DRIVER}"].model == "a100"'])),
    )
    handle.emulated_version = version
    outcome = schedule(claiming(), on=NODES[:1], plugins=[DRA], handle=handle)
    assert outcome.error is not None
    assert outcome.error.message.endswith(text)


def test_since_1_37_a_selector_that_does_not_compile_still_names_no_device() -> None:
    handle = cluster(resource_slice("a", device("gpu-0")), resource_claim("c", device_request(selectors=["1 +"])))
    handle.emulated_version = (1, 37)
    outcome = schedule(claiming(), on=NODES[:1], plugins=[DRA], handle=handle)
    assert "selector #0: CEL compile error" in str(outcome.error)


@pytest.mark.parametrize(("version", "works"), [((1, 36), False), ((1, 37), True)])
def test_since_1_37_selectors_read_attributes_that_are_lists_without_the_gate(version: Any, works: bool) -> None:
    attributes = {"modes": DeviceAttribute(strings=("fast", "slow"))}
    ask = f'device.attributes["{DRIVER}"].modes.exists(mode, mode == "slow")'
    handle = cluster(
        resource_slice("a", device("gpu-0", attributes=attributes)),
        resource_claim("c", device_request(selectors=[ask])),
    )
    handle.emulated_version = version
    outcome = schedule(claiming(), on=NODES[:1], plugins=[DRA], handle=handle)
    assert (outcome.feasible == ("a",), outcome.error is None) == (works, works)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((1, 36), [("one", "two"), ("one", "two"), ("one",), ("one",)]),
        ((1, 37), [None, ("one",), ("one",)]),  # the claim has two that are equal
    ],
)
def test_since_1_37_a_configuration_for_all_requests_is_listed_once_and_names_none(
    version: Any, expected: list[tuple[str, ...] | None]
) -> None:
    wanted = resource_claim("c", device_request("one"), device_request("two"))
    configs = tuple(DeviceClaimConfiguration(requests=names) for names in (("one", "two"), ("one",), ("one",)))
    devices = replace(wanted.spec.devices, config=configs)
    handle = cluster(
        resource_slice("a", device("gpu-0"), device("gpu-1")),
        replace(wanted, spec=replace(wanted.spec, devices=devices)),
    )
    handle.emulated_version = version
    reserved(handle, claiming(), "a")
    in_flight = handle.nodes.devices.claims.in_flight(written(handle).metadata.uid)
    assert in_flight is not None
    assert [one.requests for one in in_flight.allocation.devices.config or ()] == expected
