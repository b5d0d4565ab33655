from random import Random
from typing import Any

from plugin_base import PluginBase

from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.extender_cycle import (
    ExtenderResult,
    NodesForExtenders,
    find_feasible_nodes,
    select_host_among,
)
from trio_sched.engine.evaluation.scheduling_cycle import SchedulingCycle
from trio_sched.plugin_api import CycleState, NodeView, Pod, PreFilterResult, Status, hookimpl, unschedulable
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing import make_profile, make_table, node, pod


class Labelled(PluginBase):
    """Rejects nodes with the label ``no``, and narrows to the nodes that the pod's label names."""

    @hookimpl
    def pre_filter(self, pod: Pod) -> PreFilterResult | None:
        wanted = pod.labels.get("only")
        return PreFilterResult(frozenset(wanted.split("."))) if wanted else None

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return unschedulable("no") if "no" in node.labels else None


def cycle(table: NodeTable, waiting: Pod | None = None, **more: Any) -> SchedulingCycle:
    plugins = more.pop("plugins", [Labelled])
    profile = make_profile(plugins, percentage_of_nodes_to_score=more.pop("percentage", 0))
    return SchedulingCycle(profile, table, waiting or pod(), {}, CycleState(), **more)


def feasible(made: SchedulingCycle, **more: Any) -> NodesForExtenders:
    found = find_feasible_nodes(made, **more)
    assert isinstance(found, NodesForExtenders)
    return found


def result(*names: str, scores: dict[str, int] | None = None, **statuses: Status) -> ExtenderResult:
    return ExtenderResult(names=names, statuses=statuses, scores=scores or {})


NODES = [node("a"), node("b"), node("c"), node("bad", labels={"no": ""})]


def test_the_highest_score_among_the_remaining_nodes_wins() -> None:
    table = make_table(NODES)
    found = feasible(cycle(table))
    assert list(found.nodes) == ["a", "b", "c"]
    decision = select_host_among(cycle(table), found, result("a", "c", scores={"b": 50, "c": 1}), Random(0))
    assert isinstance(decision, ScheduleResult)
    assert (decision.node_name, decision.feasible_nodes, decision.evaluated_nodes) == ("c", 2, 4)


def test_ties_are_broken_at_random() -> None:
    table, rng = make_table(NODES), Random(0)
    drawn = {
        select_host_among(cycle(table), feasible(cycle(table)), result("a", "b"), rng).node_name  # type: ignore[union-attr]
        for _ in range(20)
    }
    assert drawn == {"a", "b"}


def test_if_no_node_is_left_all_statuses_are_reported() -> None:
    table = make_table(NODES)
    said = result(a=unschedulable("full"), bad=unschedulable("worse"))
    decision = select_host_among(cycle(table), feasible(cycle(table)), said, Random(0))
    assert isinstance(decision, SchedulingFailure)
    assert decision.message == "0/4 nodes are available: 1 full, 1 worse."
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"Labelled", "Extender"}
    assert decision.state is not None


def test_filters_run_again_on_the_nodes_as_they_are_after_the_call() -> None:
    table = make_table(NODES)
    found = feasible(cycle(table))
    table.remove_node("a")
    table.update_node(node("b", labels={"no": ""}))
    decision = select_host_among(cycle(table), found, result("a", "b", c=unschedulable("full")), Random(0))
    assert isinstance(decision, SchedulingFailure)
    assert decision.message == "0/4 nodes are available: 1 full, 2 no."
    decision = select_host_among(cycle(table), found, result("a", "b", "c"), Random(0))
    assert isinstance(decision, ScheduleResult)
    assert decision.node_name == "c"


def test_extenders_without_rejections_are_not_among_the_rejectors() -> None:
    table = make_table([node("a")])
    found = feasible(cycle(table))
    table.update_node(node("a", labels={"no": ""}))
    decision = select_host_among(cycle(table), found, result("a"), Random(0))
    assert isinstance(decision, SchedulingFailure)
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"Labelled"}


def test_nodes_excluded_by_pre_filters_stay_excluded() -> None:
    table = make_table(NODES)
    found = feasible(cycle(table, pod(labels={"only": "a.b"})))
    assert list(found.nodes) == ["a", "b"]
    decision = select_host_among(cycle(table, pod(labels={"only": "b"})), found, result("a", "b"), Random(0))
    assert isinstance(decision, ScheduleResult)
    assert decision.node_name == "b"
    gone = select_host_among(cycle(table, pod(labels={"only": "a.b"})), found, result(a=unschedulable("x")), Random(0))
    assert isinstance(gone, SchedulingFailure)
    assert gone.message == "0/4 nodes are available: 1 x, 3 node(s) didn't satisfy plugin(s) [Labelled]."


def test_the_nominated_node_is_listed_alone_despite_pre_filters() -> None:
    table, waiting = make_table(NODES), pod(nominated_node_name="c", labels={"only": "a"})
    found = feasible(cycle(table, waiting))
    assert (list(found.nodes), found.only_nominated) == (["c"], True)
    decision = select_host_among(cycle(table, waiting), found, result("c"), Random(0))
    assert isinstance(decision, ScheduleResult)
    assert decision.node_name == "c"
    assert list(feasible(cycle(table, waiting), nominated_first=False).nodes) == ["a"]


def test_a_failing_plugin_ends_either_half_of_the_cycle() -> None:
    class Broken(PluginBase):
        @hookimpl
        def filter_node(self, node: NodeView) -> None:
            if "broken" in node.labels:
                raise LookupError("lost")

    table = make_table([node("a")])
    found = feasible(cycle(table, plugins=[Broken]))
    table.update_node(node("a", labels={"broken": ""}))
    text = 'running "Broken" filter plugin: filter_node raised LookupError: lost'
    for outcome in (
        select_host_among(cycle(table, plugins=[Broken]), found, result("a"), Random(0)),
        find_feasible_nodes(cycle(table, plugins=[Broken])),
    ):
        assert isinstance(outcome, SchedulingFailure)
        assert (outcome.message, outcome.reason) == (text, "SchedulerError")


def test_without_feasible_nodes_the_outcome_is_final() -> None:
    for nodes, text in (([], "no nodes available"), ([NODES[3]], "0/1 nodes are available: 1 no.")):
        found = find_feasible_nodes(cycle(make_table(nodes)))
        assert isinstance(found, SchedulingFailure)
        assert found.message.startswith(text)


def test_searches_start_at_the_given_node_and_wrap_around() -> None:
    table = make_table([node(f"n{i:03}", labels={"no": ""} if i % 2 else {}) for i in range(400)])
    first = feasible(cycle(table))
    assert (len(first.nodes), first.evaluated, next(iter(first.nodes))) == (188, 375, "n000")
    second = feasible(cycle(table, start=first.evaluated))
    assert (next(iter(second.nodes)), len(second.nodes), "n000" in second.nodes) == ("n376", 188, True)
    assert (second.evaluated, list(second.nodes)[-1]) == (376, "n350")
