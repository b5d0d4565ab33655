"""Pods that get devices, from the claim to the bind, and give them back."""

from typing import Any

import pytest
import trio
from stored_claims import claims, devices_of
from trio.testing import MockClock

from trio_sched.testing import device, device_class, device_request, node, pod, resource_claim, resource_slice
from trio_sched.testing.cluster import virtual_cluster

DRIVER = "gpu.example.com"


async def test_pods_get_the_devices_that_their_claims_ask_for(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2) as cluster:
        await cluster.create(device_class())
        await cluster.create(resource_slice("node-1", device("gpu-0", capacity={"memory": "40Gi"})))
        await cluster.create(resource_slice("node-2", device("gpu-0", capacity={"memory": "80Gi"})))
        large = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("60Gi")) > 0'
        await cluster.create(resource_claim("large", device_request(selectors=[large])))
        await cluster.create(pod("train", claims=["large"]))
        await cluster.settle()
        assert cluster.placements() == {"default/train": "node-2"}
        claim = claims(cluster)["large"]
        assert devices_of(claim) == ["node-2/gpu-0"]
        assert [one["name"] for one in claim["status"]["reservedFor"]] == ["train"]
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


async def test_a_pod_waits_for_its_claim_and_for_a_free_device(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(device_class())
        await cluster.create(resource_slice("node-1", device("gpu-0")))
        await cluster.create(pod("second", claims=["b"]))
        await cluster.create(resource_claim("a"))
        first = await cluster.create(pod("first", claims=["a"]))
        await cluster.settle()
        await cluster.create(resource_claim("b"))
        await cluster.settle()
        assert cluster.placements() == {"default/first": "node-1", "default/second": ""}
        (event,) = cluster.events("FailedScheduling", about="second")[-1:]
        assert "1 cannot allocate all claims. still not schedulable" in event.message
        await cluster.delete(first, grace_seconds=0)
        await cluster.settle()
        assert cluster.placements() == {"default/second": "node-1"}
        assert devices_of(claims(cluster)["b"]) == ["node-1/gpu-0"]
        assert "allocation" not in claims(cluster)["a"].get("status", {})


async def test_pods_share_a_claim_where_its_devices_are(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=3) as cluster:
        await cluster.create(device_class())
        await cluster.create(resource_slice("node-2", device("gpu-0")))
        await cluster.create(resource_claim("shared"))
        for name in ("a", "b", "c"):
            await cluster.create(pod(name, claims=["shared"]))
        await cluster.settle()
        assert set(cluster.placements().values()) == {"node-2"}
        reserved = claims(cluster)["shared"]["status"]["reservedFor"]
        assert sorted(one["name"] for one in reserved) == ["a", "b", "c"]


async def test_an_extended_resource_is_served_by_devices(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("plain"), node("with-devices")]) as cluster:
        await cluster.create(device_class(extended_resource_name="example.com/gpu"))
        await cluster.create(resource_slice("with-devices", device("gpu-0"), device("gpu-1")))
        created = await cluster.create(pod("train", requests={"example.com/gpu": 2}))
        await cluster.settle()
        assert cluster.placements() == {"default/train": "with-devices"}
        ((name, claim),) = claims(cluster).items()
        assert name.startswith("train-extended-resources-")
        assert devices_of(claim) == ["with-devices/gpu-0", "with-devices/gpu-1"]
        stored = cluster.api.store.get("pods", "default/train")
        assert stored is not None
        assert stored.fields["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == name
        await cluster.delete(created, grace_seconds=0)
        await cluster.settle()
        assert claims(cluster) == {}


async def test_a_scheduler_that_starts_again_goes_on_with_what_is_written(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, bind_latency_seconds=20) as cluster:
        await cluster.create(device_class())
        await cluster.create(resource_slice("node-1", device("gpu-0")))
        await cluster.create(resource_slice("node-2", device("gpu-0")))
        await cluster.create(resource_claim("c"))
        await cluster.create(pod("train", claims=["c"]))
        await trio.sleep(10)
        before = devices_of(claims(cluster)["c"])
        assert cluster.placements() == {"default/train": ""}
        await cluster.schedulers[0].kill()
        await cluster.start_scheduler()
        await cluster.settle()
        assert devices_of(claims(cluster)["c"]) == before
        assert cluster.placements() == {"default/train": before[0].partition("/")[0]}


@pytest.mark.parametrize(
    ("version", "gates", "is_kept"),
    [("1.36", {}, False), ("1.36", {"DRADeviceTaintRules": True}, True), ("1.37", {}, True)],
)
async def test_a_taint_rule_keeps_pods_from_devices_until_it_is_deleted(
    autojump_clock: MockClock, version: str, gates: dict[str, bool], is_kept: bool
) -> None:
    async with virtual_cluster(nodes=1, gates=gates, emulated_version=version) as cluster:
        await cluster.create(device_class())
        await cluster.create(resource_slice("node-1", device("gpu-0")))
        rule: dict[str, Any] = {
            "apiVersion": "resource.k8s.io/v1beta2",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "broken"},
            "spec": {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "broken", "effect": "NoSchedule"}},
        }
        await cluster.create(rule)
        await cluster.create(resource_claim("c"))
        await cluster.create(pod("train", claims=["c"]))
        await cluster.settle()
        assert cluster.placements() == {"default/train": "" if is_kept else "node-1"}
        await cluster.delete(rule)
        await cluster.settle()
        assert cluster.placements() == {"default/train": "node-1"}
