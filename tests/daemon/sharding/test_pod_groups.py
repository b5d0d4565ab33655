"""Pod groups are scheduled by the holder of shard 0, all of a gang or none, whichever replica dies."""

import pytest
import trio
from attrs import evolve
from gangs import GANG_GATES, Gangs, condition_of
from lossy_network import Deadline, start_with_deadline
from sharded_replicas import SETTLED_SECONDS, ready_of, replicas_of, sharding_of, take_away
from trio.testing import MockClock

from trio_sched.config.feature_gates import resolve_feature_gates
from trio_sched.daemon.sharding.sharded_pod_groups import ShardedPodGroups
from trio_sched.engine.pod_groups.gang_recovery import INCOMPLETE_SECONDS
from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.objects.node import Node
from trio_sched.testing import device, device_class, node, pod, resource_claim, resource_slice
from trio_sched.testing.scheduler_process import SchedulerProcess

NAMES = [f"n{number}" for number in range(8)]
OF_LANE = [name for name in NAMES if shard_of(name, 2) == LANE]
OF_OTHER = [name for name in NAMES if shard_of(name, 2) != LANE]


def small(*names: str) -> list[Node]:
    """Nodes with room for one pod each."""
    return [node(name, cpu=1) for name in names]


def groups_of(process: SchedulerProcess) -> ShardedPodGroups:
    assert process.assembly is not None
    found = process.assembly.schedule_one.pod_groups
    assert isinstance(found, ShardedPodGroups)
    return found


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_the_holder_of_the_lane_binds_a_gang_on_its_own_nodes(version: str, autojump_clock: MockClock) -> None:
    nodes = small(*OF_LANE[:2])
    async with replicas_of(nodes, shards=2, replicas=2, emulated_version=version, gates=GANG_GATES) as replicas:
        gangs = Gangs(replicas.cluster)
        await gangs.create("gang", 2)
        await replicas.cluster.settle()
        placed = set(replicas.cluster.placements().values())
        assert placed == set(OF_LANE[:2])
        assert condition_of(replicas.cluster, "gang")["status"] == "True"


async def test_pods_of_gangs_whose_devices_take_of_their_nodes_stay_on_nodes_of_the_lane(
    autojump_clock: MockClock,
) -> None:
    nodes, gates = small(OF_LANE[0], *OF_OTHER[:2]), GANG_GATES | {"DRANodeAllocatableResources": True}
    async with replicas_of(nodes, shards=2, replicas=2, gates=gates) as replicas:
        cluster, gangs = replicas.cluster, Gangs(replicas.cluster)
        await cluster.create(device_class())
        for one in nodes:
            await cluster.create(resource_slice(one.name, device("gpu-0")))
        await gangs.create_group("gang", 2)
        for number in range(2):
            await cluster.create(resource_claim(f"claim-{number}"))
            await gangs.add_pod(gangs.by_name["gang"], claims=[f"claim-{number}"])
        await cluster.settle()
        bound = gangs.bound("gang")
        assert bound == 0
        condition = condition_of(cluster, "gang")
        assert condition["reason"] == "Unschedulable"
        told = [event.message for event in cluster.events(about="gang")]
        assert "belonged to shards of other replicas" in told[-1]


async def test_without_the_gate_groups_of_pods_are_ignored(autojump_clock: MockClock) -> None:
    async with replicas_of(small(*OF_LANE[:1], *OF_OTHER[:1]), shards=2, replicas=2) as replicas:
        cluster = replicas.cluster
        for number in range(2):
            await cluster.create(pod(f"p{number}", cpu=1, group="gang"))
        await cluster.settle()
        placed = set(cluster.placements().values())
        assert placed == {OF_LANE[0], OF_OTHER[0]}


@pytest.mark.parametrize("last", range(1, 2 * len(OF_LANE) + 1))
async def test_a_gang_is_completed_by_the_next_holder_of_the_lane_whichever_write_was_the_last(
    last: int, autojump_clock: MockClock
) -> None:
    deadline, nodes = Deadline(), small(*OF_LANE)
    size = len(OF_LANE)
    async with (
        trio.open_nursery() as network,
        replicas_of(nodes, shards=2, replicas=0, gates=GANG_GATES) as replicas,
    ):
        for _ in range(2):
            await start_with_deadline(replicas.cluster, network, deadline)
        await trio.sleep(SETTLED_SECONDS)
        gangs = Gangs(replicas.cluster)
        deadline.last = last
        await gangs.create("gang", size)
        await trio.sleep(2)
        dead = deadline.dead
        assert dead is not None
        await dead.kill()
        await trio.sleep(60)
        bound, partial = gangs.bound("gang"), gangs.by_name["gang"].longest_partial
        assert bound == size
        assert partial < 30
        left = [dict(sharding_of(process).owned.under_way) for process in replicas.running]
        assert left == [{}]
        network.cancel_scope.cancel()


async def test_a_gang_that_cannot_be_completed_is_evicted_by_the_holder_of_the_lane_only(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(small(*OF_LANE), shards=2, replicas=2, gates=GANG_GATES) as replicas:
        cluster, gangs = replicas.cluster, Gangs(replicas.cluster)
        await gangs.create("gang", 3)
        await cluster.settle()
        gone = next(one for one in cluster.pods() if one.node_name == OF_LANE[0])
        await cluster.delete(node(OF_LANE[0]))
        await cluster.delete(gone, grace_seconds=0)
        for name in OF_LANE[3:]:
            await cluster.delete(node(name))
        await cluster.create(pod("gang-again", cpu=1, group="gang"))
        await trio.sleep(INCOMPLETE_SECONDS - 5)
        bound = gangs.bound("gang")
        assert bound == 2
        await trio.sleep(10)
        bound = gangs.bound("gang")
        evicted = len(cluster.events("EvictedWithGang"))
        assert (bound, evicted) == (0, 2)


async def test_whoever_loses_the_lane_knows_of_no_incomplete_gangs_any_more(autojump_clock: MockClock) -> None:
    async with replicas_of(small(*OF_LANE[:2]), shards=2, replicas=1, gates=GANG_GATES) as replicas:
        cluster, gangs = replicas.cluster, Gangs(replicas.cluster)
        await gangs.create("gang", 2)
        await cluster.settle()
        gone = cluster.pod("gang-1")
        await cluster.delete(gone, grace_seconds=0)
        await cluster.create(pod("blocker", cpu=1))
        await cluster.create(pod("gang-again", cpu=1, group="gang", node_selector={"no": "node"}))
        await trio.sleep(5)
        process = replicas.owner(LANE)
        knows = groups_of(process).recovery.is_incomplete("default/gang")
        assert knows
        take_away(cluster, LANE)
        await trio.sleep(10)
        knows = groups_of(process).recovery.is_incomplete("default/gang")
        assert not knows


async def test_replicas_without_the_gate_wait_until_those_with_it_have_ended(autojump_clock: MockClock) -> None:
    """They would bind the pods of a gang one by one, also to nodes where places are kept for others of it."""
    async with replicas_of(small(*NAMES), shards=2, replicas=1, gates=GANG_GATES) as replicas:
        cluster, first = replicas.cluster, replicas.running[0]
        cluster._settings = evolve(cluster._settings, gates=resolve_feature_gates([]))
        other = await cluster.start_scheduler("other", wait=False)
        await trio.sleep(40)
        found = [ready_of(first), ready_of(other)]
        assert found == [[0, 1], []]
        await first.stop()
        await trio.sleep(40)
        found = [ready_of(other)]
        assert found == [[0, 1]]
