"""Claims that the pods of a group share, from the template to the release: gate DRAWorkloadResourceClaims."""

from typing import Any

from gangs import GANG_GATES, member
from trio.testing import MockClock

from trio_sched.objects.pod import PodResourceClaim
from trio_sched.objects.pod_groups.pod_group import PodGroupResourceClaim
from trio_sched.testing import device, device_class, node, pod_group, resource_slice
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

GATES = {**GANG_GATES, "DRAWorkloadResourceClaims": True}
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu", "namespace": "default"},
    "spec": {"spec": SPEC},
}
OF_POD = PodResourceClaim(name="gpu", resource_claim_template_name="one-gpu")
OF_GROUP = PodGroupResourceClaim(name="gpu", resource_claim_template_name="one-gpu")


def claims(cluster: VirtualCluster) -> list[dict[str, Any]]:
    return [one.fields for one in cluster.api.store.collection("resourceclaims.resource.k8s.io").objects.values()]


def stored_group(cluster: VirtualCluster, name: str) -> dict[str, Any]:
    found = cluster.api.store.get("podgroups.scheduling.k8s.io", f"default/{name}")
    assert found is not None
    return found.fields


async def test_the_pods_of_a_gang_share_one_device_until_the_group_goes(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=3, gates=GATES) as cluster:
        for one in (device_class(), TEMPLATE, resource_slice("node-2", device("gpu-0"))):
            await cluster.create(one)
        group = await cluster.create(pod_group("gang", min_count=3, claims=[OF_GROUP]))
        pods = [await cluster.create(member(f"p{n}", "gang", cpu="1", claims=[OF_POD])) for n in range(3)]
        await cluster.settle()
        assert set(cluster.placements().values()) == {"node-2"}
        (claim,) = claims(cluster)
        assert claim["metadata"]["ownerReferences"][0]["kind"] == "PodGroup"
        (reference,) = claim["status"]["reservedFor"]
        uid = stored_group(cluster, "gang")["metadata"]["uid"]
        expected = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": uid}
        assert reference == expected
        assert {one.status.phase for one in cluster.pods()} == {"Running"}
        for one in pods:
            await cluster.delete(one, grace_seconds=0)
        await cluster.settle()
        assert claims(cluster)[0]["status"]["reservedFor"] == [expected]  # for pods that may come
        await cluster.delete(group)
        await cluster.settle()
        assert claims(cluster) == []


async def test_a_pod_that_joins_later_goes_where_the_devices_are(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=3, gates=GATES) as cluster:
        for one in (device_class(), TEMPLATE, resource_slice("node-3", device("gpu-0"))):
            await cluster.create(one)
        await cluster.create(member("p0", "group", cpu="1", claims=[OF_POD]))
        await cluster.settle()
        assert claims(cluster) == []  # no group, no claim of it
        await cluster.create(pod_group("group", claims=[OF_GROUP]))
        await cluster.settle()
        await cluster.create(member("p1", "group", cpu="1", claims=[OF_POD]))
        await cluster.settle()
        assert set(cluster.placements().values()) == {"node-3"}
        (claim,) = claims(cluster)
        assert len(claim["status"]["reservedFor"]) == 1


async def test_two_groups_with_one_template_have_a_claim_each(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, gates=GATES) as cluster:
        await cluster.create(device_class())
        await cluster.create(TEMPLATE)
        for name in ("node-1", "node-2"):
            await cluster.create(resource_slice(name, device("gpu-0")))
        for name in ("one", "two"):
            await cluster.create(pod_group(name, min_count=2, claims=[OF_GROUP]))
            for number in range(2):
                await cluster.create(member(f"{name}-{number}", name, cpu="1", claims=[OF_POD]))
        await cluster.settle()
        placed = cluster.placements()
        assert placed["default/one-0"] == placed["default/one-1"] != placed["default/two-0"] == placed["default/two-1"]
        assert "" not in placed.values()
        assert sorted(one["status"]["reservedFor"][0]["name"] for one in claims(cluster)) == ["one", "two"]


async def test_a_group_looks_for_other_devices_when_its_own_are_out_of_reach(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, gates=GATES) as cluster:
        for one in (device_class(), TEMPLATE, resource_slice("node-1", device("gpu-0"))):
            await cluster.create(one)
        await cluster.create(pod_group("gang", min_count=2, claims=[OF_GROUP]))
        first = await cluster.create(member("p0", "gang", cpu="1", claims=[OF_POD]))
        second = await cluster.create(member("p1", "gang", cpu="1", claims=[OF_POD]))
        await cluster.settle()
        assert set(cluster.placements().values()) == {"node-1"}
        for one in (first, second):
            await cluster.delete(one, grace_seconds=0)
        await cluster.patch(node("node-1"), {"spec": {"unschedulable": True}})
        await cluster.create(resource_slice("node-2", device("gpu-0")))
        for number in range(2, 4):
            await cluster.create(member(f"p{number}", "gang", cpu="1", claims=[OF_POD]))
        await cluster.settle()
        assert set(cluster.placements().values()) == {"node-2"}
        (claim,) = claims(cluster)
        assert claim["status"]["allocation"]["devices"]["results"][0]["pool"] == "node-2"
        assert [one["name"] for one in claim["status"]["reservedFor"]] == ["gang"]
