from random import Random
from typing import Any, ClassVar

import pytest
from plugin_base import PluginBase
from pod_infos import pod_info

from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.nodes_to_find import MIN_FEASIBLE_NODES_TO_FIND
from trio_sched.engine.evaluation.scheduling_cycle import FeasibleNodes, SchedulingCycle
from trio_sched.objects.node import Node
from trio_sched.plugin_api import (
    Code,
    CycleState,
    Handle,
    NodeView,
    Pod,
    PreFilterResult,
    Status,
    hookimpl,
    pending,
    unschedulable,
)
from trio_sched.testing import make_profile, make_table, node, pod


class PerNode:
    """Answers about one node at a time, by its labels."""

    name: ClassVar[str] = "PerNode"

    def __init__(self, args: None, handle: Handle) -> None:
        self.asked: list[str] = []

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        self.asked.append(node.name)
        match node.labels.get("say"):
            case "no":
                return unschedulable("no")
            case "wait":
                return pending("wait")
            case "fail":
                raise LookupError("broken")
        return None


class Narrowing(PluginBase):
    @hookimpl
    def pre_filter(self, pod: Pod) -> PreFilterResult | Status | None:
        if pod.name == "refused":
            return unschedulable("not this one")
        return PreFilterResult(frozenset({"n1", "n2", "elsewhere"}))


def cycle(waiting: Pod, nodes: list[Node], *plugins: Any, percentage: int = 0, **more: Any) -> SchedulingCycle:
    profile = make_profile(plugins, percentage_of_nodes_to_score=percentage)
    return SchedulingCycle(
        profile, make_table(nodes, more.pop("running", ())), waiting, more.pop("nominated", {}), CycleState(), **more
    )


def decide(*args: Any, **more: Any) -> Decision:
    return cycle(*args, **more).decide(Random(0))


NODES = [node(f"n{i}") for i in range(4)]


def test_a_single_feasible_node_is_chosen_without_scoring() -> None:
    class Unranked(PluginBase):
        @hookimpl
        def score_node(self, node: NodeView) -> int:
            raise AssertionError("score_node must not be called")

    decision = decide(pod(cpu="8"), [node("small"), node("big", cpu="8")], "NodeResourcesFit", Unranked)
    assert isinstance(decision, ScheduleResult)
    assert (decision.node_name, decision.feasible_nodes, decision.evaluated_nodes) == ("big", 1, 2)


def test_an_empty_cluster_is_an_error_of_its_own() -> None:
    decision = decide(pod(), [], "NodeResourcesFit")
    assert isinstance(decision, SchedulingFailure)
    assert (decision.message, decision.diagnosis) == ("no nodes available to schedule pods", None)
    assert decision.reason == "Unschedulable"


def test_an_unschedulable_pod_names_the_rejecting_plugins() -> None:
    nodes = [node("a", labels={"say": "no"}), node("b", labels={"say": "wait"}), node("c", cpu="1")]
    decision = decide(pod(cpu="2"), nodes, "NodeResourcesFit", PerNode)
    assert isinstance(decision, SchedulingFailure)
    assert decision.message == "0/3 nodes are available: 1 Insufficient cpu, 1 no, 1 wait."
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"NodeResourcesFit", "PerNode"}
    assert decision.diagnosis.pending_plugins == {"PerNode"}
    assert (decision.reason, decision.status.code) == ("Unschedulable", Code.UNSCHEDULABLE)
    assert decision.state is not None


def test_a_plugin_that_fails_leaves_no_diagnosis() -> None:
    decision = decide(pod(), [node("a", labels={"say": "fail"}), node("b")], PerNode)
    assert isinstance(decision, SchedulingFailure)
    assert decision.message == 'running "PerNode" filter plugin: filter_node raised LookupError: broken'
    assert (decision.diagnosis, decision.reason) == (None, "SchedulerError")


def test_nodes_excluded_by_pre_filter_are_not_filtered() -> None:
    searching = cycle(pod(cpu="8"), NODES, Narrowing, "NodeResourcesFit")
    decision = searching.decide(Random(0))
    assert isinstance(decision, SchedulingFailure)
    assert decision.message == (
        "0/4 nodes are available: 2 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [Narrowing]."
    )
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"Narrowing", "NodeResourcesFit"}
    found = cycle(pod(), NODES, Narrowing, "NodeResourcesFit").find_feasible()
    assert isinstance(found, FeasibleNodes)
    assert (found.nodes.names, found.evaluated) == (["n1", "n2"], 2)
    assert found.statuses.get("n0").reasons == ("node(s) didn't satisfy plugin(s) [Narrowing]",)


def test_a_pod_rejected_by_pre_filter_has_one_status_for_all_nodes() -> None:
    decision = decide(pod("refused"), NODES, Narrowing)
    assert isinstance(decision, SchedulingFailure)
    assert decision.message == "0/4 nodes are available: not this one."
    assert decision.diagnosis is not None
    assert decision.diagnosis.statuses.get("n3") == unschedulable("not this one").by("Narrowing")
    assert decision.diagnosis.unschedulable_plugins == {"Narrowing"}


def test_the_nominated_node_is_chosen_if_it_fits_and_no_other_is_filtered() -> None:
    waiting = pod(cpu="3", nominated_node_name="n2")
    searching = cycle(waiting, NODES, "NodeResourcesFit")
    found = searching.find_feasible()
    assert isinstance(found, FeasibleNodes)
    assert (found.nodes.names, found.only_nominated, found.evaluated) == (["n2"], True, 1)
    full = [pod("r", cpu="2", node_name="n2")]
    elsewhere = cycle(waiting, NODES, "NodeResourcesFit", running=full).find_feasible()
    assert isinstance(elsewhere, FeasibleNodes)
    assert (elsewhere.nodes.names, elsewhere.only_nominated) == (["n0", "n1", "n3"], False)


@pytest.mark.parametrize("nominated_node", ["gone", "failing"])
def test_if_the_nominated_node_does_not_fit_all_nodes_are_filtered(nominated_node: str) -> None:
    nodes = [*NODES, node("failing", labels={"say": "fail"})] if nominated_node == "failing" else NODES
    outcome = cycle(pod(nominated_node_name=nominated_node), nodes, PerNode)
    if nominated_node == "gone":
        assert isinstance(outcome.find_feasible(), FeasibleNodes)
    else:
        decision = outcome.decide(Random(0))
        assert isinstance(decision, SchedulingFailure)
        assert decision.message == 'running "PerNode" filter plugin: filter_node raised LookupError: broken'


def test_the_nominated_node_must_fit_with_nominated_pods_of_higher_priority() -> None:
    rival = pod("rival", cpu="2", priority=9)
    nominated = {"n2": [pod_info(rival)]}
    found = cycle(
        pod(cpu="3", nominated_node_name="n2"), NODES, "NodeResourcesFit", nominated=nominated
    ).find_feasible()
    assert isinstance(found, FeasibleNodes)
    assert found.nodes.names == ["n0", "n1", "n3"]


def test_with_per_node_hooks_a_sample_of_the_nodes_is_filtered() -> None:
    many = [node(f"n{i}") for i in range(300)]
    found = cycle(pod(), many, PerNode, percentage=40, start=290).find_feasible()
    assert isinstance(found, FeasibleNodes)
    assert (len(found.nodes), found.evaluated) == (120, 120)
    assert {"n290", "n299", "n0", "n109"} <= set(found.nodes.names)
    assert "n110" not in found.nodes.names
    least = cycle(pod(), many, PerNode, percentage=1).find_feasible()
    assert isinstance(least, FeasibleNodes)
    assert len(least.nodes) == MIN_FEASIBLE_NODES_TO_FIND


@pytest.mark.parametrize(("plugins", "count"), [(("NodeResourcesFit",), 300), ((PerNode,), 50)])
def test_without_per_node_hooks_or_in_small_clusters_all_nodes_are_filtered(
    plugins: tuple[Any, ...], count: int
) -> None:
    found = cycle(pod(), [node(f"n{i}") for i in range(count)], *plugins, percentage=40).find_feasible()
    assert isinstance(found, FeasibleNodes)
    assert len(found.nodes) == count


def test_the_node_with_the_highest_score_is_chosen() -> None:
    nodes = [node("full"), node("empty"), node("half")]
    running = [pod("r", cpu="3", node_name="full"), pod("s", cpu="1", node_name="half")]
    decision = decide(pod(cpu="500m"), nodes, "NodeResourcesFit", running=running)
    assert isinstance(decision, ScheduleResult)
    assert (decision.node_name, decision.feasible_nodes) == ("empty", 3)
