"""Assertions about clusters and outcomes: what they accept, and what their failures tell."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pytest
import trio

from trio_sched.errors import TrioSchedError
from trio_sched.plugin_api import Handle, NodeView, Pod, Status, Wait, hookimpl, unschedulable
from trio_sched.testing import Outcome, VirtualCluster, node, pod, run_virtual, schedule, virtual_cluster

Clock = Any


class Gatekeeper:
    """Keeps out pods, rejects nodes, makes pods wait, by their names."""

    name: ClassVar[str] = "Gatekeeper"

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        self.asked: list[str] = []

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.asked.append(pod.name)
        return unschedulable("not approved") if pod.name == "gated" else None

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
        return unschedulable("wrong team") if pod.name == "foreign" or node.name == "bad" else None

    @hookimpl
    def permit(self, pod: Pod) -> Wait | None:
        return Wait(1e6) if pod.name == "waiting" else None


def text_of(assertion: Callable[[], object]) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion()
    return str(caught.value)


async def test_a_failure_says_where_the_pod_is_and_why(autojump_clock: Clock) -> None:
    async with virtual_cluster(nodes=[node("good"), node("bad")], plugins=[Gatekeeper]) as cluster:
        for name in ("p", "foreign", "gated", "waiting"):
            await cluster.create(pod(name))
        await cluster.create(pod("other", scheduler_name="somebody-else"))
        assert await cluster.wait_scheduled("p", on=["good", "bad"]) == "good"
        await cluster.settle(quiet_seconds=100)

        assert cluster.assert_scheduled("default/p", on="good") == "good"
        assert "should be on node 'bad', but it is on node 'good'" in text_of(
            lambda: cluster.assert_scheduled("p", on="bad")
        )
        assert "should be pending, but it is on node 'good'" in text_of(lambda: cluster.assert_pending("p"))

        condition = cluster.assert_pending("foreign", reason="2 wrong team", plugin="Gatekeeper")
        assert condition is not None
        assert condition.reason == "Unschedulable"
        cluster.assert_pending("foreign", reason=re.compile(r"0/\d nodes"))
        text = text_of(lambda: cluster.assert_scheduled("foreign"))
        assert "pending, on no node (waits for an event after " in text
        assert "condition PodScheduled=False Unschedulable: 0/2 nodes are available: 2 wrong team" in text
        assert "rejected by: Gatekeeper" in text
        assert "Warning FailedScheduling: 0/2 nodes" in text
        assert "nodes: bad (0 pods), good (1 pods)" in text
        text = text_of(lambda: cluster.assert_pending("foreign", reason="no room"))
        assert "should be pending because of 'no room'" in text
        assert "should be rejected by plugin 'NodeName'" in text_of(
            lambda: cluster.assert_pending("foreign", plugin="NodeName")
        )

        cluster.assert_pending("gated", plugin="Gatekeeper", reason="not approved")
        cluster.assert_pending("gated", reason=re.compile("^not"))
        text = text_of(lambda: cluster.assert_pending("gated", reason="no room"))
        assert "settle" not in text  # no attempt would follow
        assert "kept out of the queue by Gatekeeper: not approved" in text_of(lambda: cluster.assert_scheduled("gated"))
        assert "(waits on permit)" in text_of(lambda: cluster.assert_scheduled("waiting"))
        assert "its schedulerName is 'somebody-else'; the profiles are default-scheduler" in text_of(
            lambda: cluster.assert_scheduled("other")
        )
        assert "there is no pod team/p; the pods are: default/foreign" in text_of(
            lambda: cluster.assert_scheduled("team/p")
        )

        assert cluster.assert_event("Scheduled", about="p", message="to good").involved_object.name == "p"
        text = text_of(lambda: cluster.assert_event("Scheduled", about=pod("foreign"), message="to bad"))
        assert "there is no event 'Scheduled' about 'foreign' with 'to bad'; events:\n" in text
        assert "there are no events" in text_of(lambda: cluster.assert_event("Scheduled", about="nobody"))


async def test_waiting_has_an_end(autojump_clock: Clock) -> None:
    async with virtual_cluster(nodes=[node("bad")], plugins=[Gatekeeper]) as cluster:
        await cluster.create(pod("p"))
        with pytest.raises(AssertionError, match="pod default/p should be on a node, but it is pending"):
            await cluster.wait_scheduled("p", within_seconds=30)


async def test_hours_of_waiting_take_no_time(autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    look = VirtualCluster.pod
    monkeypatch.setattr(VirtualCluster, "pod", lambda *args: looks.append(args[1]) or look(*args))
    async with virtual_cluster(nodes=[node("bad")], plugins=[Gatekeeper]) as cluster:
        await cluster.create(pod("p"))
        began = cluster.api.now()

        async def follow() -> None:
            await trio.sleep(6 * 3600 + 0.01)
            await cluster.create(node("good"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await cluster.wait_scheduled("p", on="good", within_seconds=7 * 3600)
        assert (cluster.api.now() - began).total_seconds() < 6 * 3600 + 1
        assert cluster.events("Scheduled", about="p")
        assert len(looks) < 6 * 3600 / 5


async def test_waiting_tells_that_the_scheduler_has_failed(autojump_clock: Clock) -> None:
    class Failing(Gatekeeper):
        name = "Failing"

        @hookimpl
        async def run(self) -> None:
            await trio.sleep(100)
            raise ValueError("out of order")

    async def wait() -> None:
        async with virtual_cluster(nodes=[node("bad")], plugins=[Failing()]) as cluster:
            await cluster.create(pod("p"))
            await cluster.wait_scheduled("p", within_seconds=3600)

    with pytest.raises(TrioSchedError, match="out of order"):
        await wait()


async def test_a_cluster_begins_when_the_test_says(autojump_clock: Clock) -> None:
    begins = datetime(2026, 3, 29, 0, 30, tzinfo=ZoneInfo("Europe/Berlin"))  # the night of the change to summer time
    async with virtual_cluster(nodes=1, begins=begins) as cluster:
        await trio.sleep(3 * 3600)
        assert cluster.api.now().astimezone(begins.tzinfo).hour == 4
    with pytest.raises(ValueError, match=r"begins=.* has no time zone; add tzinfo=UTC"):
        async with virtual_cluster(begins=datetime(2026, 3, 29)):
            pass


async def test_an_instance_serves_all_profiles_and_can_be_looked_at(autojump_clock: Clock) -> None:
    mine = Gatekeeper()
    config = """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles: [{schedulerName: default-scheduler}, {schedulerName: second}]
    """
    async with virtual_cluster(nodes=2, plugins=[mine], config=config) as cluster:
        await cluster.create(pod("first"))
        await cluster.create(pod("second", scheduler_name="second"))
        await cluster.settle()
        assert set(mine.asked) == {"first", "second"}
        assert cluster.plugin("Gatekeeper") is cluster.plugin("Gatekeeper", "second") is mine
        assert type(cluster.plugin("NodeName")).__name__ == "NodeName"
        with pytest.raises(LookupError, match="profile 'second' has no plugin 'Nobody'; it has"):
            cluster.plugin("Nobody", "second")
        with pytest.raises(LookupError, match="there is no profile 'third'; the profiles are default-sch"):
            cluster.plugin("NodeName", "third")


def test_outcomes_are_asserted_too() -> None:
    mine = Gatekeeper()
    outcome = schedule(pod("p"), on=[node("good"), node("bad")], plugins=[mine, "NodeResourcesFit"])
    assert mine.asked == ["p"]
    assert outcome.assert_scheduled(on=["good", "other"]) == "good"
    outcome.assert_rejected("bad", reason="team", plugin="Gatekeeper")
    outcome.assert_rejected("bad", reason=re.compile("^wrong"))
    text = text_of(lambda: outcome.assert_scheduled(on="bad"))
    assert text.startswith("the pod should be on node 'bad', but the pod is on 'good'\n")
    assert "bad: wrong team (Gatekeeper)" in text
    assert "good: passed, total score " in text
    assert "node 'good' should be rejected, but the pod is on 'good'" in text_of(
        lambda: outcome.assert_rejected("good")
    )
    nowhere = schedule(pod("foreign"), on=[node("good")], plugins=[mine])
    nowhere.assert_rejected(reason="0/1 nodes are available: 1 wrong team", plugin="Gatekeeper")
    assert "the pod should be rejected by NodeName" in text_of(lambda: nowhere.assert_rejected(plugin="NodeName"))
    assert "because of 'no room'" in text_of(lambda: nowhere.assert_rejected("good", reason="no room"))
    assert "the pod was not placed" in text_of(nowhere.assert_scheduled)
    assert Outcome(node_name="n").assert_scheduled() == "n"


def test_a_script_needs_no_test_framework() -> None:
    async def place(name: str) -> str:
        async with virtual_cluster(nodes=[node("n")]) as cluster:
            await cluster.create(pod(name))
            return await cluster.wait_scheduled(name)

    assert run_virtual(place, "p") == "n"
