from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from plugin_base import PluginBase
from pod_infos import pod_info

from trio_sched.engine.cache import Cache
from trio_sched.engine.evaluation.pod_explanation import BEST, PodExplanation, explain_pod
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.plugin_api import (
    SKIP,
    NodeColumns,
    NodeView,
    Pod,
    PreFilterResult,
    Status,
    Verdicts,
    hookimpl,
    unresolvable,
    unschedulable,
)
from trio_sched.snapshot.arrays import Int64Array
from trio_sched.testing import make_profile, make_table, node, pod

NODES = [node(f"n{i}", cpu="4") for i in range(4)]


class RefusesEven(PluginBase):
    asked: ClassVar[list[str]] = []

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        self.asked.append(node.name)
        return unschedulable("is even") if int(node.name[1:]) % 2 == 0 else None


class RefusesAll(PluginBase):
    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(np.zeros(len(nodes), dtype=np.bool_), unresolvable("nothing is right"))


class Breaks(PluginBase):
    @hookimpl
    def filter(self) -> Verdicts:
        raise LookupError("broken")


class Skips(PluginBase):
    @hookimpl
    def pre_filter(self) -> Status:
        return SKIP

    @hookimpl
    def filter(self) -> Verdicts:
        raise AssertionError("it was skipped")


class Pins(PluginBase):
    @hookimpl
    def pre_filter(self) -> PreFilterResult:
        return PreFilterResult(frozenset({"n1"}))


class Rejects(PluginBase):
    @hookimpl
    def pre_filter(self) -> Status:
        return unresolvable("not today")


class Gates(PluginBase):
    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable("not yet")


class ByNumber(PluginBase):
    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        return np.array([int(name[1:]) for name in nodes.names], dtype=np.int64)


class ScoreBreaks(PluginBase):
    @hookimpl
    def score(self) -> Int64Array:
        raise LookupError("no score")


def explained(*plugins: Any, nodes: Any = NODES, nominated: Any = None, **options: Any) -> PodExplanation:
    return explain_pod(make_profile(plugins), make_table(nodes), pod(cpu="1"), nominated or {}, **options)


def rejected(explanation: PodExplanation) -> dict[str, dict[str, tuple[str, ...]]]:
    """Plugin → message → nodes."""
    return {one.plugin: {group.status.message: group.nodes for group in one.rejections} for one in explanation.verdicts}


@pytest.mark.parametrize("order", [(RefusesAll, RefusesEven), (RefusesEven, RefusesAll)])
def test_filters_are_asked_about_nodes_that_others_rejected(order: tuple[type, ...]) -> None:
    RefusesEven.asked.clear()
    found = explained(*order)
    assert RefusesEven.asked == ["n0", "n1", "n2", "n3"]
    assert rejected(found) == {
        "RefusesAll": {"nothing is right": ("n0", "n1", "n2", "n3")},
        "RefusesEven": {"is even": ("n0", "n2")},
    }
    assert {one.plugin: one.passed for one in found.verdicts} == {"RefusesAll": 0, "RefusesEven": 2}
    assert found.feasible == 0


def test_a_filter_that_fails_is_told_and_the_others_are_asked() -> None:
    found = explained(Breaks, RefusesEven)
    broken, even = found.verdicts
    assert "LookupError: broken" in broken.error
    assert even.passed == 2
    assert (found.feasible, found.best) == (0, ())


def test_a_plugin_that_skips_the_pod_is_not_called() -> None:
    (verdict,) = explained(Skips).verdicts
    assert (verdict.is_skipped, verdict.passed) == (True, 4)


def test_nodes_that_a_pre_filter_left_out_are_named() -> None:
    found = explained(Pins, RefusesEven)
    assert (found.narrowed_by, found.left_out) == (("Pins",), ("n0", "n2", "n3"))
    assert [score.node for score in found.best] == ["n1"]


@pytest.mark.parametrize(("plugin", "point"), [(Gates, "PreEnqueue"), (Rejects, "PreFilter")])
def test_a_rejection_before_the_filters_is_the_end(plugin: type, point: str) -> None:
    found = explained(plugin, RefusesEven)
    assert found.rejected is not None
    assert (found.rejected.plugin, found.rejected_at, found.verdicts) == (plugin.__name__, point, [])


def test_the_best_nodes_and_those_that_were_asked_about_have_scores() -> None:
    found = explained(ByNumber, nodes=[node(f"n{i}") for i in range(50)], scores_of=["n3", "nowhere"])
    assert [score.node for score in found.best] == [f"n{i}" for i in range(49, 49 - BEST, -1)]
    assert [(score.node, score.total, score.scores) for score in found.others] == [("n3", 3, {"ByNumber": 3})]
    assert found.weights == {"ByNumber": 1}


def test_a_score_that_fails_leaves_the_verdicts() -> None:
    found = explained(RefusesEven, ScoreBreaks)
    assert found.feasible == 2
    assert "LookupError: no score" in found.error


def test_nodes_are_kept_for_pods_that_are_nominated_there() -> None:
    nominated = {"n1": [pod_info(pod("first", cpu="4"))]}
    found = explained("NodeResourcesFit", nominated=nominated)
    assert found.nominated == ("n1",)
    assert found.feasible == 3


def test_without_nodes_there_is_nothing_to_say() -> None:
    found = explained("NodeResourcesFit", nodes=[])
    assert (found.nodes, found.verdicts, found.error) == (0, [], "")


@pytest.mark.parametrize("is_assumed", [True, False])
def test_a_pod_on_a_node_is_looked_at_without_it_and_is_there_afterwards(is_assumed: bool) -> None:
    profile = make_profile(["PrioritySort", "NodeResourcesFit"])
    cache = Cache()
    made = Scheduler(cache=cache, queue=SchedulingQueue(get_unassigned_pod=lambda _key: None), rng=Random(0))
    made.install_profiles({profile.name: profile})
    cache.add_node(node("n0", cpu="4"))
    placed = pod("p", cpu="4", group="g") if is_assumed else pod("p", cpu="4", group="g", node_name="n0")
    cache.put_unassigned(pod("other", group="g"))
    if is_assumed:
        cache.put_unassigned(placed)
        cache.assume(placed, "n0")
    else:
        cache.add(placed)
    found = made.explain(placed)
    group = cache.groups.get("default/g")
    assert group is not None
    assert (list(group.assumed), list(group.assigned)) == (([placed.uid], []) if is_assumed else ([], [placed.uid]))
    assert [score.node for score in found.best] == ["n0"]
    assert cache.is_assumed(placed.uid) is is_assumed
    assert rejected(made.explain(pod("q", cpu="1"))) == {"NodeResourcesFit": {"Insufficient cpu": ("n0",)}}
