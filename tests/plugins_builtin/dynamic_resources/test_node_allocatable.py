"""Devices that take resources of the node itself, in DynamicResources: gate DRANodeAllocatableResources."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.pod import (
    ContainerResourceClaim,
    NodeAllocatableResourceClaimStatus,
    Pod,
    ResourceRequirements,
)
from trio_sched.objects.resource.resource_claim import DeviceRequestAllocationResult, ResourceClaim
from trio_sched.objects.resource.resource_slice import Device, NodeAllocatableResourceMapping
from trio_sched.plugin_api import Code, CycleState
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import (
    FakeHandle,
    Outcome,
    container,
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
)

DRA = "DynamicResources"
DRIVER = "cpu.example.com"
NODE = node("a", cpu=8, memory="16Gi", allocatable={"hugepages-2Mi": "1Gi"})
CLASS = device_class("cpus", f'device.driver == "{DRIVER}"')
SHARED: dict[str, Any] = {"allow_multiple_allocations": True}


def mapping(key: str | None = None, multiplier: Quantity | None = None) -> NodeAllocatableResourceMapping:
    return NodeAllocatableResourceMapping(capacity_key=key, allocation_multiplier=multiplier)


def mapped(name: str = "d0", *, more: Mapping[str, Any] | None = None, **mappings: Any) -> Device:
    """A device; of *mappings*, a quantity is a multiplier, and underscores are hyphens."""
    of_node = {
        key.replace("_", "-"): one if isinstance(one, NodeAllocatableResourceMapping) else mapping(multiplier=one)
        for key, one in mappings.items()
    }
    return device(name, node_allocatable_resource_mappings=of_node, **(more or {}))


def wanting(name: str = "c", **request: Any) -> ResourceClaim:
    return resource_claim(name, device_request(class_name="cpus", **request))


def using(*claims: str, name: str = "p", by: tuple[tuple[str, tuple[str, ...]], ...] = (), **fields: Any) -> Pod:
    """A pod with claims that its container uses; or, with *by*, which of its containers use which."""
    claims = claims or ("c",)
    found = pod(name, claims=list(claims), **fields)
    containers = []
    for container_name, used in by or (("main", claims),):
        one = container(container_name)
        resources = (found.spec.containers or (one,))[0].resources if not by else one.resources
        entries = tuple(ContainerResourceClaim(entry) for entry in used) or None
        resources = replace(resources or ResourceRequirements(), claims=entries)
        containers.append(replace(one, name=container_name, resources=resources))
    return replace(found, spec=replace(found.spec, containers=tuple(containers)))


def cluster(*objects: Any, gate: bool = True, driver: str = DRIVER, **gates: bool) -> FakeHandle:
    """The node's devices, and claims."""
    devices = [one for one in objects if isinstance(one, Device)]
    claims = [one for one in objects if isinstance(one, ResourceClaim)]
    slices = [resource_slice("a", *devices, driver=driver)]
    known: dict[str, list[Any]] = {"DeviceClass": [CLASS], "ResourceSlice": slices, "ResourceClaim": claims}
    return FakeHandle(known_objects=known, gates={"DRANodeAllocatableResources": gate, **gates})


def outcome(incoming: Pod, handle: FakeHandle, *running: Pod) -> Outcome:
    return schedule(incoming, on=[NODE], plugins=[DRA], handle=handle, pods=running)


def statuses(incoming: Pod, handle: FakeHandle) -> list[tuple[str, tuple[str, ...] | None, dict[str, Quantity] | None]]:
    """What the status of the pod would say."""
    found = outcome(incoming, handle)
    assert found.feasible == ("a",), found
    by_node = found.state.node_allocatable_claims or {}
    return [(one.resource_claim_name, one.containers, one.resources) for one in by_node.get("a", ())]


def charged(name: str, claim: str, uid: str | None = None, namespace: str = "default") -> Pod:
    """A pod on the node whose devices take CPU there."""
    found = pod(name, node_name="a", namespace=namespace)
    entry = NodeAllocatableResourceClaimStatus(claim, ("main",), {"cpu": "1"})
    found = replace(found, status=replace(found.status, node_allocatable_resource_claim_statuses=(entry,)))
    return replace(found, metadata=replace(found.metadata, uid=uid or found.uid))


# --- how much devices take --------------------------------------------------------------------------------------------


def test_each_device_takes_its_multiplier() -> None:
    handle = cluster(mapped("d0", cpu="2", memory="4Gi"), mapped("d1", cpu="500m", memory="1Gi"), wanting(count=2))
    assert statuses(using(), handle) == [("c", ("main",), {"cpu": "2500m", "memory": "5Gi"})]


@pytest.mark.parametrize(
    ("of_device", "requested", "expected"),
    [
        (mapping("cores"), {"cores": "3"}, {"cpu": "3"}),
        (mapping("cores", "2"), {"cores": "3"}, {"cpu": "6"}),
        (mapping("cores", "1500m"), {"cores": "3"}, {"cpu": "4500m"}),
        (mapping("cores", 2), None, {"cpu": "8"}),
        (mapping("cores", "2Ki"), {"cores": "1m"}, {"cpu": "2048m"}),
        (mapping(), None, {"cpu": "0"}),
        (mapping("", "3"), None, {"cpu": "3"}),
    ],
)
def test_what_is_consumed_of_a_capacity_is_multiplied(
    of_device: NodeAllocatableResourceMapping, requested: Any, expected: dict[str, str]
) -> None:
    one = mapped(cpu=of_device, more={"capacity": {"cores": "4"}, **SHARED})
    assert statuses(using(), cluster(one, wanting(capacity=requested))) == [("c", ("main",), expected)]


def test_amounts_keep_their_style() -> None:
    more = {"capacity": {"bytes": "4Gi"}, **SHARED}
    handle = cluster(mapped(memory=mapping("bytes"), hugepages_2Mi="2Mi", more=more), wanting(capacity={"bytes": "3G"}))
    assert statuses(using(), handle) == [("c", ("main",), {"memory": "3G", "hugepages-2Mi": "2Mi"})]


def test_a_mapping_of_another_capacity_does_not_count() -> None:
    one = mapped(cpu=mapping("other"), more={"capacity": {"cores": "4"}, **SHARED})
    assert statuses(using(), cluster(one, wanting())) == []


def test_devices_without_mappings_take_nothing() -> None:
    assert statuses(using(), cluster(device("d0"), mapped("d1", cpu="1"), wanting())) == []


def test_a_capacity_of_a_device_that_is_not_shared_is_an_error() -> None:
    one = mapped(cpu=mapping("cores"), more={"capacity": {"cores": "4"}})
    found = outcome(using(), cluster(one, wanting()))
    assert found.error is not None
    assert found.error.message.endswith(
        "claim default/c, device d0: ConsumedCapacity is nil, but Capacity key 'cores' is set in "
        "NodeAllocatableResourceMappings for resource cpu"
    )


def test_a_multiplier_that_is_none_is_an_error() -> None:
    found = outcome(using(), cluster(mapped(cpu="many"), wanting()))
    assert "claim default/c, device d0: NodeAllocatableResourceMappings for resource cpu: " in str(found.error)


def test_the_status_names_the_containers_that_use_each_claim() -> None:
    handle = cluster(mapped("d0", cpu="1"), mapped("d1", cpu="1"), wanting("z"), wanting("b"))
    incoming = using("z", "b", by=(("one", ("b",)), ("two", ("z", "b")), ("three", ())))
    assert statuses(incoming, handle) == [("b", ("one", "two"), {"cpu": "1"}), ("z", ("two",), {"cpu": "1"})]


def test_a_claim_that_no_container_uses_is_refused() -> None:
    found = outcome(using("c", by=(("main", ()),)), cluster(mapped(cpu="1"), wanting()))
    assert found.statuses["a"].message == (
        "claim c: node-allocatable resource claim not referenced by any container within the pod"
    )
    assert found.statuses["a"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


# --- whether the node has it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "incoming", "message", "code"),
    [
        (mapped(cpu="8"), {}, None, None),
        (mapped(cpu="7"), {"cpu": "2"}, "Insufficient cpu", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        (mapped(cpu="5"), {"cpu": "2"}, None, None),
        (mapped(memory="17Gi"), {}, "Insufficient memory", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        (mapped(cpu="9", memory="17Gi"), {}, "Insufficient cpu, Insufficient memory", None),
        (mapped(ephemeral_storage="1"), {}, "Insufficient ephemeral-storage", None),
        (mapped(hugepages_2Mi="2Gi"), {}, "Insufficient hugepages-2Mi", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        (mapped(hugepages_2Mi="1Gi"), {}, None, None),
        (mapped(hugepages_1Gi="1Gi"), {}, "Insufficient hugepages-1Gi", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
    ],
)
def test_pods_fit_with_what_their_devices_take(
    one: Device, incoming: dict[str, str], message: str | None, code: Code | None
) -> None:
    found = outcome(using(**incoming), cluster(one, wanting()))
    if message is None:
        assert found.feasible == ("a",)
        return
    assert found.statuses["a"].message == message
    assert code is None or found.statuses["a"].code == code


def test_what_running_pods_take_is_not_free_and_could_be() -> None:
    found = outcome(using(), cluster(mapped(cpu="5"), wanting()), pod("other", node_name="a", cpu=4))
    assert found.statuses["a"].message == "Insufficient cpu"
    assert found.statuses["a"].code == Code.UNSCHEDULABLE


def test_without_the_gate_devices_take_nothing_of_the_node() -> None:
    handle = cluster(mapped(cpu="100"), wanting(), gate=False)
    found = outcome(using(by=(("main", ()),)), handle)
    assert found.feasible == ("a",)
    assert found.state.node_allocatable_claims is None


@pytest.mark.parametrize(("level", "fits"), [("3", True), ("2500m", False)])
def test_pod_level_requests_have_to_cover_the_devices(level: str, fits: bool) -> None:
    incoming = using(cpu="1")
    whole = ResourceRequirements(requests={"cpu": level})
    incoming = replace(incoming, spec=replace(incoming.spec, resources=whole))
    found = outcome(incoming, cluster(mapped(cpu="2"), wanting()))
    if fits:
        assert found.feasible == ("a",)
        return
    assert found.statuses["a"].message == (
        "pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA requests"
    )


def test_pods_with_claims_have_no_signature() -> None:
    handle = cluster(mapped(cpu="1"), wanting())
    assert make_plugin(DRA, None, handle).sign(using()) is None
    assert make_plugin(DRA, None, handle).sign(pod("x")) == ()


# --- claims that are allocated ----------------------------------------------------------------------------------------


def allocated() -> ResourceClaim:
    result = DeviceRequestAllocationResult(request="gpu", driver=DRIVER, pool="a", device="d0")
    return resource_claim("c", device_request(class_name="cpus"), allocated=[result])


@pytest.mark.parametrize(
    ("running", "message"),
    [
        ([], None),
        ([charged("x", "c")], "node allocatable resource claim c is already used by another pod"),
        ([charged("x", "c"), charged("y", "c")], "node allocatable resource claim c shared by multiple pods"),
        ([charged("x", "other")], None),
        ([charged("x", "c", namespace="elsewhere")], None),
        ([charged("x", "c", uid=using().uid)], None),
        ([pod("x", node_name="a")], None),
    ],
)
def test_pods_on_one_node_do_not_share_such_claims(running: list[Pod], message: str | None) -> None:
    found = outcome(using(), cluster(mapped(cpu="1"), allocated()), *running)
    if message is None:
        assert found.feasible == ("a",)
        return
    assert found.statuses["a"].message == message
    assert found.statuses["a"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    without_gate = cluster(mapped(cpu="1"), allocated(), gate=False)
    assert outcome(using(), without_gate, *running).feasible == ("a",)


def test_what_is_allocated_already_is_not_counted_again() -> None:
    assert statuses(using(), cluster(mapped(cpu="100"), allocated())) == []


def test_an_allocation_in_flight_counts_for_each_pod_of_a_group() -> None:
    more = {"capacity": {"cores": "4"}, **SHARED}
    claim = wanting(capacity={"cores": "3"})
    handle = cluster(mapped(cpu=mapping("cores", "2"), more=more), claim, GenericWorkload=True)
    handle.nodes = NodeColumns(make_table([NODE]))
    plugin = make_plugin(DRA, None, handle)
    for name in ("p", "q"):
        incoming, state = using(name=name, group="gang"), CycleState()
        assert plugin.pre_filter(incoming, handle.nodes, state) is None
        assert plugin.filter(incoming, handle.nodes, state).passes.tolist() == [True]
        assert plugin.reserve(incoming, "a", state) is None
        assert state.node_allocatable_claims is not None
        (one,) = state.node_allocatable_claims["a"]
        assert one.resources == {"cpu": "6"}


def test_a_device_that_is_gone_fails_its_claim_if_another_one_counts() -> None:
    handle = cluster(mapped("d0", cpu="1"), mapped("d1", cpu="1"), wanting(count=2), GenericWorkload=True)
    handle.nodes = NodeColumns(make_table([NODE]))
    plugin, state = make_plugin(DRA, None, handle), CycleState()
    first, second = using(name="p", group="gang"), using(name="q", group="gang")
    assert plugin.pre_filter(first, handle.nodes, state) is None
    plugin.filter(first, handle.nodes, state)
    assert plugin.reserve(first, "a", state) is None
    for left, message in ((["d0"], "claim default/c, device d1: device d1 not found in pool a"), ([], None)):
        devices = [mapped(name, cpu="1") for name in left]
        handle.known_objects["ResourceSlice"] = [resource_slice("a", *devices, driver=DRIVER)]
        state = CycleState()
        assert plugin.pre_filter(second, handle.nodes, state) is None
        verdicts = plugin.filter(second, handle.nodes, state)
        code = int(verdicts.codes[0])
        assert (verdicts.explain(code).message if code else None) == message


# --- the status of the pod --------------------------------------------------------------------------------------------


async def bound(handle: FakeHandle, incoming: Pod) -> tuple[Any, CycleState, Any]:
    handle.nodes = NodeColumns(make_table([NODE]))
    plugin, state = make_profile([DRA], handle=handle).plugins[DRA], CycleState()
    assert plugin.pre_filter(incoming, handle.nodes, state) is None
    assert plugin.filter(incoming, handle.nodes, state).passes.all()
    assert plugin.reserve(incoming, "a", state) is None
    return plugin, state, await plugin.pre_bind(incoming, "a", state)


def pod_patches(handle: FakeHandle) -> list[Any]:
    return [patch["status"] for kind, _name, patch in handle.patched if kind == "Pod"]


async def test_pre_bind_writes_the_status_and_unreserve_clears_it() -> None:
    handle = cluster(mapped(cpu="2"), wanting())
    incoming = using()
    plugin, state, status = await bound(handle, incoming)
    assert status is None
    entry = {"resourceClaimName": "c", "containers": ("main",), "resources": {"cpu": "2"}}
    assert pod_patches(handle) == [{"nodeAllocatableResourceClaimStatuses": [entry]}]
    plugin.unreserve(incoming, "a", state)
    (job,) = handle.jobs
    await job()
    assert pod_patches(handle)[1:] == [{"nodeAllocatableResourceClaimStatuses": None}]


async def test_nothing_is_written_for_devices_that_take_nothing() -> None:
    handle = cluster(device("d0"), wanting())
    assert (await bound(handle, using()))[2] is None
    assert pod_patches(handle) == []


async def test_unreserve_clears_only_what_was_written() -> None:
    handle = cluster(mapped(cpu="2"), wanting())
    handle.nodes = NodeColumns(make_table([NODE]))
    plugin, state, incoming = make_plugin(DRA, None, handle), CycleState(), using()
    assert plugin.pre_filter(incoming, handle.nodes, state) is None
    plugin.filter(incoming, handle.nodes, state)
    assert plugin.reserve(incoming, "a", state) is None
    plugin.unreserve(incoming, "a", state)
    assert handle.jobs == []


async def test_a_status_that_cannot_be_written_fails_the_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    handle, patch = cluster(mapped(cpu="2"), wanting()), FakeHandle.patch

    async def refuse(self: FakeHandle, kind: str, *args: Any, **fields: Any) -> Any:
        if kind == "Pod":
            raise RuntimeError("no")
        return await patch(self, kind, *args, **fields)

    monkeypatch.setattr(FakeHandle, "patch", refuse)
    status = (await bound(handle, using()))[2]
    assert status.message == "updating pod default/p NodeAllocatableResourceClaimStatuses: no"
