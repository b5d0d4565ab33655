"""DefaultPreemption in a cluster: nominations, evictions, and pods that wait for them."""

from typing import Any

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.plugin_api import Pod, Status, hookimpl
from trio_sched.simulator import KubeletPace
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster

HOSTNAME = "kubernetes.io/hostname"


def low(name: str, **options: Any) -> Pod:
    return pod(name, **{"cpu": 2, "priority": 0, "grace_seconds": 30, **options})


def high(name: str, **options: Any) -> Pod:
    return pod(name, **{"cpu": 2, "priority": 100, **options})


class Counting(PluginBase):
    """Counts the attempts of each pod."""

    tried: list[tuple[str, float]] = []  # noqa: RUF012  # one for all instances, cleared by each test

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        self.tried.append((pod.name, trio.current_time()))
        return None


@pytest.fixture(autouse=True)
def _no_attempts() -> None:
    Counting.tried.clear()


def tries(name: str) -> list[float]:
    """When the pod was attempted; one attempt may call pre_filter twice."""
    return sorted({when for who, when in Counting.tried if who == name})


async def test_the_preemptor_is_gated_during_evictions(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=4)], plugins=[Counting]) as cluster:
        for name in ("a", "b"):
            await cluster.create(low(name))
        await cluster.settle()
        cluster.api.faults.set_latency(10.0, verb="delete", resource="pods")
        begin = trio.current_time()
        await cluster.create(high("grand", cpu=4))
        await trio.sleep(9)
        # Other events cannot requeue it before its victims are deleted.
        await cluster.create(node("too-small", cpu=1))
        await trio.sleep(9)
        assert len(tries("grand")) == 1
        assert cluster.pod("grand").nominated_node_name == "n"
        await cluster.settle()
        assert cluster.pod("grand").node_name == "n"
        assert tries("grand")[1] - begin > 20.0


async def test_after_a_failed_eviction_the_preemptor_is_retried_and_preempts_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=3)], plugins=[Counting]) as cluster:
        await cluster.create(low("modest"))
        await cluster.settle()
        cluster.api.faults.fail_next(verb="delete", resource="pods", code=403, reason="Forbidden")
        await cluster.create(high("grand"))
        await cluster.settle()
        assert cluster.placements() == {"default/grand": "n"}
        assert "Error occurred during async preemption" in caplog.text
        assert len(cluster.events("Preempted")) == 1


async def test_a_pod_does_not_preempt_again_while_its_victims_are_terminating(autojump_clock: MockClock) -> None:
    pace = KubeletPace(stop_seconds=25.0)
    nodes = [node("n", cpu=3), node("small", cpu=1)]
    async with virtual_cluster(nodes=nodes, kubelets=pace, plugins=[Counting]) as cluster:
        await cluster.create(low("modest"))
        await cluster.settle()
        await cluster.create(high("grand"))
        await trio.sleep(5)
        assert len(tries("grand")) == 1
        # A new node requeues the preemptor while its victim is still terminating, and so does the taint that it gets.
        await cluster.create(node("cordoned", cpu=3, unschedulable=True))
        await trio.sleep(10)
        assert len(tries("grand")) == 3
        assert len(cluster.events("Preempted")) == 1
        messages = [event.message for event in cluster.events("FailedScheduling", about="grand")]
        assert messages[-1] == (
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, "
            "preemption: not eligible due to a terminating pod on the nominated node."
        )
        assert cluster.pod("grand").nominated_node_name == "n"
        await cluster.settle()
        assert cluster.placements() == {"default/grand": "n"}
        assert len(cluster.events("Preempted")) == 1


async def test_without_the_gate_victims_are_evicted_within_the_cycle(autojump_clock: MockClock) -> None:
    async with virtual_cluster(
        nodes=[node("n", cpu=4)], plugins=[Counting], gates={"SchedulerAsyncPreemption": False}
    ) as cluster:
        for name in ("a", "b"):
            await cluster.create(low(name))
        await cluster.settle()
        cluster.api.faults.set_latency(10.0, verb="delete", resource="pods")
        await cluster.create(high("grand", cpu=4))
        await cluster.create(pod("bystander", cpu="100m"))
        await trio.sleep(9)
        assert tries("bystander") == []  # the loop waits for the evictions
        await cluster.settle()
        assert cluster.pod("grand").node_name == "n"
        assert len(cluster.events("Preempted")) == 2


async def test_without_the_gate_a_failed_eviction_is_in_the_condition_of_the_pod(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=3)], gates={"SchedulerAsyncPreemption": False}) as cluster:
        await cluster.create(low("modest"))
        await cluster.settle()
        cluster.api.faults.fail_next(verb="delete", resource="pods", code=403, reason="Forbidden", message="not you")
        await cluster.create(high("grand"))
        await trio.sleep(0.5)
        (event,) = cluster.events("FailedScheduling", about="grand")
        assert event.message.startswith("0/1 nodes are available: 1 Insufficient cpu. preemption: ")
        assert "not you" in event.message
        assert cluster.pod("grand").nominated_node_name == ""


async def test_a_pod_of_higher_priority_takes_the_nominated_node_and_clears_the_nomination(
    autojump_clock: MockClock,
) -> None:
    pace = KubeletPace(stop_seconds=25.0)
    async with virtual_cluster(nodes=[node("n", cpu=3)], kubelets=pace) as cluster:
        await cluster.create(low("modest"))
        await cluster.settle()
        await cluster.create(high("grand"))
        await trio.sleep(3)
        assert cluster.pod("grand").nominated_node_name == "n"
        await cluster.create(high("grander", priority=1000))
        await trio.sleep(3)
        assert cluster.pod("grander").nominated_node_name == "n"
        await cluster.settle()
        assert cluster.placements() == {"default/grand": "", "default/grander": "n"}
        assert cluster.pod("grand").nominated_node_name == ""
