"""Gangs on nodes of several replicas: they get all their places or none, whoever dies, declines or is late."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import trio
from gangs import GANG_GATES, GATES_OF, Gang, Gangs, condition_of
from lossy_network import Deadline, LossyNetwork, start_behind_lossy_network, start_with_deadline
from sharded_replicas import SETTLED_SECONDS, Replicas, replicas_of, sharding_of
from slow_binds import SlowBinds
from trio.testing import MockClock
from workloads_of_1_35 import member_of_workload, workload

from trio_sched.daemon.sharding.proposals import ANSWER_SECONDS, AVOID_SECONDS
from trio_sched.engine.pod_groups.gang_recovery import INCOMPLETE_SECONDS
from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.engine.sharding.reserved_places import is_kept_for_group
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing import composite_pod_group, node, node_affinity, pod, pod_group, term
from trio_sched.testing.cluster import VirtualCluster
from trio_sched.testing.scheduler_process import SchedulerProcess

NAMES = [f"n{number}" for number in range(8)]
OF_LANE = [name for name in NAMES if shard_of(name, 2) == LANE]
OF_OTHER = [name for name in NAMES if shard_of(name, 2) != LANE]
LEASE_SECONDS = 15.0


def small(*names: str) -> list[Node]:
    """Nodes with room for one pod each."""
    return [node(name, cpu=1) for name in names]


def pods_of(cluster: VirtualCluster, gang: str) -> list[Pod]:
    return [one for one in cluster.pods() if one.group_key == f"default/{gang}"]


def nominated(cluster: VirtualCluster, gang: str) -> list[str]:
    """The nodes that its pods are nominated to."""
    return sorted(one.nominated_node_name for one in pods_of(cluster, gang) if one.nominated_node_name)


def left(process: SchedulerProcess) -> list[object]:
    """What a process has under way."""
    sharding = sharding_of(process)
    return [*sharding.owned.under_way, *sharding.places().elsewhere, *["group"] * sharding.groups.unfinished]


@asynccontextmanager
async def linked(
    nodes: list[Node], *, replicas: int = 2, **details: Any
) -> AsyncGenerator[tuple[Replicas, Gangs, LossyNetwork, LossyNetwork], None]:
    """Replicas: the network of the one that has the lane, and that of the one that has the other shard."""
    async with (
        trio.open_nursery() as network,
        replicas_of(nodes, shards=2, replicas=0, gates=GANG_GATES, **details) as found,
    ):
        links: dict[str, LossyNetwork] = {}
        for number in range(replicas):
            name = f"r{number}"
            _process, links[name] = await start_behind_lossy_network(found.cluster, network, name, Random(0), 0.0)
        await trio.sleep(SETTLED_SECONDS)
        yield found, Gangs(found.cluster), links[found.owner(0).identity], links[found.owner(1).identity]
        network.cancel_scope.cancel()


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_a_gang_gets_places_on_nodes_of_several_replicas(version: str, autojump_clock: MockClock) -> None:
    async with replicas_of(small(*NAMES), shards=4, replicas=3, gates=GANG_GATES, emulated_version=version) as replicas:
        gangs = Gangs(replicas.cluster)
        await gangs.create("gang", len(NAMES))
        await replicas.cluster.settle()
        placed = sorted(at or "" for at in replicas.cluster.placements().values())
        assert placed == NAMES
        assert gangs.by_name["gang"].longest_partial < 1
        assert condition_of(replicas.cluster, "gang")["status"] == "True"
        scheduled = [event.message for event in replicas.cluster.events("Scheduled")]
        assert len(scheduled) == len(NAMES)
        under_way = [left(process) for process in replicas.running]
        assert under_way == [[]] * 3


async def test_pods_of_a_group_that_is_no_gang_go_to_nodes_of_several_replicas_one_by_one(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(small(*NAMES), shards=2, replicas=2, gates=GANG_GATES) as replicas:
        cluster = replicas.cluster
        await cluster.create(pod_group("group"))
        for number in range(len(NAMES) + 1):
            await cluster.create(pod(f"p{number}", cpu=1, group="group"))
        await cluster.settle()
        placed = sorted(at or "" for at in cluster.placements().values())
        assert placed == ["", *NAMES]


async def test_a_gang_that_does_not_fit_takes_no_place(autojump_clock: MockClock) -> None:
    async with replicas_of(small(*NAMES), shards=2, replicas=2, gates=GANG_GATES) as replicas:
        cluster, gangs = replicas.cluster, Gangs(replicas.cluster)
        await gangs.create("gang", len(NAMES) + 1)
        await cluster.settle()
        bound, asked = gangs.bound("gang"), nominated(cluster, "gang")
        assert (bound, asked) == (0, [])
        await cluster.create(node("more", cpu=1))
        await cluster.settle()
        bound = gangs.bound("gang")
        assert bound == len(NAMES) + 1


def pinned(name: str, at: str, **details: object) -> Pod:
    """A pod for which the owner of a node decides."""
    affinity = node_affinity(term(fields=[f"metadata.name In {at}"]))
    return pod(name, cpu=1, affinity=affinity, **details)  # type: ignore[arg-type]


async def create_unseen(replicas: Replicas, gangs: Gangs, lane: LossyNetwork, *blockers: Pod) -> None:
    """Have the lane decide on a gang of three before it sees *blockers*, which are bound."""
    cluster = replicas.cluster
    for number in range(3):
        await cluster.create(pod(f"gang-{number}", cpu=1, group="gang"))
    await trio.sleep(1)
    lane.is_behind, lane.behind = True, b"/pods"
    for blocker in blockers:
        await cluster.create(blocker)
    await trio.sleep(1)
    gangs.by_name["gang"] = Gang("gang", 3, trio.current_time())
    await cluster.create(pod_group("gang", min_count=3))
    await trio.sleep(1)


async def test_all_places_are_taken_back_if_an_owner_declines_one(autojump_clock: MockClock) -> None:
    there = OF_OTHER[:2]
    async with linked(small(OF_LANE[0], *there)) as (replicas, gangs, lane, _other):
        cluster = replicas.cluster
        await create_unseen(replicas, gangs, lane, pinned("blocker", there[0]))
        cluster.assert_scheduled("blocker", on=there[0])
        kept = [one.nominated_node_name for one in pods_of(cluster, "gang") if is_kept_for_group(one)]
        assert kept == there[1:]
        lane.is_behind = False
        lane.caught_up.set()
        await trio.sleep(1)
        bound, asked = gangs.bound("gang"), nominated(cluster, "gang")
        assert (bound, asked) == (0, [])
        await cluster.create(pinned("next", there[1]))  # the room is free again
        await cluster.settle()
        cluster.assert_scheduled("next", on=there[1])
        for name in ("blocker", "next"):
            await cluster.delete(cluster.pod(name), grace_seconds=0)
        await trio.sleep(AVOID_SECONDS + 15)
        bound = gangs.bound("gang")
        assert bound == 3
        assert gangs.by_name["gang"].longest_partial < 1
        under_way = [left(process) for process in replicas.running]
        assert under_way == [[], []]


async def test_all_places_are_taken_back_if_an_owner_does_not_answer(autojump_clock: MockClock) -> None:
    async with linked(small(OF_LANE[0], *OF_OTHER[:2])) as (replicas, gangs, _lane, other):
        cluster = replicas.cluster
        other.is_behind, other.behind = True, b"/pods"
        await gangs.create("gang", 3)
        await trio.sleep(1)
        asked = nominated(cluster, "gang")
        assert asked == OF_OTHER[:2]
        await trio.sleep(ANSWER_SECONDS + 1)
        bound, asked = gangs.bound("gang"), nominated(cluster, "gang")
        assert (bound, asked) == (0, [])
        other.is_behind = False
        other.caught_up.set()
        await trio.sleep(30)
        bound = gangs.bound("gang")
        assert bound == 3


async def test_a_place_on_an_own_node_is_not_kept_for_a_pod_that_was_preempted_before_that_was_noted(
    autojump_clock: MockClock,
) -> None:
    async with linked(small(*OF_LANE[:2])) as (replicas, gangs, lane, _other):
        cluster = replicas.cluster
        lane.held = b"/pods/gang"
        await gangs.create("gang", 2)
        await trio.sleep(1)
        await cluster.create(pinned("important", OF_LANE[0], priority=10))
        await trio.sleep(1)
        lane.held = b""
        lane.let_go.set()
        await trio.sleep(30)
        cluster.assert_scheduled("important", on=OF_LANE[0])
        bound, asked = gangs.bound("gang"), nominated(cluster, "gang")
        assert (bound, asked) == (0, [])
        under_way = [left(process) for process in replicas.running]
        assert under_way == [[], []]


WITHOUT_PREEMPTION = (
    "profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}}]\n"
)


@pytest.mark.parametrize("ending", ["", "kill", "stop"])
async def test_nobody_gets_a_place_that_is_kept_not_even_a_pod_of_higher_priority(
    ending: str, autojump_clock: MockClock
) -> None:
    there = OF_OTHER[0]
    nodes = small(OF_LANE[0], there)
    async with linked(nodes, replicas=3, more_config=WITHOUT_PREEMPTION) as (replicas, gangs, lane, _other):
        cluster, owner = replicas.cluster, replicas.owner(1)
        lane.held = b"/binding"
        await gangs.create("gang", 2)
        await trio.sleep(1)
        kept = sorted(one.nominated_node_name for one in pods_of(cluster, "gang") if is_kept_for_group(one))
        assert kept == sorted([OF_LANE[0], there])
        if ending == "kill":
            await owner.kill()
        elif ending == "stop":
            await owner.stop()
        await cluster.create(pinned("high", there, priority=100))
        await trio.sleep(5 if ending != "kill" else 2 * LEASE_SECONDS)
        is_owner = replicas.owner(1) is owner
        assert is_owner == (not ending)
        cluster.assert_pending("high")
        lane.held = b""
        lane.let_go.set()
        await trio.sleep(30)
        bound, partial = gangs.bound("gang"), gangs.by_name["gang"].longest_partial
        assert bound == 2
        assert partial < 1
        cluster.assert_pending("high", reason="Insufficient cpu")


async def test_binds_of_a_dead_lane_that_arrive_late_fail_and_its_places_are_taken_back(
    autojump_clock: MockClock,
) -> None:
    there = OF_OTHER[0]
    async with linked(small(OF_LANE[0], there)) as (replicas, gangs, lane, _other):
        cluster = replicas.cluster
        lane.held = b"/binding"
        await gangs.create("gang", 2)
        await trio.sleep(1)
        await replicas.owner(LANE).kill()
        await cluster.create(pinned("high", there, priority=100))
        await trio.sleep(2 * LEASE_SECONDS)
        cluster.assert_scheduled("high", on=there)
        lane.let_go.set()
        await trio.sleep(1)
        bound, asked = gangs.bound("gang"), nominated(cluster, "gang")
        assert (bound, asked) == (0, [])


async def test_the_next_lane_takes_back_places_of_a_gang_that_is_not_bound(autojump_clock: MockClock) -> None:
    there = OF_OTHER[0]
    async with linked(small(OF_LANE[0], there), replicas=3) as (replicas, gangs, lane, _other):
        cluster, owner = replicas.cluster, replicas.owner(1)
        lane.held = b"/binding"
        await gangs.create("gang", 2)
        await trio.sleep(1)
        await replicas.owner(LANE).kill()
        gone = next(one for one in pods_of(cluster, "gang") if one.nominated_node_name != there)
        await cluster.delete(gone, grace_seconds=0)
        await cluster.create(pinned("other", there))
        await trio.sleep(2 * LEASE_SECONDS)
        is_owner = replicas.owner(1) is owner
        assert is_owner
        cluster.assert_scheduled("other", on=there)
        bound, asked = gangs.bound("gang"), nominated(cluster, "gang")
        assert (bound, asked) == (0, [])


async def test_a_place_that_somebody_else_takes_back_is_lost(autojump_clock: MockClock) -> None:
    there = OF_OTHER[0]
    async with linked(small(OF_LANE[0], there)) as (replicas, gangs, lane, _other):
        cluster = replicas.cluster
        lane.held = b"/binding"
        await gangs.create("gang", 2)
        await trio.sleep(1)
        kept = next(one for one in pods_of(cluster, "gang") if one.nominated_node_name == there)
        await cluster.patch(kept, {"status": {"nominatedNodeName": None}}, subresource="status")
        await cluster.create(pinned("other", there))
        await trio.sleep(1)
        cluster.assert_scheduled("other", on=there)
        lane.held = b""
        lane.let_go.set()
        await trio.sleep(1)
        cluster.assert_pending(kept)  # else its node would be over its allocatable


@pytest.mark.parametrize("last", range(1, 13))
async def test_a_gang_is_bound_as_a_whole_whichever_replica_dies_after_whichever_write(
    last: int, autojump_clock: MockClock
) -> None:
    nodes, deadline = small(*OF_LANE[:3], *OF_OTHER[:2]), Deadline()
    async with (
        trio.open_nursery() as network,
        replicas_of(nodes, shards=2, replicas=0, gates=GANG_GATES) as replicas,
    ):
        for _ in range(2):
            await start_with_deadline(replicas.cluster, network, deadline)
        await trio.sleep(SETTLED_SECONDS)
        gangs = Gangs(replicas.cluster)
        deadline.last = last
        await gangs.create("gang", 5)
        await trio.sleep(2)
        dead = deadline.dead
        assert dead is not None
        await dead.kill()
        await trio.sleep(60)
        bound, partial = gangs.bound("gang"), gangs.by_name["gang"].longest_partial
        assert bound == 5
        assert partial < 30
        under_way = [left(process) for process in replicas.running]
        assert under_way == [[]]
        network.cancel_scope.cancel()


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("shards", [2, 4])
async def test_the_next_lane_completes_a_gang_on_the_places_that_are_kept_for_it(
    first: int, shards: int, autojump_clock: MockClock
) -> None:
    async with replicas_of(small(*NAMES), shards=shards, replicas=3, gates=GANG_GATES) as replicas:
        cluster, gangs, lane = replicas.cluster, Gangs(replicas.cluster), replicas.owner(LANE)
        cluster.api.faults = SlowBinds()
        await gangs.create("gang", len(NAMES))
        while gangs.bound("gang") < first:  # noqa: ASYNC110 - what is waited for is in the store, which has no events
            await trio.sleep(0.05)
        await lane.kill()
        bound = gangs.bound("gang")
        assert bound == first
        for number in range(len(NAMES)):
            await cluster.create(pod(f"small-{number}", cpu=1))
        await trio.sleep(2 * LEASE_SECONDS)
        bound, partial = gangs.bound("gang"), gangs.by_name["gang"].longest_partial
        assert bound == len(NAMES)
        assert partial < LEASE_SECONDS + 12
        evicted = cluster.events("EvictedWithGang")
        assert not evicted
        under_way = [left(process) for process in replicas.running]
        assert under_way == [[]] * 2


async def test_places_of_a_gang_that_cannot_be_completed_are_not_kept(autojump_clock: MockClock) -> None:
    async with replicas_of(small(*NAMES), shards=4, replicas=3, gates=GANG_GATES) as replicas:
        cluster, gangs, lane = replicas.cluster, Gangs(replicas.cluster), replicas.owner(LANE)
        cluster.api.faults = SlowBinds()
        await gangs.create("gang", len(NAMES))
        while not gangs.bound("gang"):  # noqa: ASYNC110 - see above
            await trio.sleep(0.05)
        await lane.kill()
        asked = nominated(cluster, "gang")
        assert len(asked) == len(NAMES) - 1
        await cluster.delete(node(asked[0]))
        await trio.sleep(2 * LEASE_SECONDS)
        bound, asked = gangs.bound("gang"), nominated(cluster, "gang")
        assert (bound, asked) == (1, [])
        await trio.sleep(INCOMPLETE_SECONDS)
        bound = gangs.bound("gang")
        assert bound == 0


async def test_a_tree_of_groups_gets_places_on_nodes_of_several_replicas(autojump_clock: MockClock) -> None:
    gates = GATES_OF["1.37"] | {"CompositePodGroup": True, "TopologyAwareWorkloadScheduling": True}
    versions = {"emulated_version": "1.37", "kubernetes_version": "1.37"}
    async with replicas_of(small(*NAMES[:-1]), shards=4, replicas=3, gates=gates, **versions) as replicas:
        cluster, gangs = replicas.cluster, Gangs(replicas.cluster)
        await cluster.create(composite_pod_group("top", min_group_count=2))
        for name in ("a", "b"):
            gangs.by_name[name] = Gang(name, 4, trio.current_time())
            await cluster.create(pod_group(name, min_count=4, parent="top"))
            for number in range(4):
                await cluster.create(pod(f"{name}-{number}", cpu=1, group=name))
        await trio.sleep(60)
        bound, asked = (gangs.bound("a"), gangs.bound("b")), [*nominated(cluster, "a"), *nominated(cluster, "b")]
        assert (bound, asked) == ((0, 0), [])
        await cluster.create(*small(NAMES[-1]))
        await trio.sleep(60)
        bound = (gangs.bound("a"), gangs.bound("b"))
        assert bound == (4, 4)
        assert max(gang.longest_partial for gang in gangs.by_name.values()) < 1


@pytest.mark.parametrize("dies", ["owner", "lane"])
async def test_gangs_in_workloads_of_1_35_are_bound_as_a_whole_after_a_replica_has_died(
    dies: str, autojump_clock: MockClock
) -> None:
    nodes = small(OF_LANE[0], OF_OTHER[0])
    async with linked(nodes, replicas=3, kubernetes_version="1.35") as (replicas, _gangs, lane, _other):
        cluster = replicas.cluster
        await cluster.create(pod("plain", cpu=0))
        await trio.sleep(1)
        lane.held = b"/binding"
        await cluster.create(workload("training", workers=2))
        for name in ("a", "b"):
            await cluster.create(member_of_workload(name, "training", "workers"))
        await trio.sleep(1)
        kept = sorted(one.nominated_node_name for one in cluster.pods() if is_kept_for_group(one))
        assert kept == sorted(one.name for one in nodes)
        await replicas.owner(0 if dies == "lane" else 1).kill()
        if dies == "lane":
            await cluster.delete(cluster.pod("a"), grace_seconds=0)
        await trio.sleep(2 * LEASE_SECONDS)
        if dies == "lane":
            kept = [one.name for one in cluster.pods() if is_kept_for_group(one)]
            assert kept == []
            await cluster.create(member_of_workload("c", "training", "workers"))
        lane.held = b""
        lane.let_go.set()
        await trio.sleep(5)
        placed = sorted(at for name, at in cluster.placements().items() if at and name != "default/plain")
        assert placed == sorted(one.name for one in nodes)
        failed = [event.message for event in cluster.events("FailedScheduling") if "changed" in event.message]
        assert failed == []
