"""A shadow beside a scheduler, and beside a test that decides in place of one."""

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, ClassVar

import msgspec
import pytest
import trio
from plugin_base import PluginBase
from shadows import Shadow, start_shadow
from trio.testing import MockClock

from contrib.shadow.workload import IMPORTANT, mixed_node, mixed_pod
from trio_sched.daemon.serving.messages import Request
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.scheduler_pages import SchedulerPages
from trio_sched.engine.shadow.judgement import DecisionKind, JudgementClass
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import hookimpl
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
FEW_CANDIDATES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 1, minCandidateNodesAbsolute: 1}
"""
COMPARED_SECONDS = 3.0
"""Longer than changes are held back."""


class Writer(PluginBase):
    """Writes wherever it can."""

    writes: ClassVar[dict[str, tuple[str, ...]]] = {"ConfigMap": ("create",), "Pod": ("delete",)}
    problems: ClassVar[list[str]] = []

    @hookimpl
    async def run(self) -> None:
        handle = self.handle
        event = pod("p")
        handle.record_event(event, "Normal", "Seen", "Looking", "it is there")
        for write in (
            handle.create("ConfigMap", {"metadata": {"name": "c"}}, namespace="default"),
            handle.delete("Pod", "p", namespace="default"),
            handle.evict(event),
        ):
            try:
                await write
            except Exception as problem:
                self.problems.append(str(problem))
        await trio.sleep_forever()


@asynccontextmanager
async def mixed_run(cluster: VirtualCluster, pods: int) -> AsyncGenerator[None, None]:
    await cluster.create(IMPORTANT)
    yield
    dice = Random(0)
    for number in range(pods):
        await cluster.create(mixed_pod(number, dice))
        await trio.sleep(0.1 * dice.random() if dice.random() < 0.3 else 0)
    await cluster.settle()


async def test_beside_the_same_scheduler_nothing_differs_and_beside_another_much_does(
    autojump_clock: MockClock,
) -> None:
    nodes = [mixed_node(i) for i in range(12)]
    async with virtual_cluster(nodes=nodes, bind_latency_seconds=0.05) as cluster:
        async with mixed_run(cluster, 200):
            shadow, other = await start_shadow(cluster), await start_shadow(cluster, PACKED)
        await shadow.process.stop()
        await other.process.stop()
    counts = shadow.judgements
    assert counts.count(JudgementClass) >= 200
    assert not counts.count([JudgementClass.DIFFERS, JudgementClass.UNJUDGED, JudgementClass.SAMPLING])
    assert all(sum(counts.by_class(kind).values()) for kind in DecisionKind)
    assert other.judgements.count([JudgementClass.DIFFERS]) > 0.3 * other.judgements.count(JudgementClass)


async def test_a_shadow_writes_nothing_and_its_plugins_are_refused(autojump_clock: MockClock) -> None:
    Writer.problems.clear()
    async with virtual_cluster(nodes=[mixed_node(i) for i in range(6)]) as cluster:
        async with mixed_run(cluster, 60):
            shadow = await start_shadow(cluster, plugins=[Writer])
        bound = sum(bool(one.node_name) for one in cluster.pods())
        events = cluster.events()
        await shadow.process.stop()
    assert bound > 40
    assert [request for request in shadow.caller.sent if request[0] != "GET"] == []
    assert len(Writer.problems) == 3
    assert all("a shadow" in problem for problem in Writer.problems)
    assert not [event for event in events if event.reason == "Seen"]
    assert sum(shadow.classes().values()) >= bound


@asynccontextmanager
async def stage(config: str | None = None, /, **nodes: int) -> AsyncGenerator[tuple[VirtualCluster, Shadow], None]:
    """Nodes with so much CPU, and a shadow of a scheduler for which the test stands."""
    made = [node(name.replace("_", "-"), cpu=cpu) for name, cpu in nodes.items()]
    async with virtual_cluster(nodes=made, scheduler=False, kubelets=False) as cluster:
        yield cluster, await start_shadow(cluster, config)


async def bind(cluster: VirtualCluster, name: str, node_name: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": node_name},
    }
    path = f"/api/v1/namespaces/default/pods/{name}/binding"
    response = await cluster.api.handle("POST", path, body=msgspec.json.encode(body))
    assert response.status == 201


async def refuse(cluster: VirtualCluster, made: Pod, node_name: str = "", reason: str = "Unschedulable") -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": "0/2 nodes are available"}
    status = {"conditions": [condition], **({"nominatedNodeName": node_name} if node_name else {})}
    await cluster.patch(made, {"status": status}, subresource="status")


async def test_the_only_best_node_is_the_same_and_one_of_several_is_a_tie(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=2) as (cluster, shadow):
        await cluster.create(pod("p", cpu=1))
        await bind(cluster, "p", "large")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"same": 1}
        await cluster.create(node("twin", cpu=8))
        await cluster.create(node("other-twin", cpu=8))
        await cluster.create(pod("q", cpu=1))
        await bind(cluster, "q", "twin")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"same": 1, "tie": 1}
        assert set(shadow.last.own_nodes) == {"twin", "other-twin"}


async def test_another_node_differs_with_the_plugin_that_prefers_the_best_and_both_scores(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage(large=8, small=2) as (cluster, shadow):
        await cluster.create(pod("p", cpu=1))
        await bind(cluster, "p", "small")
        with caplog.at_level(logging.WARNING, logger="trio_sched.daemon.shadow"):
            await trio.sleep(COMPARED_SECONDS)
        found = shadow.last
        assert found.judged is JudgementClass.DIFFERS
        assert (found.decision.node_name, found.own_nodes, found.plugin) == ("small", ("large",), "NodeResourcesFit")
        assert found.total is not None
        assert found.own_total is not None
        assert found.total < found.own_total
        assert sum(found.scores.values()) == found.total
        (record,) = [one for one in caplog.records if "differs" in one.getMessage()]
        assert (record.__dict__["pod"], record.__dict__["shadowScore"]) == ("default/p", found.own_total)


async def test_a_node_on_which_the_pod_does_not_fit_differs_with_the_plugin_that_rejects_it(
    autojump_clock: MockClock,
) -> None:
    async with stage(large=8, small=2) as (cluster, shadow):
        await cluster.create(pod("p", cpu=4))
        await bind(cluster, "p", "small")
        await trio.sleep(COMPARED_SECONDS)
        assert (shadow.last.judged, shadow.last.plugin) == (JudgementClass.DIFFERS, "NodeResourcesFit")
        assert shadow.last.detail == "the pod does not fit on small: Insufficient cpu"


async def test_a_binding_that_is_shown_later_than_it_was_decided_is_named(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=6) as (cluster, shadow):
        await cluster.create(pod("first", cpu=4))
        await cluster.create(pod("second", cpu=1))
        await bind(cluster, "second", "small")  # best once the first one is on the large node
        await trio.sleep(0.25)
        await bind(cluster, "first", "large")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"same": 1, "stale": 1}
        assert shadow.last.crossed == ("Pod default/first is bound to large, 0.250 s after",)
        assert shadow.last.stale_views == ("shadow",)


async def test_what_happens_after_a_decision_is_no_excuse_for_it(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=6) as (cluster, shadow):
        await cluster.create(pod("second", cpu=1))
        await bind(cluster, "second", "small")
        await cluster.create(pod("third", cpu=4))  # was not there to be decided on before
        await bind(cluster, "third", "large")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"same": 1, "differs": 1}


async def test_a_deletion_that_the_other_had_not_seen_is_named_and_one_that_came_later_is_none(
    autojump_clock: MockClock,
) -> None:
    async with stage(large=8, small=6) as (cluster, shadow):
        running = await cluster.create(pod("running", cpu=4, node_name="large"))
        await cluster.create(pod("p", cpu=1))
        await cluster.delete(running, grace_seconds=0)
        await trio.sleep(0.1)
        await bind(cluster, "p", "small")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"stale": 1}
        assert shadow.last.crossed == ("Pod default/running is gone, 0.100 s before",)
        assert shadow.last.stale_views == ("other",)
        resting = await cluster.create(pod("resting", cpu=4, node_name="small"))
        await cluster.create(pod("q", cpu=1))
        await trio.sleep(COMPARED_SECONDS)
        await bind(cluster, "q", "small")
        await cluster.delete(resting, grace_seconds=0)
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"stale": 1, "differs": 1}


async def test_a_change_of_a_node_that_the_other_had_not_seen_is_named(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=6) as (cluster, shadow):
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(COMPARED_SECONDS)
        await cluster.patch(node("large"), {"spec": {"unschedulable": True}})
        await trio.sleep(0.1)
        await bind(cluster, "p", "large")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"stale": 1}
        assert set(shadow.last.crossed) == {"Node large has changed, 0.100 s before"}


async def test_refusals_are_compared(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=2) as (cluster, shadow):
        huge = await cluster.create(pod("huge", cpu=20))
        await refuse(cluster, huge)
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"same": 1}
        fitting = await cluster.create(pod("fitting", cpu=1))
        await refuse(cluster, fitting)
        await trio.sleep(COMPARED_SECONDS)
        assert (shadow.last.judged, shadow.last.detail) == (JudgementClass.DIFFERS, "the pod fits")
        assert shadow.last.decision.message == "0/2 nodes are available"
        gated = await cluster.create(pod("gated", cpu=1))
        await refuse(cluster, gated, reason="SchedulingGated")
        await trio.sleep(COMPARED_SECONDS)
        assert sum(shadow.classes().values()) == 2


async def test_the_node_of_a_preemption_is_compared(autojump_clock: MockClock) -> None:
    async with stage(a=2, b=2) as (cluster, shadow):
        await cluster.create(pod("low", cpu=2, node_name="a", priority=1))
        await cluster.create(pod("middle", cpu=2, node_name="b", priority=5))
        high = await cluster.create(pod("high", cpu=2, priority=10))
        await refuse(cluster, high, node_name="a")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"same": 1}
        higher = await cluster.create(pod("higher", cpu=2, priority=20))
        await refuse(cluster, higher, node_name="b")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.last.decision.kind is DecisionKind.PREEMPTION
        assert (shadow.last.judged, shadow.last.own_nodes) == (JudgementClass.DIFFERS, ("a",))


async def test_among_victims_that_have_not_started_the_choice_is_left_to_chance(autojump_clock: MockClock) -> None:
    async with stage(a=2, b=2) as (cluster, shadow):
        for name in ("one", "two"):
            await cluster.create(pod(name, cpu=1, node_name="a", priority=1))
        await cluster.create(pod("large", cpu=2, node_name="b", priority=1))
        high = await cluster.create(pod("high", cpu=2, priority=10))
        await refuse(cluster, high, node_name="a")
        await trio.sleep(COMPARED_SECONDS)
        assert (shadow.last.judged, shadow.last.own_nodes) == (JudgementClass.TIE, ("b",))
        assert "have not started" in shadow.last.detail


async def test_a_victim_whose_start_the_other_had_not_seen_is_named(autojump_clock: MockClock) -> None:
    async with stage(a=2, b=2, c=2) as (cluster, shadow):
        for name in "abc":
            await cluster.create(pod(f"on-{name}", cpu=2, node_name=name, priority=1))
        await cluster.patch(pod("on-b"), {"status": {"startTime": "2026-01-02T00:00:00Z"}}, subresource="status")
        high = await cluster.create(pod("high", cpu=2, priority=10))
        await trio.sleep(COMPARED_SECONDS)
        await cluster.patch(pod("on-a"), {"status": {"startTime": "2026-01-01T00:00:00Z"}}, subresource="status")
        await cluster.delete(pod("on-c"), grace_seconds=0)
        await trio.sleep(0.1)
        await refuse(cluster, high, node_name="a")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"stale": 1}, shadow.last
        assert shadow.last.crossed == (
            "Pod default/on-c is gone, 0.100 s before",
            "Pod default/on-a has started, 0.100 s before",
        )


async def test_what_the_other_had_not_seen_and_the_nodes_that_it_had_not_tried_explain_together(
    autojump_clock: MockClock,
) -> None:
    async with stage(FEW_CANDIDATES, a=2, b=2, c=2) as (cluster, shadow):
        for number, name in enumerate("abc", 1):
            await cluster.create(pod(f"on-{name}", cpu=2, node_name=name, priority=1))
            started = {"startTime": f"2026-01-0{number}T00:00:00Z"}
            await cluster.patch(pod(f"on-{name}"), {"status": started}, subresource="status")
        high = await cluster.create(pod("high", cpu=2, priority=10))
        await trio.sleep(COMPARED_SECONDS)
        await cluster.delete(pod("on-c"), grace_seconds=0)
        await refuse(cluster, high, node_name="a")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"stale": 1}, shadow.last
        assert shadow.last.crossed == ("Pod default/on-c is gone, 0.000 s before",)


async def test_a_pod_that_should_preempt_others_and_is_only_refused_differs(autojump_clock: MockClock) -> None:
    async with stage(a=2) as (cluster, shadow):
        await cluster.create(pod("low", cpu=2, node_name="a", priority=1))
        high = await cluster.create(pod("high", cpu=2, priority=10))
        await refuse(cluster, high)
        await trio.sleep(COMPARED_SECONDS)
        assert (shadow.last.judged, shadow.last.own_nodes) == (JudgementClass.DIFFERS, ("a",))


async def test_a_pod_that_waits_on_its_node_is_compared_once_and_counts_there(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=6) as (cluster, shadow):
        slow = await cluster.create(pod("slow", cpu=4))
        await cluster.patch(slow, {"status": {"nominatedNodeName": "large"}}, subresource="status")
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(10)
        await bind(cluster, "p", "small")
        await trio.sleep(10)
        await bind(cluster, "slow", "large")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"same": 2}
        assert shadow.process.assembly is not None
        assert shadow.process.assembly.scheduler.cache.assumed_count == 0


async def test_a_pod_that_goes_elsewhere_than_it_was_expected_frees_its_place(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=6) as (cluster, shadow):
        slow = await cluster.create(pod("slow", cpu=4))
        await cluster.patch(slow, {"status": {"nominatedNodeName": "large"}}, subresource="status")
        await trio.sleep(10)
        await cluster.patch(slow, {"status": {"nominatedNodeName": None}}, subresource="status")
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(10)
        await bind(cluster, "p", "large")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {"same": 2}


async def test_in_large_clusters_a_worse_node_may_be_due_to_sampling(autojump_clock: MockClock) -> None:
    async with stage(**{f"n{i}": 8 for i in range(150)}, best=16) as (cluster, shadow):
        await cluster.create(pod("p", cpu=1))
        await bind(cluster, "p", "n1")
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.last.judged is JudgementClass.SAMPLING
        assert shadow.last.detail == "1 of 151 nodes that fit have a higher score"


async def test_after_an_interrupted_watch_decisions_are_not_compared(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=2) as (cluster, shadow):
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(COMPARED_SECONDS)
        cluster.api.restart()
        await bind(cluster, "p", "small")
        cluster.api.compact()
        await trio.sleep(120)
        assert shadow.classes() == {"unjudged": 1}


async def test_pods_of_others_are_left_alone(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=2) as (cluster, shadow):
        await cluster.create(pod("p", cpu=1, scheduler_name="somebody"))
        await bind(cluster, "p", "small")
        await cluster.create(pod("static", cpu=1, node_name="small"))
        await trio.sleep(COMPARED_SECONDS)
        assert shadow.classes() == {}


async def test_the_page_and_the_metric_show_what_was_compared(autojump_clock: MockClock) -> None:
    async with stage(large=8, small=2) as (cluster, shadow):
        await cluster.create(pod("p", cpu=1))
        await bind(cluster, "p", "small")
        await trio.sleep(COMPARED_SECONDS)
        assembly = shadow.process.assembly
        assert assembly is not None
        path = "/debug/scheduler/shadow"
        pages = SchedulerPages(assembly, ExplainPage(assembly))
        response = await pages.handlers()[path](Request(method="GET", path=path, target=path))
        page: dict[str, Any] = json.loads(response.body)
        assert (page["decisions"], page["classes"]["differs"]) == (1, 1)
        assert page["notTheSame"]["items"][0]["pod"] == "default/p"
        _type, pieces = await assembly.metrics.pages.metrics.render("")
        series = 'trio_sched_shadow_decisions_total{class="differs",decision="binding",profile="default-scheduler"} 1'
        assert series in b"".join(pieces).decode()
