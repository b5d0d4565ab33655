"""What kube-scheduler does otherwise with pod groups from one version to the next, on a whole cluster of each."""

from typing import Any

import pytest
import trio
from gangs import GATES_OF, Gangs, cluster_of, condition_of, member
from trio.testing import MockClock

from trio_sched.plugin_api import Pod, PodGroupInfo, Status, hookimpl, unschedulable
from trio_sched.testing import node, pod, pod_group, priority_class
from trio_sched.testing.cluster import virtual_cluster
from trio_sched.testing.cluster_objects import Refused

PLACED = "found a placement for podgroup, preempting"


@pytest.mark.parametrize(
    ("version", "message", "last"),
    [
        ("1.36", "", "0/1 nodes are available: 1 Insufficient cpu."),
        (
            "1.37",
            ", minCount (4) cannot be satisfied: 2 scheduled, 1 remaining",
            "pod group is unschedulable, minCount (4) cannot be satisfied: 2 scheduled, 1 remaining",
        ),
    ],
)
async def test_a_gang_that_lacks_room_for_one_pod_is_not_tried_with_the_others(
    version: str, message: str, last: str, autojump_clock: MockClock
) -> None:
    async with cluster_of(version, nodes=[node("a", cpu="2")]) as cluster:
        await Gangs(cluster).create("gang", 4)
        await cluster.settle()
        condition = condition_of(cluster, "gang")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"].startswith(f"pod group is unschedulable{message}")
        told = [event.message for event in cluster.events("FailedScheduling", about="gang-4")]
        assert told[-1].startswith(last)


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_the_pods_of_a_group_need_its_priority(version: str, running: bool, autojump_clock: MockClock) -> None:
    async with cluster_of(version, nodes=[node("a", cpu="4")]) as cluster:
        await cluster.create(pod_group("group", min_count=2, priority=7))
        other = {"node_name": "a"} if running else {}
        await cluster.create(member("important", "group", cpu="1", priority=8, **other))
        await cluster.create(member("usual", "group", cpu="1", priority=7))
        await trio.sleep(60)
        condition, is_bound = condition_of(cluster, "group"), bool(cluster.pod("usual").node_name)
        if version == "1.36":
            assert (condition["status"], is_bound) == ("True", True)
            return
        text = "all pods in a single pod group should have the same priority as the pod group's priority, got 8 and 7"
        assert (condition["status"], condition["reason"]) == ("False", "SchedulerError")
        assert condition["message"] == text
        assert not is_bound
        assert {event.message for event in cluster.events("FailedScheduling", about="usual")} == {text}


def of_class(name: str, priority_class_name: str) -> dict[str, Any]:
    """A pod of the group called ``group``."""
    resources = {"requests": {"cpu": "1"}}
    spec = {"schedulingGroup": {"podGroupName": "group"}, "priorityClassName": priority_class_name}
    containers = [{"name": "main", "image": "app", "resources": resources}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**spec, "containers": containers}}


@pytest.mark.parametrize("gate", [False, True])
async def test_a_group_whose_class_never_preempts_evicts_nobody(gate: bool, autojump_clock: MockClock) -> None:
    gates = {"PodGroupPreemptionPolicy": gate}
    async with cluster_of("1.37", nodes=[node("a", cpu="2")], gates=gates) as cluster:
        await cluster.create(priority_class("polite", 7, preemption_policy="Never"))
        await cluster.create(priority_class("usual", 7))
        await cluster.create(pod("low", cpu="2", node_name="a"))
        group: dict[str, Any] = {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "group"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, "priorityClassName": "polite"},
        }
        await cluster.create(group)
        await cluster.create(of_class("same", "polite"))
        await trio.sleep(30)
        never = "pod group preemption: not eligible due to preemptionPolicy=Never."
        assert condition_of(cluster, "group")["message"].endswith(never)
        await cluster.create(of_class("other", "usual"))
        await trio.sleep(60)
        as_group = " as the pod group's preemption policy" if gate else ""
        condition = condition_of(cluster, "group")
        assert condition["reason"] == "SchedulerError"
        assert f"should have the same preemption policy{as_group}, got " in condition["message"]
        assert [one.name for one in cluster.pods() if one.node_name] == ["low"]


class Asked:
    """Counts what it is asked to preempt for, and names nobody."""

    name = "Asked"

    def __init__(self, args: object, handle: object) -> None:
        self.pods: set[str] = set()
        self.groups: list[str] = []

    @hookimpl
    def post_filter(self, pod: Pod) -> None:
        self.pods.add(pod.name)

    @hookimpl
    def pod_group_post_filter(self, group: PodGroupInfo) -> Status:
        self.groups.append(group.name)
        return unschedulable("nothing to be done")


async def test_post_filters_are_called_for_pods_before_1_37_and_then_for_the_group(autojump_clock: MockClock) -> None:
    for version in ("1.36", "1.37"):
        asked = Asked(None, None)
        gates = {"1.36": {"WorkloadAwarePreemption": False}, "1.37": {}}[version]
        async with cluster_of(version, nodes=[node("a", cpu="1")], gates=gates, plugins=[asked]) as cluster:
            await Gangs(cluster).create("gang", 3)
            await trio.sleep(0.5)
            message = condition_of(cluster, "gang")["message"]
        if version == "1.36":
            assert (asked.pods, asked.groups) == ({"gang-2", "gang-3"}, [])
        else:
            assert (asked.pods, asked.groups) == (set(), ["gang"])
            assert message == (
                "pod group is unschedulable, minCount (3) cannot be satisfied: 1 scheduled, 1 remaining, "
                "pod group preemption: No preemption victims found for incoming preemptor, nothing to be done"
            )


TOPOLOGY = {"TopologyAwareWorkloadScheduling": True}
BOTH_PLACED = "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"


@pytest.mark.parametrize(
    ("version", "topology_key", "evicted", "message"),
    [
        # Placed anew for each pod that might stay, its pods share a node.
        ("1.36", "", 1, "pod group is unschedulable"),
        # Placed once, when all nodes are empty, they are spread.
        ("1.37", "", 2, f"pod group is unschedulable, {BOTH_PLACED}, pod group preemption: {PLACED} 2 victims"),
        (
            "1.36",
            "rack",
            0,
            "0/3 placements are available, first placement status: pod group is unschedulable, "
            "workload aware preemption is not supported for pod groups with scheduling constraints",
        ),
        (
            "1.37",
            "rack",
            1,
            "0/3 placements are available, first placement status: pod group is unschedulable, "
            f"pod group preemption: {PLACED} 1 victims",
        ),
    ],
)
async def test_how_groups_preempt(
    version: str, topology_key: str, evicted: int, message: str, autojump_clock: MockClock
) -> None:
    nodes = [node(f"n{number}", cpu="2", labels={"rack": f"r{number}"}) for number in range(3)]
    async with cluster_of(version, nodes=nodes, gates=TOPOLOGY if topology_key else {}) as cluster:
        for number in range(3):
            await cluster.create(pod(f"low-{number}", cpu="2", node_name=f"n{number}"))
        await trio.sleep(2)
        more = {"topology_key": topology_key} if topology_key else {}
        await cluster.create(pod_group("important", min_count=2, priority=10, **more))
        for number in range(2):
            await cluster.create(member(f"p{number}", "important", cpu="1", priority=10))
        await trio.sleep(0.5)
        assert condition_of(cluster, "important")["message"] == message
        nominated = {one.nominated_node_name for one in cluster.pods() if one.name.startswith("p")}
        await trio.sleep(20)
        assert len([one for one in cluster.pods() if one.name.startswith("low")]) == 3 - evicted
        placed = {one.node_name for one in cluster.pods() if one.name.startswith("p")}
        assert len(placed) == max(evicted, 1)
        assert ("" not in placed) == bool(evicted)
        if version == "1.37":
            assert placed == nominated


@pytest.mark.parametrize("emulated", ["1.36", "1.37"])
@pytest.mark.parametrize(("served", "name"), [("1.36", "PodGroupScheduled"), ("1.37", "PodGroupInitiallyScheduled")])
async def test_the_condition_is_called_as_in_the_version_of_the_api_and_is_final_once_true(
    emulated: str, served: str, name: str, autojump_clock: MockClock
) -> None:
    gates, nodes = GATES_OF[emulated], [node("a", cpu="2")]
    async with virtual_cluster(
        nodes=nodes, gates=gates, emulated_version=emulated, kubernetes_version=served
    ) as cluster:
        await Gangs(cluster).create("gang", 2)
        await trio.sleep(5)
        condition = condition_of(cluster, "gang")
        assert (condition["type"], condition["status"]) == (name, "True")
        await cluster.create(member("late", "gang", cpu="1"))
        await trio.sleep(60)
        assert not cluster.pod("late").node_name
        assert condition_of(cluster, "gang") == condition


SMALLER = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}


async def test_a_gang_is_tried_when_it_needs_fewer_pods(autojump_clock: MockClock) -> None:
    async with cluster_of("1.37", nodes=[node("a", cpu="4")]) as cluster:
        await cluster.create(pod_group("gang", min_count=3))
        for number in range(2):
            await cluster.create(member(f"p{number}", "gang", cpu="1"))
        await trio.sleep(5)
        assert set(cluster.placements().values()) == {""}
        await cluster.patch(pod_group("gang"), SMALLER)
        await trio.sleep(5)
        assert set(cluster.placements().values()) == {"a"}
    async with cluster_of("1.36", nodes=[node("a", cpu="4")]) as cluster:
        await cluster.create(pod_group("gang", min_count=3))
        with pytest.raises(Refused, match="field is immutable"):
            await cluster.patch(pod_group("gang"), SMALLER)


async def longest_pause(version: str, size: int) -> float:
    """How long a gang of *size* pods waits between two of its attempts once it has failed often."""
    async with cluster_of(version, nodes=[node("a", cpu="1")]) as cluster:
        await Gangs(cluster).create("gang", size)
        queue = cluster.scheduler.assembly.scheduler.queue
        pauses = set()
        for _ in range(300):
            await trio.sleep(1)
            pauses |= {info.sort_time - info.timestamp for info in queue.backing_off.pod_error_backoff_q}
        return max(pauses)


@pytest.mark.parametrize(("version", "seconds"), [("1.36", 10), ("1.37", 40)])
async def test_a_large_gang_backs_off_for_longer(version: str, seconds: int, autojump_clock: MockClock) -> None:
    assert round(await longest_pause(version, 16)) == seconds


async def test_pods_of_a_group_that_is_not_there_are_incomplete_and_the_queue_says_so(
    autojump_clock: MockClock,
) -> None:
    config = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {disabled: [{name: GangScheduling}]}}}]
"""
    async with cluster_of("1.37", nodes=[node("a", cpu="4")], config=config) as cluster:
        queue = cluster.scheduler.assembly.scheduler.queue
        await cluster.create(member("p", "late", cpu="1"))
        await trio.sleep(5)
        assert queue.sizes()["incomplete"] == 1
        await cluster.create(pod_group("late"))
        await trio.sleep(5)
        assert cluster.pod("p").node_name == "a"
        assert set(queue.sizes().values()) == {0}
        assert not queue.groups


async def test_a_permit_that_always_rejects_does_not_keep_the_scheduler_busy(autojump_clock: MockClock) -> None:
    class Rejects:
        name = "Rejects"

        def __init__(self, args: object, handle: object) -> None:
            self.calls = 0

        @hookimpl
        def permit(self, pod: Pod) -> Status:
            self.calls += 1
            return unschedulable("never")

    rejects = Rejects(None, None)
    async with cluster_of("1.37", nodes=[node("a", cpu="4")], plugins=[rejects]) as cluster:
        await Gangs(cluster).create("gang", 2)
        await trio.sleep(100)
        assert set(cluster.placements().values()) == {""}
    assert rejects.calls < 50
