"""Pods with volumes and devices go to nodes of any process: the lane gives these to them, the owner binds the pods."""

from random import Random

import pytest
import trio
from device_ledger import DeviceLedger
from evictions import Evictions
from lossy_network import Deadline, LossyNetwork, start_behind_lossy_network, start_with_deadline
from sharded_replicas import SETTLED_SECONDS, replicas_of, sharding_of
from trio.testing import MockClock

from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.simulator import VolumePace
from trio_sched.testing import (
    device,
    device_class,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    resource_claim,
    resource_slice,
    storage_class,
)
from trio_sched.testing.cluster import VirtualCluster
from trio_sched.testing.scheduler_process import SchedulerProcess

HOST = "kubernetes.io/hostname"


def of_shard(shard: int) -> str:
    """The name of a node of one of two shards."""
    return next(name for name in (f"n{number}" for number in range(99)) if shard_of(name, 2) == shard)


OWN, OTHER = of_shard(LANE), of_shard(1)
NODES = [node(name, cpu=4) for name in (OWN, OTHER)]


async def create_with_claim(cluster: VirtualCluster, name: str, *, cpu: int = 1) -> None:
    await cluster.create(resource_claim(name))
    await cluster.create(pod(name, cpu=cpu, claims=[name]))


async def start_two(
    cluster: VirtualCluster, network: trio.Nursery, shard: int
) -> tuple[SchedulerProcess, LossyNetwork]:
    """Start two replicas; returns the one that has *shard*."""
    links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
    await trio.sleep(SETTLED_SECONDS)
    return next((process, link) for process, link in links if shard in sharding_of(process).owned.ready)


async def create_devices(cluster: VirtualCluster, *, count: int = 1) -> None:
    """Devices on the node of another process than the lane."""
    await cluster.create(device_class())
    await cluster.create(resource_slice(OTHER, *[device(f"gpu-{number}") for number in range(count)]))


async def test_the_lane_allocates_devices_on_nodes_of_others(autojump_clock: MockClock) -> None:
    async with replicas_of(NODES, shards=2, replicas=2) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        await create_devices(cluster, count=2)
        for name in ("a", "b", "c"):
            await create_with_claim(cluster, name)
        await cluster.settle()
        placed = sorted(at for at in cluster.placements().values() if at)
        devices, wrong = sorted(ledger.devices().values()), ledger.wrong
        assert (placed, devices, wrong) == ([OTHER, OTHER], [(OTHER, "gpu-0"), (OTHER, "gpu-1")], [])
        elsewhere = replicas.bound_elsewhere()
        assert elsewhere == 2


@pytest.mark.parametrize("is_provisioned", [False, True])
async def test_the_lane_has_volumes_bound_for_nodes_of_others(is_provisioned: bool, autojump_clock: MockClock) -> None:
    async with replicas_of(NODES, shards=2, replicas=2) as replicas:
        cluster = replicas.cluster
        if is_provisioned:
            await cluster.create(storage_class(topologies={HOST: [OTHER]}))
        else:
            await cluster.create(storage_class(provisioner="kubernetes.io/no-provisioner"))
            await cluster.create(persistent_volume(on={HOST: OTHER}))
        await cluster.create(persistent_volume_claim("a"))
        await cluster.create(pod("a", cpu=1, volumes=["a"]))
        await cluster.settle()
        cluster.assert_scheduled("a", on=OTHER)
        elsewhere = replicas.bound_elsewhere()
        assert elsewhere == 1


@pytest.mark.parametrize("has_device", [False, True])
async def test_the_owner_of_a_node_keeps_the_room_while_a_volume_is_made(
    has_device: bool, autojump_clock: MockClock
) -> None:
    async with replicas_of(NODES, shards=2, replicas=2, volumes=VolumePace(provision_seconds=20.0)) as replicas:
        cluster = replicas.cluster
        await cluster.create(storage_class(topologies={HOST: [OTHER]}))
        await cluster.create(persistent_volume_claim("a"))
        if has_device:
            await create_devices(cluster)
            await cluster.create(resource_claim("a"))
        await cluster.create(pod("a", cpu=4, volumes=["a"], claims=["a"] if has_device else []))
        await trio.sleep(2)
        for number in range(4):  # of random UIDs, so that each replica decides on some
            await cluster.create(pod(f"rival-{number}", cpu=4, node_selector={HOST: OTHER}))
        await cluster.settle()
        cluster.assert_scheduled("a", on=OTHER)
        nominated = {one.nominated_node_name for one in cluster.pods()}
        assert nominated == {""}


async def test_devices_are_taken_back_from_a_pod_that_the_owner_of_the_node_has_no_room_for(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        lane, link = await start_two(cluster, network, LANE)
        await create_devices(cluster)
        link.held = b"/pods/a/status"
        await create_with_claim(cluster, "a", cpu=4)
        await trio.sleep(2)
        allocated = list(ledger.devices())
        assert allocated == ["a"]
        blocker = await cluster.create(pod("blocker", cpu=1, node_name=OTHER))
        link.held = b""
        link.let_go.set()
        await trio.sleep(3)
        refused, allocated = sharding_of(lane).proposals.results["refused"], list(ledger.devices())
        assert (refused, allocated) == (1, [])
        await cluster.delete(blocker, grace_seconds=0)
        await trio.sleep(20)
        cluster.assert_scheduled("a", on=OTHER)
        wrong = ledger.wrong
        assert wrong == []
        network.cancel_scope.cancel()


async def test_a_device_is_given_to_nobody_while_a_write_for_a_pod_that_was_evicted_can_still_arrive(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        _process, link = await start_behind_lossy_network(cluster, network, "r", Random(0), 0.0)
        await trio.sleep(SETTLED_SECONDS)
        await create_devices(cluster)
        link.held = b"/resourceclaims/a"
        await create_with_claim(cluster, "a")
        await trio.sleep(1)
        await cluster.create(pod("high", cpu="3500m", priority=10, node_selector={HOST: OTHER}))
        await trio.sleep(2)
        await cluster.create(resource_claim("b"))
        await cluster.create(pod("b", cpu="100m", claims=["b"]))
        await trio.sleep(3)
        given = ledger.devices()
        assert given == {}
        link.held = b""
        link.let_go.set()
        await trio.sleep(SETTLED_SECONDS)
        cluster.assert_scheduled("high", on=OTHER)
        cluster.assert_scheduled("b", on=OTHER)
        wrong = ledger.wrong
        assert wrong == []
        network.cancel_scope.cancel()


async def test_the_owner_of_a_node_waits_until_it_has_seen_what_the_lane_has_written_about_claims(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        owner, link = await start_two(cluster, network, 1)
        await create_devices(cluster)
        await cluster.create(resource_claim("a"))
        await trio.sleep(1)
        link.is_behind, link.behind = True, b"resourceclaims"
        await cluster.create(pod("a", cpu=1, claims=["a"]))
        await trio.sleep(3)
        nominated = cluster.pod("a").nominated_node_name
        assert nominated == OTHER
        link.is_behind = False
        link.caught_up.set()
        await trio.sleep(1)
        cluster.assert_scheduled("a", on=OTHER)
        refused, wrong = sharding_of(owner).proposals.answers["refused"], ledger.wrong
        assert (refused, wrong) == (0, [])
        network.cancel_scope.cancel()


async def test_an_allocation_of_a_dead_lane_that_arrives_late_fails_once_another_has_the_lane(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        lane, link = await start_two(cluster, network, LANE)
        await create_devices(cluster)
        link.held = b"/resourceclaims/a/status"
        await create_with_claim(cluster, "a")
        await trio.sleep(2)
        await lane.kill()
        await cluster.delete(cluster.pod("a"), grace_seconds=0)
        await create_with_claim(cluster, "b")
        await trio.sleep(30)
        cluster.assert_scheduled("b", on=OTHER)
        link.let_go.set()
        await trio.sleep(1)
        allocated, wrong = list(ledger.devices()), ledger.wrong
        assert (allocated, wrong) == (["b"], [])
        network.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("last", "has_device"), [(1, True), (2, True), (3, True), (4, True), (1, False), (2, False), (3, False)]
)
async def test_a_replica_that_dies_after_any_of_its_writes_leaves_nothing_half_done(
    last: int, has_device: bool, autojump_clock: MockClock
) -> None:
    deadline = Deadline()
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        for _ in range(2):
            await start_with_deadline(cluster, network, deadline)
        await trio.sleep(SETTLED_SECONDS)
        await create_devices(cluster)
        await cluster.create(storage_class(topologies={HOST: [OTHER]}))
        if not has_device:
            await cluster.create(persistent_volume_claim("a"))
        deadline.last = last
        if has_device:
            await create_with_claim(cluster, "a")
        else:
            await cluster.create(pod("a", cpu=1, volumes=["a"]))
        await trio.sleep(15)
        dead = deadline.dead
        if dead is None:
            raise AssertionError("there were fewer writes")
        await dead.kill()
        await trio.sleep(45)
        cluster.assert_scheduled("a", on=OTHER)
        wrong = ledger.wrong
        assert wrong == []
        network.cancel_scope.cancel()


async def test_a_pod_whose_volume_is_on_a_full_node_of_another_has_pods_evicted_there(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=2, replicas=2, kubelets=True) as replicas:
        cluster, evictions = replicas.cluster, Evictions(replicas.cluster)
        await cluster.create(persistent_volume(on={HOST: OTHER}, claim="a"))
        await cluster.create(persistent_volume_claim("a", volume="volume"))
        await cluster.create(pod("low", cpu=4, node_selector={HOST: OTHER}))
        await cluster.settle()
        await cluster.create(pod("a", cpu=1, volumes=["a"], priority=10))
        await cluster.settle()
        cluster.assert_scheduled("a", on=OTHER)
        victims, wrong = list(evictions.victims), evictions.wrong
        assert (victims, wrong) == (["low"], [])


async def test_a_claim_gets_another_version_if_nothing_tells_what_became_of_its_allocation(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        _lane, link = await start_two(cluster, network, LANE)
        await create_devices(cluster)
        link.held = b"/resourceclaims/a/status"
        await create_with_claim(cluster, "a")
        await trio.sleep(5)
        link.held = b""  # the first request stays where it is
        await trio.sleep(15)
        cluster.assert_scheduled("a", on=OTHER)
        stored = cluster.api.store.get("resourceclaims.resource.k8s.io", "default/a")
        assert stored is not None
        version, notes = stored.version, stored.fields["metadata"].get("annotations") or {}
        assert "trio-sched.dev/fenced" in notes
        link.let_go.set()
        await trio.sleep(1)
        stored = cluster.api.store.get("resourceclaims.resource.k8s.io", "default/a")
        assert stored is not None
        later, wrong = stored.version, ledger.wrong
        assert (later, wrong) == (version, [])
        network.cancel_scope.cancel()


async def test_whoever_must_not_list_claims_gets_the_lane_all_the_same(autojump_clock: MockClock) -> None:
    async with replicas_of(NODES, shards=2, replicas=2) as replicas:
        cluster = replicas.cluster
        cluster.api.faults.fail_next(1000, verb="list", resource="resourceclaims", code=403, reason="Forbidden")
        await replicas.owner(LANE).stop()
        await trio.sleep(SETTLED_SECONDS)
        ready = replicas.ready()
        assert ready == [[0, 1]]


async def test_whoever_gets_the_lane_waits_until_it_has_seen_what_was_allocated(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, ledger = replicas.cluster, DeviceLedger(replicas.cluster)
        heir, link = await start_two(cluster, network, 1)
        former = next(process for process in cluster.schedulers if process is not heir)
        await create_devices(cluster)
        await cluster.create(resource_claim("b"))
        await trio.sleep(1)
        link.is_behind, link.behind = True, b"resourceclaims"
        await cluster.create(resource_slice(OWN, device("gpu-0")))
        await cluster.create(resource_claim("a"))
        await cluster.create(pod("a", cpu=1, claims=["a"]))  # a node of the lane has a device, too
        await trio.sleep(2)
        cluster.assert_scheduled("a", on=OWN)
        await former.stop()
        await trio.sleep(10)
        ready = sorted(sharding_of(heir).owned.ready)
        assert ready == [1]
        link.is_behind = False
        link.caught_up.set()
        await cluster.create(pod("b", cpu=1, claims=["b"]))
        await trio.sleep(SETTLED_SECONDS)
        ready, wrong = sorted(sharding_of(heir).owned.ready), ledger.wrong
        assert (ready, wrong) == ([0, 1], [])
        cluster.assert_scheduled("b", on=OTHER)
        network.cancel_scope.cancel()
