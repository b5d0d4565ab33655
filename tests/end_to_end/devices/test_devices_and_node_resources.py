"""Devices that take CPU of their node, from the decision to the status of the pod: gate DRANodeAllocatableResources."""

from typing import Any

import trio
from msgspec.structs import replace
from trio.testing import MockClock

from trio_sched.objects.pod import ContainerResourceClaim, Pod, ResourceRequirements
from trio_sched.objects.resource.resource_slice import (
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    NodeAllocatableResourceMapping,
)
from trio_sched.testing import device, device_class, device_request, node, pod, resource_claim, resource_slice
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

GATES = {"DRANodeAllocatableResources": True}
CORES = NodeAllocatableResourceMapping(capacity_key="cores")


def cores(name: str, amount: int, **fields: Any) -> Any:
    """A device that gives away whole cores of the node."""
    capacity = {"cores": str(amount)}
    mappings = {"cpu": CORES}
    return device(
        name, capacity=capacity, allow_multiple_allocations=True, node_allocatable_resource_mappings=mappings, **fields
    )


def using(name: str, claim: str, **fields: Any) -> Pod:
    found = pod(name, claims=[claim], **fields)
    (one,) = found.spec.containers or ()
    resources = replace(one.resources or ResourceRequirements(), claims=(ContainerResourceClaim(claim),))
    return replace(found, spec=replace(found.spec, containers=(replace(one, resources=resources),)))


def status_of(cluster: VirtualCluster, name: str) -> dict[str, Any]:
    stored = cluster.api.store.get("pods", f"default/{name}")
    assert stored is not None
    found: dict[str, Any] = stored.fields["status"]
    return found


async def prepare(cluster: VirtualCluster, *nodes: str, **claims: str) -> None:
    await cluster.create(device_class())
    for name in nodes:
        await cluster.create(resource_slice(name, cores("cpus", 8)))
    for name, amount in claims.items():
        await cluster.create(resource_claim(name, device_request(capacity={"cores": amount})))


async def test_cores_of_devices_are_not_free_for_other_pods(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=8)], gates=GATES) as cluster:
        await prepare(cluster, "n", big="6")
        await cluster.create(using("pinned", "big", cpu="1"))
        await cluster.settle()
        assert cluster.placements() == {"default/pinned": "n"}
        entry = {"resourceClaimName": "big", "containers": ["main"], "resources": {"cpu": "6"}}
        assert status_of(cluster, "pinned")["nodeAllocatableResourceClaimStatuses"] == [entry]
        await cluster.create(pod("small", cpu="1"))
        await cluster.create(pod("large", cpu="2"))
        await cluster.settle()
        assert cluster.placements() == {"default/pinned": "n", "default/small": "n", "default/large": ""}
        (event,) = cluster.events("FailedScheduling", about="large")[-1:]
        assert "Insufficient cpu" in event.message


async def test_a_pod_goes_where_its_cores_are_free(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=8), node("b", cpu=8)], gates=GATES) as cluster:
        await prepare(cluster, "a", "b", one="5", two="5", three="5")
        for name in ("one", "two", "three"):
            await cluster.create(using(name, name))
        await cluster.settle()
        placed = cluster.placements()
        assert sorted(placed.values()) == ["", "a", "b"]
        (waiting,) = [key.partition("/")[2] for key, found in placed.items() if not found]
        (event,) = cluster.events("FailedScheduling", about=waiting)[-1:]
        assert "2 cannot allocate all claims" in event.message  # eight cores less five are three


async def test_pods_whose_requests_leave_no_cores_wait(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=8)], gates=GATES) as cluster:
        await prepare(cluster, "n", c="6")
        await cluster.create(pod("first", cpu="4", priority=10))
        await cluster.settle()
        await cluster.create(using("second", "c"))
        await cluster.settle()
        assert cluster.placements()["default/second"] == ""
        (event,) = cluster.events("FailedScheduling", about="second")[-1:]
        assert "1 Insufficient cpu" in event.message
        assert "nodeAllocatableResourceClaimStatuses" not in status_of(cluster, "second")


async def test_pods_of_lower_priority_make_room_for_cores(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=8)], gates=GATES) as cluster:
        await prepare(cluster, "n", c="6")
        await cluster.create(pod("low", cpu="4", grace_seconds=1))
        await cluster.settle()
        await cluster.create(using("high", "c", priority=10))
        await cluster.settle()
        assert cluster.placements() == {"default/high": ""}  # the plugin that refused it hears of no deleted pods
        await trio.sleep(400)  # pods are tried again after five minutes at the latest
        await cluster.settle()
        assert cluster.placements() == {"default/high": "n"}


async def test_without_the_gate_the_cores_stay_free(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=8)]) as cluster:
        await prepare(cluster, "n", c="6")
        await cluster.create(using("pinned", "c", cpu="1"))
        await cluster.create(pod("large", cpu="6"))
        await cluster.settle()
        assert set(cluster.placements().values()) == {"n"}
        assert "nodeAllocatableResourceClaimStatuses" not in status_of(cluster, "pinned")


async def test_a_scheduler_that_starts_again_counts_them(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=8)], gates=GATES) as cluster:
        await prepare(cluster, "n", c="6")
        await cluster.create(using("pinned", "c"))
        await cluster.settle()
        await cluster.schedulers[0].kill()
        await cluster.start_scheduler()
        await cluster.create(pod("large", cpu="3"))
        await cluster.create(pod("small", cpu="2"))
        await cluster.settle()
        assert cluster.placements() == {"default/pinned": "n", "default/large": "", "default/small": "n"}


async def test_since_1_37_the_status_says_what_is_mapped_and_what_is_taken_besides(autojump_clock: MockClock) -> None:
    taken = {
        "cpu": NodeAllocatableResource(mapping=NodeAllocatableMapping(capacity_key="cores")),
        "memory": NodeAllocatableResource(overhead=NodeAllocatableOverhead(per_pod="1Gi", per_container="512Mi")),
    }
    cpus = device("cpus", capacity={"cores": "8"}, allow_multiple_allocations=True, node_allocatable_resources=taken)
    nodes = [node("n", cpu=8, memory="4Gi")]
    async with virtual_cluster(nodes=nodes, gates=GATES, emulated_version="1.37", kubernetes_version="1.37") as cluster:
        await cluster.create(device_class())
        await cluster.create(resource_slice("n", cpus))
        await cluster.create(resource_claim("big", device_request(capacity={"cores": "6"})))
        await cluster.create(using("pinned", "big", cpu="1"))
        await cluster.settle()
        entry = {
            "resourceClaimName": "big",
            "containers": ["main"],
            "mapping": [{"name": "cpu", "quantity": "6"}],
            "overhead": [{"name": "memory", "perPod": "1Gi", "perContainer": "512Mi"}],
        }
        assert status_of(cluster, "pinned")["nodeAllocatableResourceClaimStatuses"] == [entry]
        await cluster.create(pod("cpu", cpu="2"))
        await cluster.create(pod("memory", memory="3Gi"))
        await cluster.create(pod("small", cpu="1", memory="2Gi"))
        await cluster.settle()
        assert {key.partition("/")[2] for key, found in cluster.placements().items() if found} == {"pinned", "small"}
