"""What kube-scheduler does otherwise with pod groups from one version to the next, on a whole cluster of each."""

import pytest
from gangs import Gangs, cluster_of, condition_of
from trio.testing import MockClock

from trio_sched.testing import node


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
