"""Pods with devices or volumes have others evicted on nodes of any process: the owner evicts, the lane gives, then."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from random import Random

import pytest
import trio
from device_ledger import DeviceLedger
from evictions import Evictions
from gangs import GANG_GATES, Gangs
from lossy_network import Deadline, start_behind_lossy_network, start_with_deadline
from sharded_replicas import SETTLED_SECONDS, Replicas, replicas_of, sharding_of
from trio.testing import MockClock

from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.engine.sharding.reserved_places import PLACE_RESERVED, PREEMPTING, ROOM_MADE, is_reserved
from trio_sched.plugin_api import NotLeading
from trio_sched.simulator import KubeletPace, VolumePace
from trio_sched.simulator.storage.object_store import Change
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

HOST = "kubernetes.io/hostname"
SLOW_STOP = KubeletPace(stop_seconds=10.0)
CLAIMED = ("device", "volume", "made volume", "both")


def of_shard(shard: int) -> str:
    """The name of a node of one of two shards."""
    return next(name for name in (f"n{number}" for number in range(99)) if shard_of(name, 2) == shard)


OWN, OTHER = of_shard(LANE), of_shard(1)
NODES = [node(name, cpu=4) for name in (OWN, OTHER)]


async def create_claims(cluster: VirtualCluster, claimed: str) -> dict[str, list[str]]:
    """Create what a pod can get on the node of another process than the lane only, and return what it claims."""
    found: dict[str, list[str]] = {}
    if claimed in ("device", "both"):
        await cluster.create(device_class())
        await cluster.create(resource_slice(OTHER, device("gpu-0")))
        await cluster.create(resource_claim("high"))
        found["claims"] = ["high"]
    if claimed == "volume":
        await cluster.create(storage_class(provisioner="kubernetes.io/no-provisioner"))
        await cluster.create(persistent_volume(on={HOST: OTHER}))
    elif claimed != "device":
        await cluster.create(storage_class(topologies={HOST: [OTHER]}))
    if claimed != "device":
        await cluster.create(persistent_volume_claim("high"))
        found["volumes"] = ["high"]
    await trio.sleep(1)  # nothing that comes later would make another attempt of the pod
    return found


async def create_low(cluster: VirtualCluster) -> None:
    """Fill both nodes with pods of low priority."""
    for name in (OWN, OTHER):
        await cluster.create(pod(f"low-{name}", cpu=4, node_selector={HOST: name}))
    await trio.sleep(2)


@asynccontextmanager
async def full_nodes() -> AsyncGenerator[tuple[Replicas, Evictions, DeviceLedger], None]:
    """Two replicas, each with a node that a pod of low priority fills."""
    async with replicas_of(NODES, shards=2, replicas=2, kubelets=SLOW_STOP) as replicas:
        cluster = replicas.cluster
        evictions, devices = Evictions(cluster), DeviceLedger(cluster)
        await create_low(cluster)
        yield replicas, evictions, devices
        wrong = evictions.wrong + devices.wrong
        assert wrong == []


def notes_of(cluster: VirtualCluster, name: str) -> list[str]:
    """What is noted about the place of a pod from now on, one after the other."""
    found: list[str] = []

    def see(change: Change) -> None:
        fields = change.current.fields
        conditions = fields.get("status", {}).get("conditions", ())
        reason = next((one["reason"] for one in conditions if one["type"] == PLACE_RESERVED), "")
        if fields["metadata"]["name"] == name and reason and found[-1:] != [reason]:
            found.append(reason)

    cluster.api.store.collection("pods").listen(see)
    return found


@pytest.mark.parametrize("claimed", CLAIMED)
async def test_the_owner_of_a_node_evicts_pods_for_one_that_the_lane_gives_something_to(
    claimed: str, autojump_clock: MockClock
) -> None:
    async with full_nodes() as (replicas, evictions, devices):
        cluster, notes = replicas.cluster, notes_of(replicas.cluster, "high")
        claims = await create_claims(cluster, claimed)
        await cluster.create(pod("high", cpu=2, priority=10, **claims))
        await trio.sleep(2)
        found, given = cluster.pod("high"), devices.devices()
        volume = cluster.api.store.get("persistentvolumeclaims", "default/high")
        is_bound = volume is not None and bool(volume.fields["spec"].get("volumeName"))
        assert (found.nominated_node_name, is_reserved(found), given, is_bound) == (OTHER, True, {}, False)
        await cluster.settle()
        cluster.assert_scheduled("high", on=OTHER)
        victims, nominated = evictions.victims, cluster.pod("high").nominated_node_name
        assert (victims, nominated) == ({f"low-{OTHER}": OTHER}, "")
        assert notes[:3] == ["MayPreempt", PREEMPTING, ROOM_MADE]
        for process in replicas.running:
            sharding = sharding_of(process)
            left = (list(sharding.owned.under_way), sharding.owned.evicting, sharding.places().elsewhere)
            assert left == ([], {}, {})


async def test_nobody_is_evicted_if_there_is_room_by_the_time_the_owner_looks(autojump_clock: MockClock) -> None:
    async with full_nodes() as (replicas, evictions, _devices):
        cluster, notes = replicas.cluster, notes_of(replicas.cluster, "high")
        claims = await create_claims(cluster, "device")
        await cluster.delete(cluster.pod(f"low-{OTHER}"), grace_seconds=0)
        asks = {"type": PLACE_RESERVED, "status": "False", "reason": "MayPreempt", "message": ""}
        high = pod("high", cpu=2, priority=10, gates=["wait"], **claims)
        await cluster.create(high)
        status = {"nominatedNodeName": OTHER, "conditions": [asks]}
        await cluster.patch(cluster.pod("high"), {"status": status}, subresource="status")
        await cluster.patch(cluster.pod("high"), {"spec": {"schedulingGates": None}})
        await cluster.settle()
        cluster.assert_scheduled("high", on=OTHER)
        victims = list(evictions.victims)
        assert victims == []
        is_noted = PREEMPTING in notes, ROOM_MADE in notes
        assert is_noted == (False, True)


async def test_a_pod_of_a_lower_priority_does_not_get_the_room_that_was_made(autojump_clock: MockClock) -> None:
    async with full_nodes() as (replicas, evictions, _devices):
        cluster = replicas.cluster
        claims = await create_claims(cluster, "made volume")
        await cluster.create(pod("high", cpu=4, priority=10, **claims))
        await trio.sleep(2)
        for number in range(4):  # of random UIDs, so that each replica decides on some
            await cluster.create(pod(f"rival-{number}", cpu=4, priority=5, node_selector={HOST: OTHER}))
        await cluster.settle()
        cluster.assert_scheduled("high", on=OTHER)
        victims = list(evictions.victims)
        assert victims == [f"low-{OTHER}"]


async def test_the_owner_is_asked_once_while_a_less_important_pod_has_its_volume_made(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=2, replicas=2, volumes=VolumePace(provision_seconds=20.0)) as replicas:
        cluster, notes = replicas.cluster, notes_of(replicas.cluster, "high")
        await create_claims(cluster, "both")
        await cluster.create(pod("middle", cpu=4, priority=5, volumes=["high"]))
        await trio.sleep(3)
        await cluster.create(pod("high", cpu=4, priority=10, claims=["high"]))
        await trio.sleep(60)
        cluster.assert_scheduled("high", on=OTHER)
        assert notes == ["MayPreempt", ROOM_MADE, "TakenBack"]


async def test_the_owner_is_not_asked_again_and_again_while_it_has_not_seen_another_pod_that_is_as_important(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0, kubelets=True) as replicas:
        cluster, notes = replicas.cluster, notes_of(replicas.cluster, "second")
        links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        lane = next(link for process, link in links if LANE in sharding_of(process).owned.ready)
        await cluster.create(device_class())
        await cluster.create(resource_slice(OTHER, device("gpu-0"), device("gpu-1")))
        await cluster.create(pod("low", cpu=1, node_selector={HOST: OTHER}))
        await trio.sleep(1)
        lane.held = b"/pods/first/status"
        for name in ("first", "second"):
            await cluster.create(resource_claim(name))
            await cluster.create(pod(name, cpu=2, priority=10, claims=[name]))
            await trio.sleep(1)
        await trio.sleep(2)
        asked = notes.count("MayPreempt")
        assert asked == 1
        lane.held = b""
        lane.let_go.set()
        await trio.sleep(30)
        cluster.assert_scheduled("first", on=OTHER)
        cluster.assert_scheduled("second", on=OTHER)
        network.cancel_scope.cancel()


async def test_the_owner_of_a_node_takes_no_device_away_from_a_pod(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as network, replicas_of(NODES, shards=2, replicas=0) as replicas:
        cluster, devices = replicas.cluster, DeviceLedger(replicas.cluster)
        links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        await cluster.create(device_class())
        for name in (OWN, OTHER):
            await cluster.create(resource_slice(name, device("gpu-0")))
        claim = await cluster.create(resource_claim("high"))
        results = [{"request": "gpu", "driver": "gpu.example.com", "pool": OWN, "device": "gpu-0"}]
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [OWN]}]}]
        given = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}}
        await cluster.patch(claim, {"status": {"allocation": given}}, subresource="status")
        await create_low(cluster)
        for process, link in links:
            link.is_behind = LANE in sharding_of(process).owned.ready  # it decides on nothing that comes
        await cluster.create(pod("high", cpu=2, priority=10, claims=["high"]))
        asks = {"type": PLACE_RESERVED, "status": "False", "reason": "MayPreempt", "message": ""}
        status = {"nominatedNodeName": OTHER, "conditions": [asks]}
        await cluster.patch(cluster.pod("high"), {"status": status}, subresource="status")
        await trio.sleep(3)
        nominated, found = cluster.pod("high").nominated_node_name, devices.devices()
        assert (nominated, found) == ("", {"high": (OWN, "gpu-0")})
        for _process, link in links:
            link.caught_up.set()
        network.cancel_scope.cancel()


async def test_no_plugin_writes_claims_but_in_the_process_that_has_the_lane(autojump_clock: MockClock) -> None:
    async with replicas_of(NODES, shards=2, replicas=2) as replicas:
        claim = await replicas.cluster.create(resource_claim("a"))
        for shard in (LANE, 1):
            plugins = sharding_of(replicas.owner(shard)).scheduler.profiles["default-scheduler"].plugins
            patch = partial(plugins["ShardNodes"].handle.patch, "ResourceClaim", "a", {}, namespace=claim.namespace)
            if shard == LANE:
                await patch()
            else:
                with pytest.raises(NotLeading, match="claim default/a is written by the holder of shard 0"):
                    await patch()


LAST = [("device", last) for last in range(1, 10)] + [("volume", last) for last in range(1, 9)]


@pytest.mark.parametrize(("claimed", "last"), LAST)
async def test_a_replica_that_dies_after_any_of_its_writes_leaves_nothing_half_done(
    claimed: str, last: int, autojump_clock: MockClock
) -> None:
    deadline = Deadline()
    async with (
        trio.open_nursery() as network,
        replicas_of(NODES, shards=2, replicas=0, kubelets=KubeletPace(stop_seconds=3.0)) as replicas,
    ):
        cluster = replicas.cluster
        evictions, devices = Evictions(cluster), DeviceLedger(cluster)
        for _ in range(2):
            await start_with_deadline(cluster, network, deadline)
        await trio.sleep(SETTLED_SECONDS)
        await create_low(cluster)
        claims = await create_claims(cluster, claimed)
        deadline.last = last
        await cluster.create(pod("high", cpu=2, priority=10, **claims))
        await trio.sleep(15)
        dead = deadline.dead
        if dead is None:
            raise AssertionError("there were fewer writes")
        await dead.kill()
        await trio.sleep(60)
        cluster.assert_scheduled("high", on=OTHER)
        victims, wrong = evictions.victims, evictions.wrong + devices.wrong
        assert (victims, wrong) == ({f"low-{OTHER}": OTHER}, [])
        network.cancel_scope.cancel()


async def test_the_owner_is_not_asked_again_and_again_while_a_gang_that_waits_holds_the_place(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=2, replicas=2, kubelets=True, gates=GANG_GATES) as replicas:
        cluster, notes = replicas.cluster, notes_of(replicas.cluster, "claims")
        await cluster.create(device_class())
        await cluster.create(resource_slice(OTHER, device("gpu-0")))
        await cluster.create(pod("low", cpu=1, node_selector={HOST: OTHER}))
        await cluster.create(pod("blocker", cpu=4, priority=10, node_selector={HOST: OWN}))
        await trio.sleep(1)
        await Gangs(cluster).create("gang", 2, cpu=3, priority=10, of_group={"priority": 10})
        await trio.sleep(90)
        await cluster.create(resource_claim("claims"))
        await cluster.create(pod("claims", cpu=1, priority=10, claims=["claims"]))
        await trio.sleep(3)
        asked = notes.count("MayPreempt")
        assert asked == 1
        for one in [one for one in cluster.pods() if one.group_key]:
            await cluster.delete(one, grace_seconds=0)
        await trio.sleep(10)
        cluster.assert_scheduled("claims", on=OTHER)
