"""Devices that are resources of the node, or take some besides, since 1.37: gate DRANodeAllocatableResources."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from trio_sched.objects.pod import ContainerResourceClaim, Pod, ResourceRequirements
from trio_sched.objects.resource.resource_claim import DeviceRequestAllocationResult, ResourceClaim
from trio_sched.objects.resource.resource_slice import (
    Device,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    NodeAllocatableResourceMapping,
)
from trio_sched.plugin_api import CycleState
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import (
    FakeHandle,
    Outcome,
    container,
    device,
    device_class,
    device_request,
    make_plugin,
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
SHARED: dict[str, Any] = {"capacity": {"cores": "4"}, "allow_multiple_allocations": True}


def maps(**mapping: str) -> NodeAllocatableResource:
    return NodeAllocatableResource(mapping=NodeAllocatableMapping(**mapping))


def takes(**overhead: str) -> NodeAllocatableResource:
    return NodeAllocatableResource(overhead=NodeAllocatableOverhead(**overhead))


def having(name: str = "d0", *, more: Mapping[str, Any] | None = None, **resources: NodeAllocatableResource) -> Device:
    named = {key.replace("_", "-"): one for key, one in resources.items()}
    return device(name, node_allocatable_resources=named, **(more or {}))


def wanting(name: str = "c", **request: Any) -> ResourceClaim:
    return resource_claim(name, device_request(class_name="cpus", **request))


def allocated(**more: Any) -> ResourceClaim:
    result = DeviceRequestAllocationResult(request="gpu", driver=DRIVER, pool="a", device="d0")
    return resource_claim("c", device_request(class_name="cpus"), allocated=[result], **more)


def using(*, name: str = "p", users: int = 1, limits: Mapping[str, str] | None = None, **fields: Any) -> Pod:
    """A pod with the claim c, so many of whose two containers use it, each with *limits*."""
    found = pod(name, claims=["c"], **fields)
    claims = (ContainerResourceClaim("c"),)
    own = dict(limits) if limits else None
    containers = tuple(
        replace(
            container(f"c{number}"),
            name=f"c{number}",
            resources=ResourceRequirements(claims=claims if number < users else None, limits=own),
        )
        for number in range(2)
    )
    return replace(found, spec=replace(found.spec, containers=containers))


def cluster(*objects: Any, **gates: bool) -> FakeHandle:
    devices = [one for one in objects if isinstance(one, Device)]
    claims = [one for one in objects if isinstance(one, ResourceClaim)]
    slices = [resource_slice("a", *devices, driver=DRIVER)]
    known: dict[str, list[Any]] = {"DeviceClass": [CLASS], "ResourceSlice": slices, "ResourceClaim": claims}
    return FakeHandle(
        known_objects=known, gates={"DRANodeAllocatableResources": True, **gates}, emulated_version=(1, 37)
    )


def outcome(incoming: Pod, handle: FakeHandle) -> Outcome:
    return schedule(incoming, on=[NODE], plugins=[DRA], handle=handle)


def status(incoming: Pod, handle: FakeHandle) -> Any:
    """What the status of the pod would say of its claim; None if nothing."""
    found = outcome(incoming, handle)
    assert found.feasible == ("a",), found
    statuses = (found.state.node_allocatable_claims or {}).get("a", ())
    return json.decode(json.encode(statuses[0])) if statuses else None


def entry(*containers: str, **fields: Any) -> dict[str, Any]:
    used = {"containers": list(containers)} if containers else {}
    return {"resourceClaimName": "c", **used, **fields}


def message(incoming: Pod, handle: FakeHandle) -> str | None:
    found = outcome(incoming, handle)
    return None if found.feasible else found.statuses["a"].message


@pytest.mark.parametrize(
    ("one", "request_", "expected"),
    [
        (having(cpu=maps(device_multiplier="2")), {}, {"mapping": [{"name": "cpu", "quantity": "2"}]}),
        (
            having(cpu=maps(capacity_key="cores", capacity_multiplier="1500m"), more=SHARED),
            {"capacity": {"cores": "3"}},
            {"mapping": [{"name": "cpu", "quantity": "4500m"}]},
        ),
        (
            having(cpu=maps(capacity_key="cores"), more=SHARED),
            {"capacity": {"cores": "3"}},
            {"mapping": [{"name": "cpu", "quantity": "3"}]},
        ),
        (
            having(memory=takes(per_pod="1Gi", per_container="512Mi"), cpu=takes(per_pod="1")),
            {},
            {
                "overhead": [
                    {"name": "cpu", "perPod": "1"},
                    {"name": "memory", "perPod": "1Gi", "perContainer": "512Mi"},
                ]
            },
        ),
        (
            having(cpu=NodeAllocatableResource(maps(device_multiplier="2").mapping, takes(per_pod="1").overhead)),
            {},
            {"mapping": [{"name": "cpu", "quantity": "2"}], "overhead": [{"name": "cpu", "perPod": "1"}]},
        ),
    ],
)
def test_devices_are_a_part_of_the_node_or_take_some_of_it(
    one: Device, request_: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert status(using(), cluster(one, wanting(**request_))) == entry("c0", **expected)


def test_the_devices_of_a_claim_are_added_up() -> None:
    both = NodeAllocatableResource(maps(device_multiplier="1500m").mapping, takes(per_container="100m").overhead)
    handle = cluster(having("d0", cpu=both), having("d1", cpu=both), having("d2"), wanting(count=3))
    assert status(using(users=2), handle) == entry(
        "c0",
        "c1",
        mapping=[{"name": "cpu", "quantity": "3"}],
        overhead=[{"name": "cpu", "perContainer": "200m"}],
    )


def test_a_capacity_that_is_not_consumed_is_no_part_of_the_node() -> None:
    one = having(cpu=maps(capacity_key="other"), more=SHARED)
    assert status(using(), cluster(one, wanting())) is None


def test_the_fields_of_1_36_say_nothing() -> None:
    old = {"cpu": NodeAllocatableResourceMapping(allocation_multiplier="100")}
    assert status(using(), cluster(device("d0", node_allocatable_resource_mappings=old), wanting())) is None


def test_containers_need_not_use_a_claim() -> None:
    one = having(cpu=maps(device_multiplier="2"))
    assert status(using(users=0), cluster(one, wanting())) == entry(mapping=[{"name": "cpu", "quantity": "2"}])


@pytest.mark.parametrize(
    ("one", "users", "expected"),
    [
        (having(cpu=maps(device_multiplier="8")), 2, None),
        (having(cpu=maps(device_multiplier="9")), 2, "Insufficient cpu"),
        (having(cpu=takes(per_pod="2", per_container="3")), 2, None),
        (having(cpu=takes(per_pod="2", per_container="4")), 2, "Insufficient cpu"),
        (having(cpu=takes(per_pod="2", per_container="4")), 1, None),
        (having(hugepages_2Mi=takes(per_pod="2Gi")), 1, "Insufficient hugepages-2Mi"),
    ],
)
def test_the_node_must_have_as_much_as_the_pod_takes(one: Device, users: int, expected: str | None) -> None:
    assert message(using(users=users), cluster(one, wanting())) == expected


def test_what_is_allocated_already_counts_for_this_pod_too() -> None:
    handle = cluster(having(memory=takes(per_pod="1Gi")), allocated(reserved_for=["another"]))
    assert status(using(), handle) == entry("c0", overhead=[{"name": "memory", "perPod": "1Gi"}])
    assert message(using(), cluster(having(memory=takes(per_pod="17Gi")), allocated())) == "Insufficient memory"


@pytest.mark.parametrize(
    ("resource", "reserved_for", "fits"),
    [
        (maps(device_multiplier="1"), ["another"], False),
        (maps(device_multiplier="1"), [using().uid], True),
        (maps(device_multiplier="1"), [], True),
        (takes(per_pod="1"), ["another"], True),
    ],
)
def test_a_part_of_the_node_is_not_shared_by_pods(
    resource: NodeAllocatableResource, reserved_for: list[str], fits: bool
) -> None:
    expected = "node allocatable resource claim c has a mapped device and cannot be shared across pods"
    handle = cluster(having(cpu=resource), allocated(reserved_for=reserved_for))
    assert message(using(), handle) == (None if fits else expected)


@pytest.mark.parametrize(("resource", "fits"), [(maps(device_multiplier="1"), False), (takes(per_pod="1"), True)])
def test_pods_of_a_group_share_what_is_taken_besides_alone(resource: NodeAllocatableResource, fits: bool) -> None:
    handle = cluster(having(cpu=resource), wanting(), GenericWorkload=True)
    handle.nodes = NodeColumns(make_table([NODE]))
    plugin = make_plugin(DRA, None, handle)
    first, second = (using(name=name, group="gang") for name in "pq")
    assert plugin.pre_filter(first, handle.nodes, state := CycleState()) is None
    assert plugin.filter(first, handle.nodes, state).passes.all()
    assert plugin.reserve(first, "a", state) is None
    assert plugin.pre_filter(second, handle.nodes, state := CycleState()) is None
    assert bool(plugin.filter(second, handle.nodes, state).passes.all()) == fits


def with_limits(found: Pod, **limits: str) -> Pod:
    named = {key.replace("_", "-"): value for key, value in limits.items()}
    return replace(found, spec=replace(found.spec, resources=ResourceRequirements(limits=named)))


@pytest.mark.parametrize(
    ("incoming", "expected"),
    [
        (with_limits(using(limits={"cpu": "1"}), cpu="4"), None),
        (
            with_limits(using(limits={"cpu": "2"}), cpu="4"),
            "pod level limit for cpu is insufficient to cover the limit and DRA overhead for container c0",
        ),
        (with_limits(using(limits={"cpu": "2"}, users=0), cpu="4"), None),
        (
            with_limits(using(limits={"hugepages-2Mi": "2Mi"}), hugepages_2Mi="4Mi"),
            "pod level limit for hugepages-2Mi is insufficient to cover the aggregated container and node-allocatable "
            "DRA limits",
        ),
        (with_limits(using(limits={"hugepages-2Mi": "2Mi"}), hugepages_2Mi="6Mi"), None),
    ],
)
def test_the_limits_of_the_pod_must_cover_what_its_devices_take(incoming: Pod, expected: str | None) -> None:
    one = having(cpu=takes(per_pod="1", per_container="2"), hugepages_2Mi=maps(device_multiplier="2Mi"))
    assert message(incoming, cluster(one, wanting())) == expected


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            having(cpu=maps(capacity_key="cores"), more={"capacity": {"cores": "4"}}),
            "claim default/c, device d0: ConsumedCapacity is nil, but Capacity key 'cores' is set in "
            "NodeAllocatableResources for resource cpu",
        ),
        (having(cpu=takes(per_pod="much")), "claim default/c, device d0: NodeAllocatableResources for resource cpu: "),
    ],
)
def test_what_cannot_be_added_up_is_an_error(one: Device, text: str) -> None:
    found = outcome(using(), cluster(one, wanting()))
    assert found.error is not None
    assert text in found.error.message


def test_a_device_that_is_gone_is_an_error_if_another_one_counts() -> None:
    results = [
        DeviceRequestAllocationResult(request="gpu", driver=DRIVER, pool="a", device=name) for name in ("d0", "d1")
    ]
    claim = resource_claim("c", device_request(class_name="cpus"), allocated=results)
    found = outcome(using(), cluster(having(cpu=takes(per_pod="1")), claim))
    assert found.error is not None
    assert found.error.message.endswith(
        f"claim default/c, device d1, driver {DRIVER}: device d1 not found in pool a for driver {DRIVER}"
    )
    assert status(using(), cluster(device("d2"), claim)) is None
