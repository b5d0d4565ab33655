"""Pod groups from creation to binding: gangs, topology, preemption for whole groups, events."""

from typing import Any

import pytest
import trio
from gangs import GANG_GATES, Gangs, condition_of, member
from trio.testing import MockClock

from trio_sched.engine.pod_groups.gang_recovery import INCOMPLETE_SECONDS
from trio_sched.simulator import PretendExtender, leaving
from trio_sched.testing import node, pod, pod_group
from trio_sched.testing.cluster import virtual_cluster

TOPOLOGY = GANG_GATES | {"TopologyAwareWorkloadScheduling": True}
PREEMPTION = GANG_GATES | {"WorkloadAwarePreemption": True}


def nodes(count: int, cpu: int = 2, **fields: Any) -> list[Any]:
    return [node(f"n{number}", cpu=str(cpu), **fields) for number in range(count)]


async def test_a_gang_is_bound_as_a_whole_and_one_that_does_not_fit_not_at_all(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(3), gates=GANG_GATES) as cluster:
        gangs = Gangs(cluster)
        await gangs.create("fits", 4)
        await gangs.create("too-large", 4)
        await cluster.settle()
        assert (gangs.bound("fits"), gangs.bound("too-large")) == (4, 0)
        assert condition_of(cluster, "fits")["status"] == "True"
        refused = condition_of(cluster, "too-large")
        assert (refused["status"], refused["reason"]) == ("False", "Unschedulable")
        assert refused["message"] == "pod group is unschedulable"
        told = [event.message for event in cluster.events(about="too-large")]
        assert told == ["2 of 4 pods fit; pod default/too-large-3 lacks 1 cpu"]


async def test_pods_wait_for_their_group_and_for_enough_of_them(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(3), gates=GANG_GATES) as cluster:
        gangs = Gangs(cluster)
        for number in range(2):
            await cluster.create(member(f"p{number}", "late", cpu="1"))
        await cluster.settle()
        await cluster.create(pod_group("late", min_count=3))
        await cluster.settle()
        assert set(cluster.placements().values()) == {""}
        assert gangs.bound("late") == 0
        await cluster.create(member("p2", "late", cpu="1"))
        await cluster.settle()
        assert "" not in cluster.placements().values()


async def test_a_gang_gets_in_when_there_is_room(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(2), gates=GANG_GATES) as cluster:
        await cluster.create(pod("first", cpu="2"))
        await cluster.settle()
        gangs = Gangs(cluster)
        await gangs.create("gang", 4)
        await cluster.settle()
        assert gangs.bound("gang") == 0
        await cluster.delete(pod("first"))
        await cluster.settle()
        assert gangs.bound("gang") == 4


async def test_the_pods_of_a_basic_group_are_bound_as_far_as_they_fit(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(1), gates=GANG_GATES) as cluster:
        await cluster.create(pod_group("basic"))
        for number in range(3):
            await cluster.create(member(f"p{number}", "basic", cpu="1"))
        await cluster.settle()
        assert sorted(cluster.placements().values()) == ["", "n0", "n0"]
        assert condition_of(cluster, "basic")["status"] == "True"


async def test_without_the_plugin_a_gang_is_a_group_like_others(autojump_clock: MockClock) -> None:
    config = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {disabled: [{name: GangScheduling}]}}}]
"""
    async with virtual_cluster(nodes=nodes(1), gates=GANG_GATES, config=config) as cluster:
        gangs = Gangs(cluster)
        await gangs.create("gang", 3)
        await trio.sleep(INCOMPLETE_SECONDS + 60)
        assert gangs.bound("gang") == 2
        assert cluster.events("IncompleteGangEvicted") == []


async def test_pods_of_one_group_have_to_have_the_same_scheduler(autojump_clock: MockClock) -> None:
    config = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: one}, {schedulerName: two}]
"""
    async with virtual_cluster(nodes=nodes(1), gates=GANG_GATES, config=config) as cluster:
        await cluster.create(pod_group("mixed", min_count=2))
        await cluster.create(member("a", "mixed", scheduler_name="one"))
        await cluster.create(member("b", "mixed", scheduler_name="two"))
        await cluster.settle()
        assert set(cluster.placements().values()) == {""}
        messages = {event.message for event in cluster.events("FailedScheduling")}
        assert any(text.startswith("all pods in a single pod group should have the same .spec") for text in messages)


async def test_all_pods_of_a_group_are_placed_in_one_topology_domain(autojump_clock: MockClock) -> None:
    racks = [node(f"n{number}", cpu="2", labels={"rack": f"r{number // 2}"}) for number in range(6)]
    async with virtual_cluster(nodes=racks, gates=TOPOLOGY) as cluster:
        await cluster.create(pod("in-the-way", cpu="1", node_name="n0"))
        await cluster.create(pod_group("together", min_count=4, topology_key="rack"))
        await cluster.create(pod_group("wide", min_count=5, topology_key="rack"))
        for name, size in (("together", 4), ("wide", 5)):
            for number in range(size):
                await cluster.create(member(f"{name}-{number}", name, cpu="1"))
        await cluster.settle()
        used = {one.node_name for one in cluster.pods() if one.name.startswith("together")}
        assert used in ({"n2", "n3"}, {"n4", "n5"})
        assert not any(one.node_name for one in cluster.pods() if one.name.startswith("wide"))
        assert condition_of(cluster, "wide")["message"].startswith("0/3 placements are available, first placement")
        (told,) = [event.message for event in cluster.events(about="wide")]
        assert told == '4 of 5 pods fit; pod default/wide-4 lacks 1 cpu in any rack; most fit in "r2"' or told == (
            '4 of 5 pods fit; pod default/wide-4 lacks 1 cpu in any rack; most fit in "r1"'
        )


async def test_a_pod_that_joins_later_goes_where_its_group_is(autojump_clock: MockClock) -> None:
    racks = [node(f"n{number}", cpu="4", labels={"rack": f"r{number}"}) for number in range(3)]
    async with virtual_cluster(nodes=racks, gates=TOPOLOGY) as cluster:
        await cluster.create(pod_group("group", min_count=2, topology_key="rack"))
        for number in range(2):
            await cluster.create(member(f"p{number}", "group", cpu="1"))
        await cluster.settle()
        await cluster.create(member("late", "group", cpu="1"))
        await cluster.settle()
        assert len(set(cluster.placements().values())) == 1


async def test_pods_are_evicted_for_a_whole_group(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(3), gates=PREEMPTION) as cluster:
        for number in range(3):
            await cluster.create(pod(f"low-{number}", cpu="2", node_name=f"n{number}"))
        await cluster.create(pod_group("important", min_count=2, priority=10))
        for number in range(2):
            await cluster.create(member(f"p{number}", "important", cpu="2", priority=10))
        await cluster.settle()
        placed = [one.node_name for one in cluster.pods() if one.name.startswith("p")]
        assert "" not in placed
        assert len(set(placed)) == 2
        assert len([one for one in cluster.pods() if one.name.startswith("low")]) == 1  # no more than necessary
        group = cluster.api.store.get("podgroups.scheduling.k8s.io", "default/important")
        assert group is not None
        notes = {event.message for event in cluster.events("Preempted")}
        assert notes == {f"Preempted by podgroup {group.fields['metadata']['uid']} on node cluster"}


async def test_a_group_is_tried_as_soon_as_its_victims_have_left(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(1), gates=PREEMPTION) as cluster:
        await cluster.create(pod("low", cpu="2", node_name="n0"))
        await trio.sleep(5)
        await cluster.create(pod_group("important", min_count=2, priority=10))
        for number in range(2):
            await cluster.create(member(f"p{number}", "important", cpu="1", priority=10))
        await trio.sleep(4)  # the victim takes one second, and the backoff until then has to be over
        assert set(cluster.placements().values()) == {"n0"}


async def test_the_pods_of_a_group_are_evicted_together_if_it_wants_that(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(3), gates=PREEMPTION) as cluster:
        gangs = Gangs(cluster)
        await cluster.create(pod_group("victim", min_count=3, disruption_mode="PodGroup"))
        for number in range(3):
            await cluster.create(member(f"v{number}", "victim", cpu="2"))
        await cluster.settle()
        await cluster.create(pod_group("important", min_count=1, priority=10))
        await cluster.create(member("p", "important", cpu="2", priority=10))
        await cluster.settle()
        assert [one.name for one in cluster.pods()] == ["p"]
        assert gangs.bound("victim") == 0


async def test_a_group_that_no_eviction_helps_evicts_nobody(autojump_clock: MockClock) -> None:
    """Its pods could be placed one by one after evictions; but that does not help the group."""
    async with virtual_cluster(nodes=nodes(2), gates=GANG_GATES) as cluster:
        for number in range(2):
            await cluster.create(pod(f"low-{number}", cpu="2", node_name=f"n{number}"))
        gangs = Gangs(cluster)
        await gangs.create("gang", 3, cpu="2", priority=10)
        await cluster.settle()
        assert gangs.bound("gang") == 0
        assert len([one for one in cluster.pods() if one.name.startswith("low")]) == 2


async def test_a_gang_preempts_for_its_pods_if_that_makes_room_for_all(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(2), gates=GANG_GATES) as cluster:
        for number in range(2):
            await cluster.create(pod(f"low-{number}", cpu="2", node_name=f"n{number}"))
        gangs = Gangs(cluster)
        await gangs.create("gang", 2, cpu="2", priority=10)
        await cluster.settle()
        assert gangs.bound("gang") == 2
        assert not [one for one in cluster.pods() if one.name.startswith("low")]


async def test_extenders_are_asked_about_the_pods_of_a_group(autojump_clock: MockClock) -> None:
    extender = PretendExtender(answers={"filter": leaving(lambda name: name != "n0", "not there")})
    config = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://extender.test", filterVerb: filter}]
"""
    async with virtual_cluster(nodes=nodes(3), gates=GANG_GATES, config=config, extenders=[extender]) as cluster:
        gangs = Gangs(cluster)
        await gangs.create("gang", 4)
        await cluster.settle()
        assert gangs.bound("gang") == 4
        assert "n0" not in cluster.placements().values()


async def test_places_that_are_tried_for_a_group_take_none_from_pods_beside_it(autojump_clock: MockClock) -> None:
    extender = PretendExtender(answers={"filter": leaving(lambda _name: True)}, delay_seconds=2.0)
    config = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://extender.test", filterVerb: filter}]
"""
    async with virtual_cluster(nodes=nodes(1, cpu=4), gates=GANG_GATES, config=config, extenders=[extender]) as cluster:
        for number in range(3):
            await cluster.create(pod(f"single-{number}", cpu="1"))
        await cluster.create(pod_group("too-large", min_count=3))
        for number, cpu in enumerate(("2500m", "100m", "5")):
            await cluster.create(member(f"too-large-{number}", "too-large", cpu=cpu))
        await trio.sleep(40)
        assert [cluster.pod(f"single-{number}").node_name for number in range(3)] == ["n0"] * 3
        told = [one for number in range(3) for one in cluster.events(about=f"single-{number}")]
        assert {one.reason for one in told} == {"Scheduled"}


@pytest.mark.parametrize("answer", ["refused", "deleted"])
async def test_none_of_a_gang_is_bound_if_one_of_its_pods_cannot_be(answer: str, autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(3), gates=GANG_GATES) as cluster:
        gangs = Gangs(cluster)
        cluster.api.faults.set_latency(5.0, verb="patch", resource="pods")
        await gangs.create("gang", 4)
        await trio.sleep(2.0)  # the nominations are under way, nothing is bound
        if answer == "refused":
            cluster.api.faults.fail_next(1, verb="patch", resource="pods", code=403, reason="Forbidden", message="no")
        else:
            await cluster.delete(pod("gang-2"), grace_seconds=0)
        await trio.sleep(8.0)
        assert gangs.bound("gang") == 0
        cluster.api.faults.clear()
        if answer == "deleted":
            await gangs.add_pod(gangs.by_name["gang"])
        await cluster.settle()
        assert gangs.bound("gang") == 4
        assert gangs.by_name["gang"].longest_partial < 1.0


async def test_the_place_of_each_pod_is_written_before_the_first_bind(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=nodes(2), gates=GANG_GATES) as cluster:
        seen: list[tuple[str, str]] = []

        def see(change: Any) -> None:
            fields = change.current.fields
            if fields["spec"].get("nodeName"):
                seen.append((fields["metadata"]["name"], "bound"))
            elif (fields.get("status") or {}).get("nominatedNodeName"):
                seen.append((fields["metadata"]["name"], "nominated"))

        cluster.api.store.collection("pods").listen(see)
        await Gangs(cluster).create("gang", 3)
        await cluster.settle()
        firsts = [what for _name, what in seen[:3]]
        assert firsts == ["nominated"] * 3
        assert {name for name, what in seen if what == "bound"} == {"gang-1", "gang-2", "gang-3"}
