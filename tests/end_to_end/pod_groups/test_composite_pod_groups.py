"""Trees of pod groups, on whole clusters: they are scheduled as a whole, or not at all."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import pytest
import trio
from gangs import cluster_of, condition_of, member
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.engine.pod_groups.gang_recovery import INCOMPLETE_SECONDS
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.plugin_api import CycleState, Pod, Status, failure, hookimpl
from trio_sched.simulator.endpoints.faults import Faults
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.testing import composite_pod_group, node, pod, pod_group
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

TREES: Final = {"CompositePodGroup": True, "TopologyAwareWorkloadScheduling": True}


def cluster_with(nodes: int, *, cpu: str = "2", **options: Any) -> AbstractAsyncContextManager[VirtualCluster]:
    """A cluster of 1.37 that schedules trees of groups, with racks of two nodes."""
    made = [node(f"n{number}", cpu=cpu, labels={"rack": f"r{number // 2}"}) for number in range(nodes)]
    return cluster_of("1.37", nodes=made, gates=TREES | options.pop("gates", {}), **options)


def queue_of(cluster: VirtualCluster) -> SchedulingQueue:
    """The queue of its scheduler."""
    assembly = cluster.scheduler.assembly
    assert assembly is not None
    return assembly.scheduler.queue


async def create_group(cluster: VirtualCluster, name: str, parent: str, pods: int = 2, **fields: Any) -> None:
    """A gang of *pods* with one core each, below *parent*."""
    await cluster.create(pod_group(name, min_count=pods, parent=parent, **fields))
    for number in range(pods):
        await cluster.create(member(f"{name}-{number}", name, cpu="1", priority=fields.get("priority")))


def bound(cluster: VirtualCluster) -> set[str]:
    """The groups of which pods are bound."""
    groups = (one.spec.scheduling_group for one in cluster.pods() if one.node_name)
    return {group.pod_group_name or "" for group in groups if group is not None}


async def test_a_tree_of_two_levels_is_scheduled_once_all_of_it_fits(autojump_clock: MockClock) -> None:
    async with cluster_with(1) as cluster:
        await cluster.create(composite_pod_group("top", min_group_count=2))
        await create_group(cluster, "a", "top")
        await cluster.settle()
        assert bound(cluster) == set()
        await create_group(cluster, "b", "top")
        await trio.sleep(30)
        assert bound(cluster) == set()
        conditions = [condition_of(cluster, name) for name in ("a", "b")]
        assert {one["reason"] for one in conditions} == {"Unschedulable"}
        assert "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining" in conditions[0]["message"]
        await cluster.create(node("more", cpu="2"))
        await trio.sleep(30)
        assert bound(cluster) == {"a", "b"}
        assert {condition_of(cluster, name)["status"] for name in ("a", "b")} == {"True"}


async def test_the_groups_that_fit_are_enough_if_the_parent_needs_no_more(autojump_clock: MockClock) -> None:
    async with cluster_with(1, cpu="4") as cluster:
        await cluster.create(composite_pod_group("top", min_group_count=2))
        for name in ("a", "large", "b"):
            await create_group(cluster, name, "top", pods=8 if name == "large" else 2)
        await trio.sleep(30)
        assert bound(cluster) == {"a", "b"}
        assert condition_of(cluster, "large")["message"].startswith("0/1 placements are available")
        assert condition_of(cluster, "large")["reason"] == "Unschedulable"
        await cluster.create(node("more", cpu="8"))
        await trio.sleep(120)
        assert bound(cluster) == {"a", "large", "b"}


async def test_a_tree_of_four_levels_reverts_the_subtree_that_does_not_fit(autojump_clock: MockClock) -> None:
    """Pods of the left subtree, of which one group fits, leave room for the right one."""
    async with cluster_with(1, cpu="4") as cluster:
        await cluster.create(composite_pod_group("top"))
        for side in ("left", "right"):
            await cluster.create(composite_pod_group(side, parent="top", min_group_count=1))
            await cluster.create(composite_pod_group(f"{side}-low", parent=side, min_group_count=2))
        await create_group(cluster, "left-a", "left-low", pods=3)
        await create_group(cluster, "left-b", "left-low", pods=3)
        await create_group(cluster, "right-a", "right-low")
        await cluster.settle()
        assert bound(cluster) == set()  # the left side alone is enough to try the tree, and does not fit
        await create_group(cluster, "right-b", "right-low")
        await trio.sleep(60)
        assert bound(cluster) == {"right-a", "right-b"}
        assert {condition_of(cluster, name)["status"] for name in ("left-a", "left-b")} == {"False"}
        assert {condition_of(cluster, name)["status"] for name in ("right-a", "right-b")} == {"True"}


@pytest.mark.parametrize(
    ("parents", "text"),
    [
        ({}, 'composite pod group "top" not found'),
        ({"top": "other", "other": "top"}, "the parents of composite pod groups are a circle: top -> other -> top"),
        (
            {"top": "second", "second": "third", "third": "fourth", "fourth": None},
            'the tree of pod group "broken" has more than 4 levels of groups',
        ),
    ],
    ids=["missing", "circle", "deep"],
)
async def test_a_tree_that_is_not_whole_costs_itself_only(
    parents: dict[str, str | None], text: str, autojump_clock: MockClock
) -> None:
    async with cluster_with(2) as cluster:
        for name, parent in parents.items():
            await cluster.create(composite_pod_group(name, parent=parent))
        await create_group(cluster, "broken", "top")
        await cluster.create(composite_pod_group("whole"))
        await create_group(cluster, "good", "whole")
        await trio.sleep(30)
        assert bound(cluster) == {"good"}
        condition = condition_of(cluster, "broken")
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "SchedulerError", text)
        assert [one.message for one in cluster.events("FailedScheduling", about="broken")] == [text]
        assert queue_of(cluster).sizes()["incomplete"] == 2
        for name in parents:
            await cluster.delete(composite_pod_group(name))
        await cluster.create(composite_pod_group("top"))
        await trio.sleep(30)
        assert bound(cluster) == {"broken", "good"}
        assert condition_of(cluster, "broken")["status"] == "True"


async def test_pods_wait_again_when_their_parent_is_deleted(autojump_clock: MockClock) -> None:
    async with cluster_with(1) as cluster:
        await cluster.create(composite_pod_group("top", min_group_count=2))
        await create_group(cluster, "a", "top")
        await create_group(cluster, "b", "top")
        await trio.sleep(5)
        queue = queue_of(cluster)
        assert [number for part, number in queue.entity_sizes().items() if part[1] == "podgroup" and number] == [1]
        await cluster.delete(composite_pod_group("top"))
        await cluster.create(node("more", cpu="2"))
        await trio.sleep(30)
        assert bound(cluster) == set()
        assert queue.sizes()["incomplete"] == 4
        await cluster.create(composite_pod_group("top", min_group_count=2))
        await trio.sleep(30)
        assert bound(cluster) == {"a", "b"}


async def test_each_level_may_have_a_topology_key(autojump_clock: MockClock) -> None:
    """The tree needs one rack, each group one node: neither the first rack nor two half-empty ones do."""
    async with cluster_with(6) as cluster:
        for name in ("n1", "n2"):
            await cluster.create(pod(f"on-{name}", cpu="1", node_name=name))
        await trio.sleep(2)
        await cluster.create(composite_pod_group("top", min_group_count=2, topology_key="rack"))
        for name in ("a", "b"):
            await create_group(cluster, name, "top", topology_key="kubernetes.io/hostname")
        await trio.sleep(10)
        nodes = {one.name: one.node_name for one in cluster.pods() if not one.name.startswith("on-")}
        assert {nodes["a-0"], nodes["b-0"]} == {"n4", "n5"}
        assert (nodes["a-0"], nodes["b-0"]) == (nodes["a-1"], nodes["b-1"])


async def test_a_tree_preempts_as_a_whole_with_the_priority_of_its_root(autojump_clock: MockClock) -> None:
    async with cluster_with(2) as cluster:
        for number in range(4):
            await cluster.create(pod(f"low-{number}", cpu="1", priority=5, node_name=f"n{number // 2}"))
        await trio.sleep(2)
        await cluster.create(composite_pod_group("top", min_group_count=2, priority=10))
        for name in ("a", "b"):
            await cluster.create(pod_group(name, min_count=1, parent="top"))
            await cluster.create(member(name, name, cpu="1", priority=10))
        await trio.sleep(0.5)
        for name in ("a", "b"):
            condition = condition_of(cluster, name)
            told = "pod group preemption: found a placement for podgroup, preempting 2 victims"
            assert condition["message"].endswith(told)
        await trio.sleep(60)
        assert bound(cluster) == {"a", "b"}
        assert len([one for one in cluster.pods() if one.name.startswith("low")]) == 2


@pytest.mark.parametrize("together", [False, True])
async def test_pods_below_a_group_that_is_disrupted_as_a_whole_leave_together(
    together: bool, autojump_clock: MockClock
) -> None:
    async with cluster_with(2) as cluster:
        await cluster.create(composite_pod_group("top", min_group_count=2, disrupted_together=together))
        for name in ("a", "b"):
            await create_group(cluster, name, "top")
        await trio.sleep(10)
        assert bound(cluster) == {"a", "b"}
        await cluster.create(pod_group("important", min_count=1, priority=10))
        await cluster.create(member("p", "important", cpu="1", priority=10))
        await trio.sleep(60)
        assert cluster.pod("p").node_name
        left = [one.name for one in cluster.pods() if one.name != "p"]
        assert len(left) == (0 if together else 3)


async def test_all_pods_of_a_tree_need_the_priority_of_its_root(autojump_clock: MockClock) -> None:
    async with cluster_with(2) as cluster:
        await cluster.create(composite_pod_group("top", priority=7))
        await create_group(cluster, "a", "top", priority=7)
        await create_group(cluster, "b", "top", priority=8)
        await trio.sleep(10)
        text = "all pods in a single pod group should have the same priority as the pod group's priority, got 8 and 7"
        for name in ("a", "b"):
            condition = condition_of(cluster, name)
            assert (condition["reason"], condition["message"]) == ("SchedulerError", text)
        assert bound(cluster) == set()


async def test_where_no_composite_groups_are_served_only_groups_below_one_wait(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    gates = {"GenericWorkload": True} | TREES
    cluster_of_36 = virtual_cluster(
        nodes=[node("a", cpu="4")], kubernetes_version="1.36", emulated_version="1.37", gates=gates
    )
    async with cluster_of_36 as cluster:
        await cluster.create(pod_group("alone", min_count=1))
        await cluster.create(member("alone", "alone", cpu="1"))
        await cluster.create(pod("single", cpu="1"))
        await trio.sleep(30)
        assert {one.name for one in cluster.pods() if one.node_name} == {"alone", "single"}
        told = [one.getMessage() for one in caplog.records if "compositepodgroups" in one.getMessage()]
        assert len(told) == 1
        assert "pods of pod groups that have a parent stay pending" in told[0]


async def test_without_the_gate_parents_are_not_looked_at(autojump_clock: MockClock) -> None:
    async with cluster_with(1, gates={"CompositePodGroup": False}) as cluster:
        await create_group(cluster, "a", "nowhere")
        await trio.sleep(10)
        assert bound(cluster) == {"a"}


class FailsLate(PluginBase):
    """Fails before the bind of the pods that are named so."""

    name = "FailsLate"

    @hookimpl
    async def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        await trio.sleep(1)
        return failure("not ready") if pod.name == "b-0" else None


@pytest.mark.parametrize(("needed", "expected"), [(2, set()), (1, {"a"}), (None, {"a"})])
async def test_a_tree_is_bound_as_a_whole_if_a_pod_of_it_fails_before_the_bind(
    needed: int | None, expected: set[str], autojump_clock: MockClock
) -> None:
    async with cluster_with(2, plugins=[FailsLate]) as cluster:
        await cluster.create(composite_pod_group("top", min_group_count=needed))
        for name in ("a", "b"):
            await create_group(cluster, name, "top")
        await trio.sleep(5)
        assert bound(cluster) == expected


class RefusedBinds(Faults):
    """The API server refuses binds once *most* pods are bound."""

    def __init__(self, cluster: VirtualCluster, most: int) -> None:
        super().__init__()
        self.is_full = lambda: len([one for one in cluster.pods() if one.node_name]) >= most

    def __bool__(self) -> bool:
        return True

    def inject(self, verb: str, resource: str) -> bool:
        if verb == "bind" and self.is_full():
            raise ApiError(403, "Forbidden", "no")
        return super().inject(verb, resource)


@pytest.mark.parametrize(("needed", "in_time"), [(2, True), (2, False), (1, False)])
async def test_a_tree_of_which_too_few_groups_could_be_bound_is_completed_or_starts_again_as_a_whole(
    needed: int, in_time: bool, autojump_clock: MockClock
) -> None:
    async with cluster_with(2) as cluster:
        cluster.api.faults = RefusedBinds(cluster, 1)
        await cluster.create(composite_pod_group("top", min_group_count=needed))
        for name in ("a", "b"):
            await create_group(cluster, name, "top", pods=1)
        await trio.sleep(30)
        (first,) = bound(cluster)
        if in_time:
            cluster.api.faults = Faults()
            await trio.sleep(15)
            assert bound(cluster) == {"a", "b"}
        await trio.sleep(INCOMPLETE_SECONDS)
        assert bound(cluster) == ({"a", "b"} if in_time else set() if needed == 2 else {first})
        assert len(cluster.events("EvictedWithGang")) == int(needed == 2 and not in_time)
        if bound(cluster):
            return
        (note,) = [event.message for event in cluster.events("IncompleteGangEvicted")]
        assert note.startswith("too few child groups of composite pod group default/top have their pods bound")
        cluster.api.faults = Faults()
        await cluster.create(member("again", first, cpu="1"))
        await trio.sleep(60)
        assert bound(cluster) == {"a", "b"}


async def test_groups_below_the_groups_that_need_each_other_are_bound_with_them(autojump_clock: MockClock) -> None:
    """The left side needs both of its groups, of which one fails; the tree needs one side."""
    async with cluster_with(4, plugins=[FailsLate]) as cluster:
        await cluster.create(composite_pod_group("top", min_group_count=1))
        for side in ("left", "right"):
            await cluster.create(composite_pod_group(side, parent="top", min_group_count=2))
        for name, side in (("a", "left"), ("b", "left"), ("c", "right"), ("d", "right")):
            await create_group(cluster, name, side)
        await trio.sleep(5)
        assert bound(cluster) == {"c", "d"}
