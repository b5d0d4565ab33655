"""`/debug/scheduler/explain` of a running scheduler."""

import json
import math
from typing import Any

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.pods.attempt_history import MAX_ATTEMPTS, MAX_PODS, AttemptHistory
from trio_sched.daemon.serving.messages import Request, Response
from trio_sched.daemon.serving.pages.endpoints import build_routes
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.liveness import Liveness
from trio_sched.daemon.serving_settings import ServingSettings
from trio_sched.plugin_api import CycleState, Diagnosis, Pod, hookimpl
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster


async def ask(cluster: VirtualCluster, clock: MockClock, query: str, liveness: Liveness | None = None) -> Response:
    """The response; the clock stands still while the copy of the process works."""
    assembly = cluster.scheduler.assembly
    routes = build_routes(ServingSettings(), assembly, Liveness(assembly) if liveness is None else liveness)
    path = "/debug/scheduler/explain"
    clock.autojump_threshold = math.inf
    try:
        return await routes(Request(method="GET", path=path, target=f"{path}?{query}", query=query, body=b""))
    finally:
        clock.autojump_threshold = 0


async def explained(
    cluster: VirtualCluster, clock: MockClock, query: str, liveness: Liveness | None = None
) -> dict[str, Any]:
    response = await ask(cluster, clock, query, liveness)
    assert response.status == 200, response.body
    found: dict[str, Any] = json.loads(response.body)
    return found


async def test_a_pending_pod_is_explained_with_its_history(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2), node("b", cpu=1)]) as cluster:
        await cluster.create(pod("huge", cpu=4))
        await trio.sleep(5)
        await cluster.create(node("c", cpu=3))
        await trio.sleep(15)
        data = await explained(cluster, autojump_clock, "pod=default/huge&node=b&node=d")
        assert (data["cause"]["reasons"], data["remedies"][0]["title"]) == (["InsufficientCPU"], "request cpu ≤ 3")
        waiting = data["waiting"]
        assert (waiting["state"], waiting["attempts"]) == ("unschedulable", len(waiting["history"]))
        assert waiting["attempts"] >= 1
        assert "after UnschedulablePodAdd: 0/2 nodes are available: 2 Insufficient cpu." in waiting["history"][0]
        assert 0 < waiting["againInSeconds"] <= 300
        assert [(one["node"], one["exists"]) for one in data["onNodes"]] == [("b", True), ("d", False)]
        # The copy has changed requests and tried nodes; the scheduler has not.
        assert not cluster.pod("huge").node_name
        assert len(cluster.scheduler.assembly.scheduler.cache.table.names) == 3
        text = (await ask(cluster, autojump_clock, "pod=default/huge&output=text")).body.decode()
        assert text.splitlines()[1].startswith("Cause: cpu 4. 3 of 3 nodes pass everything else")


async def test_a_placed_pod_is_explained_by_scores(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2), node("b", cpu=2, unschedulable=True)]) as cluster:
        await cluster.create(pod("small", cpu=1))
        await trio.sleep(5)
        data = await explained(cluster, autojump_clock, "pod=default/small&node=b")
        assert (data["node"], data["cause"], [one["node"] for one in data["scores"]]) == ("a", None, ["a"])
        assert data["onNodes"][0]["clauses"][0]["title"] == "cordoned"


class Slow(PluginBase):
    """Takes half a second for each pod."""

    @hookimpl
    async def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> None:
        await trio.sleep(0.5)


async def test_of_a_pod_in_the_queue_it_is_said_how_many_come_first_and_when_its_turn_is(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=1)], plugins=[Slow]) as cluster:
        liveness = Liveness(cluster.scheduler.assembly)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(liveness.run)
            for number in range(40):
                await cluster.create(pod(f"p{number:02}", cpu=2))
            await trio.sleep(5.2)
            waiting = (await explained(cluster, autojump_clock, "pod=default/p39", liveness))["waiting"]
            assert waiting["state"] == "active"
            assert 25 <= waiting["ahead"] <= 35
            assert waiting["turnInSeconds"] == pytest.approx(waiting["ahead"] / 2, rel=0.15)
            text = (await ask(cluster, autojump_clock, "pod=default/p39&output=text", liveness)).body.decode()
            assert f"Queue: active, {waiting['ahead']} pods before it, its turn in about " in text
            nursery.cancel_scope.cancel()


async def test_without_others_that_wait_nothing_is_said_of_a_turn(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=1)]) as cluster:
        liveness = Liveness(cluster.scheduler.assembly)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(liveness.run)
            await cluster.create(pod("p", cpu=2))
            await trio.sleep(5)
            waiting = (await explained(cluster, autojump_clock, "pod=default/p", liveness))["waiting"]
            assert (waiting["ahead"], waiting["turnInSeconds"]) == (0, None)
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("age_seconds", "notes"), [(0.4, []), (3.4, ["as it was 3 s ago"])])
async def test_an_answer_of_a_while_ago_says_so(
    age_seconds: float, notes: list[str], autojump_clock: MockClock
) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2)]) as cluster:
        await cluster.create(pod("huge", cpu=4))
        await cluster.settle()
        page = ExplainPage(cluster.scheduler.assembly)
        found = page.explained(cluster.pod("huge"), (), None, age_seconds=age_seconds)
    assert found["notes"][0] == "LimitRanges are not known here; they may refuse a smaller request"
    assert all(text in note for text, note in zip(notes, found["notes"][1:], strict=True))


async def test_what_names_no_pod_is_refused(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        assert (await ask(cluster, autojump_clock, "pod=nothing")).status == 400
        assert (await ask(cluster, autojump_clock, "pod=default/nothing")).status == 404


def test_the_history_is_bounded_for_all_pods_together() -> None:
    history = AttemptHistory()
    for number in range(MAX_PODS + 100):
        history.add(f"uid-{number}", float(number), "PodAdd", "x" * 1000)
    assert len(history) == MAX_PODS
    assert history.of("uid-0") == []
    for number in range(MAX_ATTEMPTS + 3):
        history.add("uid-200", 10_000.0 + number, "NodeAdd", "no")
    attempts = history.of("uid-200")
    assert (len(attempts), attempts[-1].at, len(attempts[0].message)) == (MAX_ATTEMPTS, 10_007.0, 2)
    history.keep({"uid-200"})
    assert len(history) == 1
