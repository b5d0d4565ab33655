"""Pods of lower priority make room on nodes of any process: for a reserved place, and by the owner of the node."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import pytest
import trio
from evictions import Evictions
from lossy_network import Deadline, start_behind_lossy_network, start_with_deadline
from sharded_replicas import SETTLED_SECONDS, Replicas, replicas_of, sharding_of
from trio.testing import MockClock

from trio_sched.engine.sharding.ownership import shard_of
from trio_sched.engine.sharding.reserved_places import MAY_PREEMPT, PLACE_RESERVED, TAKEN_BACK, is_reserved
from trio_sched.objects.pod import Pod
from trio_sched.simulator import KubeletPace
from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing import node, pod, pod_anti_affinity, pod_term
from trio_sched.testing.cluster import VirtualCluster

HOST = "kubernetes.io/hostname"


def of_shard(shard: int, shards: int = 2) -> str:
    """The name of a node of *shard*."""
    return next(name for name in (f"n{number}" for number in range(99)) if shard_of(name, shards) == shard)


SLOW_STOP = KubeletPace(stop_seconds=10.0)
NAMES = [of_shard(0), of_shard(1)]


@asynccontextmanager
async def full_nodes(**details: object) -> AsyncGenerator[tuple[Replicas, Evictions], None]:
    """Two replicas, each with a node that a pod of low priority fills."""
    nodes = [node(name, cpu=4) for name in NAMES]
    async with replicas_of(nodes, shards=2, replicas=2, kubelets=SLOW_STOP, **details) as replicas:
        evictions = Evictions(replicas.cluster)
        for name in NAMES:
            await replicas.cluster.create(pod(f"low-{name}", cpu=4, node_selector={HOST: name}))
        await replicas.cluster.settle()
        yield replicas, evictions
        wrong = evictions.wrong
        assert wrong == []


async def create_decided_by(cluster: VirtualCluster, shard: int, shards: int = 2, **details: object) -> Pod:
    """Create a pod that *shard* decides on; the UIDs of pods, and so their shards, are random."""
    for number in range(50):
        await cluster.create(pod(f"high-{number}", gates=["wait"], **details))  # type: ignore[arg-type]
        found = cluster.pod(f"high-{number}")
        if shard_of(found.uid, shards) == shard:
            await cluster.patch(found, {"spec": {"schedulingGates": None}})
            return found
        await cluster.delete(found)
    raise AssertionError("no UID of the shard")


@pytest.mark.parametrize("decider", [0, 1])
@pytest.mark.parametrize("owner", [0, 1])
async def test_the_owner_of_a_node_evicts_pods_for_one_that_it_or_another_decides_on(
    decider: int, owner: int, autojump_clock: MockClock
) -> None:
    async with full_nodes() as (replicas, evictions):
        cluster, there = replicas.cluster, NAMES[owner]
        high = await create_decided_by(cluster, decider, cpu=2, priority=10, node_selector={HOST: there})
        await trio.sleep(2)
        found = cluster.pod(high.name)
        assert (found.node_name, found.nominated_node_name, is_reserved(found)) == ("", there, True)
        await cluster.settle()
        cluster.assert_scheduled(high.name, on=there)
        nominated, victims = cluster.pod(high.name).nominated_node_name, evictions.victims
        assert (nominated, victims) == ("", {f"low-{there}": there})
        told = len(cluster.events("Preempted"))
        assert told == 1
        results = [dict(sharding_of(process).proposals.results) for process in replicas.running]
        assert sum(one.get("reserved", 0) for one in results) == (decider != owner)
        for process in replicas.running:
            sharding = sharding_of(process)
            left = (list(sharding.owned.under_way), sharding.owned.evicting, sharding.places().elsewhere)
            assert left == ([], {}, {})


async def test_own_nodes_come_first(autojump_clock: MockClock) -> None:
    async with full_nodes() as (replicas, evictions):
        high = await create_decided_by(replicas.cluster, 1, cpu=2, priority=10)
        await replicas.cluster.settle()
        replicas.cluster.assert_scheduled(high.name, on=NAMES[1])
        victims = list(evictions.victims)
        assert victims == [f"low-{NAMES[1]}"]


async def test_of_many_nodes_that_are_as_good_the_one_where_the_place_is_kept_is_chosen_again(
    autojump_clock: MockClock,
) -> None:
    nodes = [node(f"n{number}", cpu=4) for number in range(24)]
    async with replicas_of(nodes, shards=2, replicas=1, kubelets=SLOW_STOP) as replicas:
        cluster = replicas.cluster
        for one in nodes:
            await cluster.create(pod(f"low-{one.name}", cpu=4))
        await cluster.settle()
        places: list[str] = []

        def see(change: Change) -> None:
            place = change.current.fields.get("status", {}).get("nominatedNodeName", "")
            if change.current.fields["metadata"]["name"].startswith("high-") and place:
                places.append(place)

        cluster.api.store.collection("pods").listen(see)
        for number in range(3):
            await cluster.create(pod(f"high-{number}", cpu=4, priority=10))
        await cluster.settle()
        bound_to = {cluster.pod(f"high-{number}").node_name for number in range(3)}
        assert set(places) == bound_to
        evicted = len(cluster.events("Preempted"))
        assert evicted == 3


async def test_the_owner_takes_back_a_nomination_that_victims_do_not_help_and_says_why(
    autojump_clock: MockClock,
) -> None:
    async with full_nodes() as (replicas, evictions):
        cluster = replicas.cluster
        one = await create_decided_by(cluster, 0, cpu=2)  # no more important than those that are there
        await trio.sleep(1)
        note = {"type": PLACE_RESERVED, "status": "False", "reason": MAY_PREEMPT, "message": ""}
        status = {"nominatedNodeName": NAMES[1], "conditions": [note]}
        await cluster.patch(one, {"status": status}, subresource="status")
        await trio.sleep(1)
        found = cluster.pod(one.name)
        assert found.nominated_node_name == ""
        (condition,) = [each for each in found.status.conditions or () if each.type == "PodScheduled"]
        assert "preemption: 0/2 nodes are available" in condition.message
        victims = list(evictions.victims)
        assert victims == []


@pytest.mark.parametrize("last", range(1, 7))
async def test_a_replica_that_dies_after_any_of_its_writes_leaves_nothing_half_done(
    last: int, autojump_clock: MockClock
) -> None:
    nodes, deadline = [node(name, cpu=4) for name in NAMES], Deadline()
    async with trio.open_nursery() as network, replicas_of(nodes, shards=2, replicas=0, kubelets=SLOW_STOP) as replicas:
        cluster, evictions, there = replicas.cluster, Evictions(replicas.cluster), NAMES[1]
        for _ in range(2):
            await start_with_deadline(cluster, network, deadline)
        await trio.sleep(SETTLED_SECONDS)
        for name in NAMES:
            await cluster.create(pod(f"low-{name}", cpu=4, node_selector={HOST: name}))
        await trio.sleep(2)
        deadline.last = last
        high = await create_decided_by(cluster, 0, cpu=2, priority=10, node_selector={HOST: there})
        await trio.sleep(15)
        dead = deadline.dead
        if dead is None:
            raise AssertionError("there were fewer writes")
        await dead.kill()
        await trio.sleep(45)
        cluster.assert_scheduled(high.name, on=there)
        victims, wrong = evictions.victims, evictions.wrong
        assert (victims, wrong) == ({f"low-{there}": there}, [])
        network.cancel_scope.cancel()


async def test_an_eviction_of_a_dead_replica_that_arrives_late_fails_once_another_has_the_shard(
    autojump_clock: MockClock,
) -> None:
    there = NAMES[1]
    async with (
        trio.open_nursery() as network,
        replicas_of([node(name, cpu=4) for name in NAMES], shards=2, replicas=0) as replicas,
    ):
        cluster = replicas.cluster
        links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        for name, priority in (("low", 0), ("important", 20)):
            await cluster.create(pod(name, cpu=2, priority=priority, node_selector={HOST: there}))
        await trio.sleep(2)
        dead, link = next((process, link) for process, link in links if 1 in sharding_of(process).owned.ready)

        def hold_deletion(change: Change) -> None:
            conditions = change.current.fields["status"].get("conditions", ())
            if any(one["type"] == "DisruptionTarget" for one in conditions):
                link.held = b"/pods/"

        cluster.api.store.collection("pods").listen(hold_deletion)
        high = await create_decided_by(cluster, 0, cpu=2, priority=10, node_selector={HOST: there})
        await trio.sleep(2)
        is_held, is_kept = bool(link.held), is_reserved(cluster.pod(high.name))
        assert (is_held, is_kept) == (True, True)
        await dead.kill()
        await cluster.delete(cluster.pod("important"), grace_seconds=0)
        await trio.sleep(30)
        cluster.assert_scheduled(high.name, on=there)
        link.let_go.set()
        await trio.sleep(1)
        deleted_at = cluster.pod("low").metadata.deletion_timestamp
        assert deleted_at is None
        network.cancel_scope.cancel()


ONE_ZONE = [node(name, cpu=4, labels={"zone": "z"}) for name in NAMES]
REPELS = pod_anti_affinity(pod_term("app=b", "zone"))


async def create_that_repels(cluster: VirtualCluster) -> None:
    """A pod that has to wait on the node of shard 1 for another to leave, and repels those called b from its zone."""
    await cluster.create(pod("low", cpu=4, node_selector={HOST: NAMES[1]}))
    await trio.sleep(2)
    await cluster.create(pod("a", cpu=4, priority=10, node_selector={HOST: NAMES[1]}, affinity=REPELS))
    await trio.sleep(3)


@pytest.mark.parametrize("lane_dies", [False, True])
async def test_the_lane_counts_a_pod_whose_place_another_process_keeps(
    lane_dies: bool, autojump_clock: MockClock
) -> None:
    async with replicas_of(ONE_ZONE, shards=2, replicas=3, kubelets=KubeletPace(stop_seconds=30.0)) as replicas:
        cluster, lane = replicas.cluster, replicas.owner(0)
        has_both = replicas.owner(1) is lane
        assert not has_both
        await create_that_repels(cluster)
        is_kept = is_reserved(cluster.pod("a"))
        assert is_kept
        if lane_dies:
            await lane.kill()
            await trio.sleep(20)
        await cluster.create(pod("b", cpu=1, priority=20, labels={"app": "b"}, node_selector={HOST: NAMES[0]}))
        await trio.sleep(5)
        is_kept = is_reserved(cluster.pod("a"))
        assert is_kept
        cluster.assert_pending("b", reason="anti-affinity")
        await trio.sleep(40)
        cluster.assert_scheduled("a", on=NAMES[1])
        cluster.assert_pending("b")


async def test_whoever_gets_a_shard_takes_back_the_places_of_the_lane_there(autojump_clock: MockClock) -> None:
    async with replicas_of(ONE_ZONE, shards=2, replicas=2, kubelets=KubeletPace(stop_seconds=30.0)) as replicas:
        cluster, evictions = replicas.cluster, Evictions(replicas.cluster)
        await create_that_repels(cluster)
        reasons: list[str] = []

        def see(change: Change) -> None:
            conditions = change.current.fields["status"].get("conditions", ())
            reasons.extend(one["reason"] for one in conditions if one["type"] == PLACE_RESERVED)

        cluster.api.store.collection("pods").listen(see)
        await replicas.owner(1).stop()
        await trio.sleep(40)
        assert TAKEN_BACK in reasons
        cluster.assert_scheduled("a", on=NAMES[1])
        victims = list(evictions.victims)
        assert victims == ["low"]


async def test_nothing_is_evicted_while_others_with_room_may_still_answer_and_no_longer(
    autojump_clock: MockClock,
) -> None:
    async with (
        trio.open_nursery() as network,
        replicas_of([node(name, cpu=4) for name in NAMES], shards=2, replicas=0, kubelets=True) as replicas,
    ):
        cluster, evictions = replicas.cluster, Evictions(replicas.cluster)
        links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        await cluster.create(pod("low", cpu=4, node_selector={HOST: NAMES[0]}))
        await trio.sleep(2)
        for process, link in links:
            link.is_behind = 1 in sharding_of(process).owned.ready  # it renews its leases, and sees nothing
        high = await create_decided_by(cluster, 0, cpu=2, priority=10)
        await trio.sleep(25)
        victims = list(evictions.victims)
        assert victims == []
        await trio.sleep(30)
        cluster.assert_scheduled(high.name, on=NAMES[0])
        victims = list(evictions.victims)
        assert victims == ["low"]
        for _process, link in links:
            link.caught_up.set()
        network.cancel_scope.cancel()
