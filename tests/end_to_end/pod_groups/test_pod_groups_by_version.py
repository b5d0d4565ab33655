"""What kube-scheduler does otherwise with pod groups from one version to the next, on a whole cluster of each."""

import pytest
import trio
from gangs import Gangs, cluster_of, condition_of, member
from trio.testing import MockClock

from trio_sched.testing import node, pod_group


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
