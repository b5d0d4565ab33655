"""Pods that get devices for an extended resource: the lane binds them, also to places that others keep for them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import trio
from device_ledger import DeviceLedger
from evictions import Evictions
from lossy_network import Deadline, start_behind_lossy_network, start_with_deadline
from sharded_replicas import SETTLED_SECONDS, Replicas, replicas_of, sharding_of
from trio.testing import MockClock

from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.engine.sharding.reserved_places import has_room
from trio_sched.simulator import KubeletPace
from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing import device, device_class, node, pod, resource_slice
from trio_sched.testing.cluster import VirtualCluster

HOST = "kubernetes.io/hostname"
GPU = "example.com/gpu"
CLAIMS = "resourceclaims.resource.k8s.io"


def of_shard(shard: int) -> str:
    """The name of a node of one of two shards."""
    return next(name for name in (f"n{number}" for number in range(99)) if shard_of(name, 2) == shard)


OWN, OTHER = of_shard(LANE), of_shard(1)
NODES = [node(name, cpu=4) for name in (OWN, OTHER)]


async def create_devices(cluster: VirtualCluster, *, count: int = 1) -> None:
    """Devices on the node of another process than the lane."""
    await cluster.create(device_class(extended_resource_name=GPU))
    await cluster.create(resource_slice(OTHER, *[device(f"gpu-{number}") for number in range(count)]))
    await trio.sleep(1)


async def create(cluster: VirtualCluster, name: str, **details: Any) -> None:
    await cluster.create(pod(name, requests={GPU: 1}, **details))


def device_of(cluster: VirtualCluster, name: str) -> str:
    """The node and the device of a pod, of the claim that its status names and that is reserved for it."""
    stored = cluster.pod(name)
    claim_status = stored.status.extended_resource_claim_status
    assert claim_status is not None
    claim = cluster.api.store.get(CLAIMS, f"default/{claim_status.resource_claim_name}")
    assert claim is not None
    status = claim.fields["status"]
    assert [one["uid"] for one in status["reservedFor"]] == [stored.uid]
    (result,) = status["allocation"]["devices"]["results"]
    return f"{result['pool']}/{result['device']}"


def check_left(replicas: Replicas) -> None:
    for process in replicas.running:
        sharding = sharding_of(process)
        left = (list(sharding.owned.under_way), sharding.groups.unfinished, sharding.places().elsewhere)
        assert left == ([], 0, {})


@asynccontextmanager
async def two_replicas(**details: Any) -> AsyncGenerator[tuple[Replicas, DeviceLedger], None]:
    async with replicas_of(NODES, shards=2, replicas=2, **details) as replicas:
        ledger = DeviceLedger(replicas.cluster)
        yield replicas, ledger
        wrong = ledger.wrong
        assert wrong == []


async def test_the_lane_binds_pods_to_places_that_the_owners_of_the_devices_keep(autojump_clock: MockClock) -> None:
    async with two_replicas() as (replicas, _ledger):
        cluster = replicas.cluster
        await create_devices(cluster, count=2)
        for name in ("a", "b", "c"):
            await create(cluster, name, cpu=1)
        await cluster.settle()
        placed = {name.removeprefix("default/"): at for name, at in cluster.placements().items() if at}
        devices = sorted(device_of(cluster, name) for name in placed)
        assert (list(placed.values()), devices) == ([OTHER, OTHER], [f"{OTHER}/gpu-0", f"{OTHER}/gpu-1"])
        results = sharding_of(replicas.owner(LANE)).proposals.results
        kept, claims = results["reserved"], len(cluster.api.store.collection(CLAIMS).objects)
        assert (kept, claims) == (2, 2)
        check_left(replicas)


async def test_others_make_room_for_such_a_pod_on_a_node_of_another(autojump_clock: MockClock) -> None:
    async with two_replicas(kubelets=KubeletPace(stop_seconds=10.0)) as (replicas, ledger):
        cluster, evictions = replicas.cluster, Evictions(replicas.cluster)
        await create_devices(cluster)
        await cluster.create(pod("low", cpu=4, node_selector={HOST: OTHER}))
        await trio.sleep(2)
        await create(cluster, "high", cpu=2, priority=10)
        await trio.sleep(3)
        early = ledger.devices()
        await cluster.settle()
        cluster.assert_scheduled("high", on=OTHER)
        given, victims, wrong = device_of(cluster, "high"), list(evictions.victims), evictions.wrong
        assert (early, given, victims, wrong) == ({}, f"{OTHER}/gpu-0", ["low"], [])
        check_left(replicas)


async def test_a_pod_whose_place_is_not_kept_gets_no_device(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        await create_devices(cluster)
        lane, link = next(one for one in links if LANE in sharding_of(one[0]).owned.ready)
        link.held = b"/pods/a/status"
        await create(cluster, "a", cpu=4)
        await trio.sleep(1)
        blocker = await cluster.create(pod("blocker", cpu=1, node_name=OTHER))
        link.held = b""
        link.let_go.set()
        await trio.sleep(3)
        refused, allocated = sharding_of(lane).proposals.results["refused"], list(ledger.devices())
        assert (refused, allocated) == (1, [])
        await cluster.delete(blocker, grace_seconds=0)
        await trio.sleep(20)
        cluster.assert_scheduled("a", on=OTHER)
        given = device_of(cluster, "a")
        assert given == f"{OTHER}/gpu-0"
        network.cancel_scope.cancel()


async def test_the_owner_of_a_node_leaves_such_a_pod_to_the_lane(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster = replicas.cluster
        links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        await create_devices(cluster)
        link = next(link for process, link in links if LANE in sharding_of(process).owned.ready)
        link.is_behind = True  # it decides on nothing that comes
        await create(cluster, "a", cpu=1)
        await cluster.patch(cluster.pod("a"), {"status": {"nominatedNodeName": OTHER}}, subresource="status")
        await trio.sleep(2)
        found, claims = cluster.pod("a"), len(cluster.api.store.collection(CLAIMS).objects)
        assert (found.node_name, has_room(found), claims) == ("", True, 0)
        link.is_behind = False
        link.caught_up.set()
        await trio.sleep(5)
        cluster.assert_scheduled("a", on=OTHER)
        given = device_of(cluster, "a")
        assert given == f"{OTHER}/gpu-0"
        network.cancel_scope.cancel()


async def test_what_a_dead_lane_has_written_into_the_status_of_a_pod_does_not_arrive_later(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster = replicas.cluster
        links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        await create_devices(cluster)
        lane, link = next(one for one in links if LANE in sharding_of(one[0]).owned.ready)

        def hold(change: Change) -> None:
            if (change.current.fields.get("status") or {}).get("allocation"):
                link.held = b"/pods/a/status"

        cluster.api.store.collection(CLAIMS).listen(hold)
        await create(cluster, "a", cpu=1)
        await trio.sleep(2)
        claims = len(cluster.api.store.collection(CLAIMS).objects)
        assert (claims, cluster.pod("a").status.extended_resource_claim_status) == (1, None)
        await lane.kill()
        await trio.sleep(40)
        cluster.assert_scheduled("a", on=OTHER)
        before = device_of(cluster, "a")
        link.let_go.set()
        await trio.sleep(1)
        after, claims = device_of(cluster, "a"), len(cluster.api.store.collection(CLAIMS).objects)
        assert (before, after, claims) == (f"{OTHER}/gpu-0", f"{OTHER}/gpu-0", 1)
        network.cancel_scope.cancel()


@pytest.mark.parametrize("last", range(1, 8))
async def test_a_replica_that_dies_after_any_of_its_writes_leaves_nothing_half_done(
    last: int, autojump_clock: MockClock
) -> None:
    deadline = Deadline()
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        for _ in range(2):
            await start_with_deadline(cluster, network, deadline)
        await trio.sleep(SETTLED_SECONDS)
        await create_devices(cluster)
        deadline.last = last
        await create(cluster, "a", cpu=1)
        await trio.sleep(15)
        dead = deadline.dead
        if dead is None:
            raise AssertionError("there were fewer writes")
        await dead.kill()
        await trio.sleep(60)
        cluster.assert_scheduled("a", on=OTHER)
        given, wrong = device_of(cluster, "a"), ledger.wrong
        assert (given, wrong) == (f"{OTHER}/gpu-0", [])
        network.cancel_scope.cancel()
