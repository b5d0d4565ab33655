"""Devices and pod groups while the API server is upgraded or downgraded under a running scheduler."""

from collections import Counter

import pytest
from gangs import GANG_GATES, member
from stored_claims import claims, devices_of
from trio.testing import MockClock

from trio_sched.testing import device, device_class, device_request, pod, pod_group, resource_claim, resource_slice
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

DRIVER = "gpu.example.com"


async def create_devices(cluster: VirtualCluster, *, each: int) -> None:
    await cluster.create(device_class())
    for number in (1, 2):
        devices = [device(f"gpu-{n}", capacity={"memory": f"{number * 40}Gi"}) for n in range(each)]
        await cluster.create(resource_slice(f"node-{number}", *devices))


async def create_users(cluster: VirtualCluster, *names: str) -> None:
    for name in names:
        await cluster.create(resource_claim(name))
        await cluster.create(pod(name, claims=[name]))
    await cluster.settle()


async def create_gang(cluster: VirtualCluster, name: str) -> None:
    await cluster.create(pod_group(name, min_count=2))
    for number in range(2):
        await cluster.create(member(f"{name}-{number}", name, cpu="1"))
    await cluster.settle()


@pytest.mark.parametrize("version", ["1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37"])
async def test_devices_are_allocated_on_every_version(autojump_clock: MockClock, version: str) -> None:
    async with virtual_cluster(nodes=2, kubernetes_version=version) as cluster:
        await create_devices(cluster, each=1)
        large = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("60Gi")) > 0'
        await cluster.create(resource_claim("large", device_request(selectors=[large])))
        await cluster.create(pod("large", claims=["large"]))
        await create_users(cluster, "small", "late")
        placed = cluster.placements()
        assert placed["default/large"] == "node-2"
        assert devices_of(claims(cluster)["large"]) == ["node-2/gpu-0"]
        assert sorted(placed.values()) == ["", "node-1", "node-2"]


@pytest.mark.parametrize("versions", [("1.34", "1.36"), ("1.33", "1.37"), ("1.36", "1.31"), ("1.31", "1.33")])
async def test_nothing_is_lost_or_allocated_twice_over_an_upgrade(
    autojump_clock: MockClock, versions: tuple[str, str]
) -> None:
    before, after = versions
    async with virtual_cluster(nodes=2, kubernetes_version=before) as cluster:
        await create_devices(cluster, each=2)
        await create_users(cluster, "a", "b")
        cluster.api.change_version(after)
        await create_users(cluster, "c", "d", "e")
        placed = cluster.placements()
        assert sum(map(bool, placed.values())) == 4
        assert placed["default/a"]
        assert placed["default/b"]
        allocated = [claim for claim in claims(cluster).values() if "allocation" in claim.get("status", {})]
        used = Counter(one for claim in allocated for one in devices_of(claim))
        assert len(used) == 4
        assert set(used.values()) == {1}
        # What happens to objects afterwards is seen, too.
        gone = next(one for one in cluster.pods() if one.name == "a")
        await cluster.delete(gone, grace_seconds=0)
        await cluster.settle()
        assert all(cluster.placements().values())


async def test_gangs_wait_while_no_version_is_served(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, gates=GANG_GATES, kubernetes_version="1.36") as cluster:
        await create_gang(cluster, "first")
        cluster.api.change_version("1.34")
        await cluster.create(pod("plain"))
        await cluster.settle()
        assert cluster.placements()["default/plain"]
        assembly = cluster.schedulers[0].assembly
        assert assembly is not None
        assert "runtime-config" in assembly.watches.unwatched["PodGroup"]
        cluster.api.change_version("1.37")
        await create_gang(cluster, "second")
        assert all(cluster.placements().values())
        assert "PodGroup" not in assembly.watches.unwatched
        assert cluster.api.store.collection("podgroups.scheduling.k8s.io").objects.keys() == {
            "default/first",
            "default/second",
        }


@pytest.mark.parametrize("versions", [("1.36", "1.37"), ("1.37", "1.36")])
async def test_gangs_are_scheduled_before_and_after_an_upgrade(
    autojump_clock: MockClock, versions: tuple[str, str]
) -> None:
    before, after = versions
    async with virtual_cluster(nodes=2, gates=GANG_GATES, kubernetes_version=before) as cluster:
        for name in ("first", "second"):
            await create_gang(cluster, name)
            assert all(cluster.placements().values())
            cluster.api.change_version(after)
        condition = "PodGroupScheduled" if before == "1.36" else "PodGroupInitiallyScheduled"
        group = cluster.api.store.get("podgroups.scheduling.k8s.io", "default/first")
        assert group is not None
        assert [one["type"] for one in group.fields["status"]["conditions"]] == [condition]
