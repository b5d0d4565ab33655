"""Less important pods make room for gangs on nodes of several replicas: once all places are promised, or not at all."""

from typing import Any

import pytest
import trio
from full_nodes import AS_ONE, BOTH, BY_GROUP, BY_POD, OF_LANE, OF_OTHER, full_nodes, pinned
from lossy_network import Deadline
from sharded_replicas import sharding_of, take_away
from trio.testing import MockClock

from trio_sched.daemon.sharding.proposals import ANSWER_SECONDS, AVOID_SECONDS
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.engine.sharding.reserved_places import is_kept_for_group
from trio_sched.simulator import KubeletPace
from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing import composite_pod_group, node, pod, pod_group

LEASE_SECONDS = 15.0
WAYS = pytest.mark.parametrize("way", [BY_POD, BY_GROUP, AS_ONE], ids=["1.36 by pod", "1.36 by group", "1.37"])


@WAYS
async def test_pods_are_evicted_on_nodes_of_both_replicas_for_a_gang(
    way: dict[str, Any], autojump_clock: MockClock
) -> None:
    async with full_nodes(way) as scene:
        await scene.create_gang()
        await trio.sleep(3)
        bound, promised = scene.bound(), scene.promised()
        assert (bound, promised) == (0, sorted([OF_LANE, OF_OTHER]))
        await trio.sleep(30)
        bound, victims, left = scene.bound(), scene.evictions.victims, scene.left()
        assert (bound, victims, left) == (2, BOTH, [])
        assert scene.gangs.by_name["gang"].longest_partial < 1
        told = len(scene.cluster.events("Preempted"))
        assert told == 2


async def test_pods_that_fit_keep_their_places_while_others_of_the_gang_wait_for_victims(
    autojump_clock: MockClock,
) -> None:
    async with full_nodes(BY_POD) as scene:
        cluster = scene.cluster
        await cluster.create(node("free", cpu=1))
        await scene.create_gang(3)
        await trio.sleep(3)
        await cluster.create(pod("late", cpu=1, priority=10))
        await cluster.create(pinned("later", OF_OTHER, priority=10))
        await trio.sleep(40)
        bound, victims, left = scene.bound(), scene.evictions.victims, scene.left()
        assert (bound, victims, left) == (3, BOTH, [])
        cluster.assert_pending("late")
        cluster.assert_pending("later")


async def test_nothing_is_evicted_if_an_owner_promises_no_place(autojump_clock: MockClock) -> None:
    async with full_nodes(AS_ONE) as scene:
        cluster, lane = scene.cluster, scene.link(LANE)
        await scene.create_members()
        await trio.sleep(1)
        lane.is_behind, lane.behind = True, b"/pods"  # it does not see what the node of the other has by now
        await cluster.delete(cluster.pod(f"low-{OF_OTHER}"), grace_seconds=0)
        await cluster.create(pinned("important", OF_OTHER, priority=20))
        await trio.sleep(1)
        cluster.assert_scheduled("important", on=OF_OTHER)
        await scene.create_group()
        await trio.sleep(2)
        asked, promised = scene.nominated(), scene.promised()
        assert asked == promised == [OF_LANE]
        lane.is_behind = False
        lane.caught_up.set()
        await trio.sleep(5)
        asked, bound, victims, left = scene.nominated(), scene.bound(), scene.evictions.victims, scene.left()
        assert (asked, bound, victims, left) == ([], 0, {}, [])
        await cluster.delete(cluster.pod("important"), grace_seconds=0)
        await trio.sleep(AVOID_SECONDS + 20)
        bound, victims = scene.bound(), list(scene.evictions.victims)
        assert (bound, victims) == (2, [f"low-{OF_LANE}"])


async def test_nothing_is_evicted_while_an_owner_does_not_answer(autojump_clock: MockClock) -> None:
    async with full_nodes(BY_GROUP) as scene:
        other = scene.link(1)
        other.is_behind, other.behind = True, b"/pods"
        await scene.create_gang()
        await trio.sleep(1)
        asked, promised = scene.nominated(), scene.promised()
        assert (asked, promised) == (sorted([OF_LANE, OF_OTHER]), [OF_LANE])
        await trio.sleep(ANSWER_SECONDS + 0.5)
        asked, victims = scene.nominated(), list(scene.evictions.victims)
        assert (asked, victims) == ([], [])
        other.is_behind = False
        other.caught_up.set()
        await trio.sleep(60)
        bound, victims, left = scene.bound(), scene.evictions.victims, scene.left()
        assert (bound, victims, left) == (2, BOTH, [])


async def test_pods_are_evicted_on_nodes_of_both_replicas_for_a_tree_of_groups(autojump_clock: MockClock) -> None:
    gates = AS_ONE["gates"] | {"CompositePodGroup": True, "TopologyAwareWorkloadScheduling": True}
    async with full_nodes({**AS_ONE, "gates": gates}) as scene:
        cluster = scene.cluster
        await cluster.create(composite_pod_group("top", min_group_count=2, priority=10))
        for name in ("a", "b"):
            await cluster.create(pod_group(name, min_count=1, parent="top", priority=10))
            await cluster.create(pod(f"{name}-0", cpu=1, group=name, priority=10))
        await trio.sleep(30)
        placed = {cluster.pod(f"{name}-0").node_name for name in ("a", "b")}
        victims, left = scene.evictions.victims, scene.left()
        assert (placed, victims, left) == ({OF_LANE, OF_OTHER}, BOTH, [])


async def test_a_promise_is_not_taken_for_a_place_where_a_write_has_met_another_version(
    autojump_clock: MockClock,
) -> None:
    async with full_nodes(AS_ONE) as scene:
        cluster, link = scene.cluster, scene.link(LANE)
        await scene.create_gang()
        await trio.sleep(7)  # the victims are about to end
        (promised,) = [one for one in scene.members() if one.nominated_node_name == OF_OTHER]
        link.held = f"/pods/{promised.name}/status".encode()
        await trio.sleep(5)
        under_way = sharding_of(scene.replicas.owner(LANE)).groups.unfinished
        assert under_way > 0  # the lane asks for the place
        await cluster.patch(promised, {"metadata": {"annotations": {"another": "version"}}})
        link.held = b""
        link.let_go.set()
        await trio.sleep(1)
        bound = scene.bound()
        assert bound == 2


async def test_a_gang_is_not_tried_without_end_while_another_place_of_its_pod_is_being_taken_back(
    autojump_clock: MockClock,
) -> None:
    async with full_nodes(AS_ONE, real_seconds=5.0) as scene:
        await scene.create_members()
        await trio.sleep(1)
        owned, uid = sharding_of(scene.replicas.owner(LANE)).owned, scene.members()[0].uid
        owned.takes_back(uid)
        await scene.create_group()
        await trio.sleep(5)
        promised, victims = scene.promised(), list(scene.evictions.victims)
        assert (promised, victims) == (sorted([OF_LANE, OF_OTHER]), [])
        owned.has_taken_back(uid, 0)
        await trio.sleep(30)
        bound, victims = scene.bound(), scene.evictions.victims
        assert (bound, victims) == (2, BOTH)


async def test_whoever_loses_a_node_does_not_count_the_promises_there_any_more(autojump_clock: MockClock) -> None:
    async with full_nodes(BY_POD, kubelets=KubeletPace(stop_seconds=100.0)) as scene:
        await scene.create_gang()
        await trio.sleep(3)
        owner = scene.replicas.owner(1)
        counted = scene.counted_by(owner)
        assert counted == [OF_OTHER]
        take_away(scene.cluster, 1)
        await trio.sleep(15)
        counted, promised = scene.counted_by(owner), scene.promised()
        assert (counted, promised) == ([], sorted([OF_LANE, OF_OTHER]))


async def test_nobody_else_is_evicted_once_a_place_of_the_gang_is_lost(autojump_clock: MockClock) -> None:
    async with full_nodes(AS_ONE) as scene:
        cluster, link = scene.cluster, scene.link(LANE)
        held = scene.hold_deletion(link, *BOTH)
        await scene.create_gang()
        await trio.sleep(1)
        assert len(held) == 1
        (lost,) = [one for one in scene.members() if one.nominated_node_name != BOTH[held[0]]]
        await cluster.delete(lost, grace_seconds=0)
        await trio.sleep(1)
        link.held = b""
        link.let_go.set()
        await trio.sleep(20)
        victims = list(scene.evictions.victims)
        assert victims == held


@pytest.mark.parametrize("last", [3, 5, 7, 9])  # promises, evictions, places
async def test_a_replica_that_dies_after_any_of_its_writes_leaves_nothing_half_done(
    last: int, autojump_clock: MockClock
) -> None:
    deadline = Deadline()
    async with full_nodes(AS_ONE, deadline=deadline) as scene:
        deadline.last = last
        await scene.create_gang()
        await trio.sleep(15)
        dead = deadline.dead
        if dead is None:
            raise AssertionError("there were fewer writes")
        await dead.kill()
        await trio.sleep(75)
        bound, victims, left = scene.bound(), scene.evictions.victims, scene.left()
        assert (bound, victims, left) == (2, BOTH, [])
        assert scene.gangs.by_name["gang"].longest_partial < 2 * LEASE_SECONDS


async def test_what_a_dead_lane_says_late_about_a_pod_that_it_was_to_evict_fails(autojump_clock: MockClock) -> None:
    async with full_nodes(AS_ONE, replicas=3) as scene:
        cluster, link = scene.cluster, scene.link(LANE)
        link.held = b"/pods/low"
        await scene.create_gang()
        await trio.sleep(3)
        promised = scene.promised()
        assert promised == sorted([OF_LANE, OF_OTHER])
        await scene.replicas.owner(LANE).kill()
        for name in ("free", "too"):
            await cluster.create(node(name, cpu=1))
        await trio.sleep(2 * LEASE_SECONDS)
        link.let_go.set()
        await trio.sleep(2)
        told = [name for name in BOTH if scene.has_condition(name)]
        assert told == []


async def test_evictions_of_a_dead_lane_that_arrive_late_fail(autojump_clock: MockClock) -> None:
    async with full_nodes(BY_POD, replicas=3) as scene:
        cluster, link = scene.cluster, scene.link(LANE)
        held = scene.hold_deletion(link, *BOTH)
        await scene.create_gang()
        await trio.sleep(3)
        promised = scene.promised()
        assert (promised, len(held)) == (sorted([OF_LANE, OF_OTHER]), 1)
        await scene.replicas.owner(LANE).kill()
        for name in ("free", "too"):
            await cluster.create(node(name, cpu=1))
        await trio.sleep(2 * LEASE_SECONDS)
        bound = scene.bound()
        assert bound == 2
        link.let_go.set()
        await trio.sleep(2)
        deleted_at = cluster.pod(held[0]).metadata.deletion_timestamp
        assert deleted_at is None


@pytest.mark.parametrize("ends", ["owner in order", "owner", "lane"])
async def test_a_promise_outlives_the_owner_of_the_node_and_not_the_lane(ends: str, autojump_clock: MockClock) -> None:
    way = AS_ONE if ends == "lane" else BY_POD
    async with full_nodes(way, replicas=3, kubelets=KubeletPace(stop_seconds=100.0)) as scene:
        cluster = scene.cluster
        await scene.create_gang()
        await trio.sleep(3)
        promised, victims = scene.promised(), scene.evictions.victims
        assert (promised, victims) == (sorted([OF_LANE, OF_OTHER]), BOTH)
        seen: list[str] = []

        def see(change: Change) -> None:
            if change.current.fields["spec"].get("schedulingGroup"):
                seen.append(change.current.fields["status"].get("nominatedNodeName", ""))

        cluster.api.store.collection("pods").listen(see)
        process = scene.replicas.owner(LANE if ends == "lane" else 1)
        await (process.stop() if ends == "owner in order" else process.kill())
        await trio.sleep(3 if ends == "owner in order" else 2 * LEASE_SECONDS)
        was_taken_back = "" in seen
        assert was_taken_back == (ends == "lane")
        if ends != "lane":
            counted = scene.counted_by(scene.replicas.owner(1))
            assert counted == [OF_OTHER]
        await cluster.create(pinned("other", OF_OTHER, priority=10))
        await trio.sleep(120)
        bound, victims, left = scene.bound(), scene.evictions.victims, scene.left()
        assert (bound, victims, left) == (2, BOTH, [])
        cluster.assert_pending("other")


async def test_a_gang_gives_its_places_back_if_a_pod_of_higher_priority_takes_one(autojump_clock: MockClock) -> None:
    async with full_nodes(AS_ONE) as scene:
        cluster = scene.cluster
        await scene.create_gang()
        await trio.sleep(3)
        promised = scene.promised()
        assert promised == sorted([OF_LANE, OF_OTHER])
        await cluster.create(pinned("high", OF_OTHER, priority=20))
        await trio.sleep(40)
        cluster.assert_scheduled("high", on=OF_OTHER)
        bound, asked, left = scene.bound(), scene.nominated(), scene.left()
        assert (bound, asked, left) == (0, [], [])
        await cluster.create(pod("small", cpu=1))
        await trio.sleep(5)
        cluster.assert_scheduled("small", on=OF_LANE)


async def test_the_owner_of_a_node_leaves_a_promise_to_the_lane_when_it_evicts_for_a_pod_of_higher_priority(
    autojump_clock: MockClock,
) -> None:
    async with full_nodes(AS_ONE) as scene:
        cluster, lane = scene.cluster, scene.link(LANE)
        lane.held = b"/pods/low"
        await scene.create_gang()
        await trio.sleep(1)
        await cluster.create(pinned("high", OF_OTHER, priority=20))
        await trio.sleep(2)
        promised, victims = scene.promised(), list(scene.evictions.victims)
        assert (promised, victims) == (sorted([OF_LANE, OF_OTHER]), [f"low-{OF_OTHER}"])
        lane.held = b""
        lane.let_go.set()
        await trio.sleep(20)
        cluster.assert_scheduled("high", on=OF_OTHER)
        bound, asked, left = scene.bound(), scene.nominated(), scene.left()
        assert (bound, asked, left) == (0, [], [])


async def test_nothing_is_evicted_for_a_gang_while_others_with_room_may_still_answer_and_no_longer(
    autojump_clock: MockClock,
) -> None:
    async with full_nodes(AS_ONE) as scene:
        cluster, other = scene.cluster, scene.link(1)
        await cluster.delete(cluster.pod(f"low-{OF_OTHER}"), grace_seconds=0)
        await trio.sleep(1)
        other.is_behind, other.behind = True, b"/pods"
        await scene.create_gang(1)
        await trio.sleep(25)
        victims = list(scene.evictions.victims)
        assert victims == []
        await trio.sleep(40)
        bound, victims = scene.bound(), list(scene.evictions.victims)
        assert (bound, victims) == (1, [f"low-{OF_LANE}"])
        other.caught_up.set()


async def test_of_many_nodes_that_are_as_good_those_that_were_promised_are_chosen_again(
    autojump_clock: MockClock,
) -> None:
    async with full_nodes(BY_POD) as scene:
        cluster, nominated = scene.cluster, set[str]()
        for number in range(16):
            await cluster.create(node(f"more-{number}", cpu=1))
            await cluster.create(pinned(f"low-{number}", f"more-{number}"))
        await trio.sleep(2)

        def see(change: Change) -> None:
            if change.current.fields["spec"].get("schedulingGroup"):
                nominated.add(change.current.fields["status"].get("nominatedNodeName", ""))

        cluster.api.store.collection("pods").listen(see)
        await scene.create_gang(3)
        await trio.sleep(20)
        places = {one.node_name for one in scene.members()}
        assert nominated - {""} == places
        victims = set(scene.evictions.victims.values())
        assert victims == places


async def test_a_pod_of_higher_priority_does_not_evict_one_that_has_a_kept_place_only(
    autojump_clock: MockClock,
) -> None:
    async with full_nodes(BY_POD) as scene:
        cluster, lane = scene.cluster, scene.link(LANE)
        for name in BOTH:
            await cluster.delete(cluster.pod(name), grace_seconds=0)
        lane.held = b"/binding"
        await scene.create_gang()
        await trio.sleep(1)
        kept = sorted(one.nominated_node_name for one in scene.members() if is_kept_for_group(one))
        assert kept == sorted([OF_LANE, OF_OTHER])
        await cluster.create(pinned("high", OF_OTHER, priority=20))
        await trio.sleep(5)
        size = len(scene.members())
        assert size == 2
        lane.held = b""
        lane.let_go.set()
        await trio.sleep(30)
        cluster.assert_scheduled("high", on=OF_OTHER)
