from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trio_sched.engine.evaluation.filtering import node_statuses, run_filters, run_pre_filters
from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.plugin_api import (
    SKIP,
    Code,
    CycleState,
    NodeColumns,
    NodeView,
    Pod,
    PreFilterResult,
    Status,
    Verdicts,
    failure,
    pending,
    unresolvable,
    unschedulable,
)
from trio_sched.testing import make_table, node, pod

NODES = [node(f"n{i}") for i in range(6)]
Answer = Callable[..., Any]


def columns() -> NodeColumns:
    return NodeColumns(make_table(NODES))


# --- pre_filter -----------------------------------------------------------------------------------------------------


def pre_filters(**answers: Any) -> list[BoundHook]:
    def answering(answer: Any) -> Answer:
        def call(*_args: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    return [BoundHook(name, "pre_filter", answering(answer)) for name, answer in answers.items()]


def only(*names: str) -> PreFilterResult:
    return PreFilterResult(frozenset(names))


def test_the_nodes_of_all_pre_filters_are_intersected() -> None:
    outcome = run_pre_filters(
        pre_filters(A=only("n1", "n2"), B=None, C=PreFilterResult(None), D=only("n2", "n3")),
        pod(),
        columns(),
        CycleState(),
    )
    assert (outcome.node_names, outcome.narrowed_by, outcome.rejected) == ({"n2"}, ("A", "D"), None)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"B": only()}, "node(s) didn't satisfy plugin B"),
        ({"B": only("n1"), "A": only("n2")}, "node(s) didn't satisfy plugin(s) [A B] simultaneously"),
    ],
)
def test_pre_filters_that_leave_no_node_reject_the_pod(answers: dict[str, Any], reason: str) -> None:
    outcome = run_pre_filters(pre_filters(**answers), pod(), columns(), CycleState())
    assert outcome.rejected == unresolvable(reason)


def test_an_unresolvable_pre_filter_ends_the_cycle_at_once_and_an_unschedulable_one_after_all() -> None:
    asked = []

    def note(*_args: Any) -> None:
        asked.append("C")

    hopeless = [*pre_filters(A=unresolvable("never")), BoundHook("C", "pre_filter", note)]
    assert run_pre_filters(hopeless, pod(), columns(), CycleState()).rejected == unresolvable("never").by("A")
    assert asked == []
    unlucky = [*pre_filters(A=unschedulable("not now")), BoundHook("C", "pre_filter", note)]
    assert run_pre_filters(unlucky, pod(), columns(), CycleState()).rejected == unschedulable("not now").by("A")
    assert asked == ["C"]


def test_plugins_that_skip_are_recorded() -> None:
    state = CycleState()
    state.skip_filter = frozenset({"Z"})
    run_pre_filters(pre_filters(A=SKIP, B=None), pod(), columns(), state)
    assert state.skip_filter == {"A", "Z"}


@pytest.mark.parametrize(
    "answer", [LookupError("broken"), failure(LookupError("broken")), failure("broken"), pending("broken")]
)
def test_a_failing_pre_filter_fails_the_cycle_with_the_text_of_kube_scheduler(answer: Any) -> None:
    state = CycleState()
    text = 'running PreFilter plugin "B": (pre_filter raised LookupError: )?broken'
    with pytest.raises(HookFailed, match=text) as caught:
        run_pre_filters(pre_filters(A=SKIP, B=answer), pod(), columns(), state)
    assert (caught.value.status.code, caught.value.status.plugin) == (Code.ERROR, "B")
    assert state.skip_filter == {"A"}


# --- filter ---------------------------------------------------------------------------------------------------------


def whole(name: str, failing: set[str], reason: str) -> FilterHook:
    def call(_pod: Pod, nodes: NodeColumns, _state: CycleState) -> Verdicts:
        return Verdicts.where(np.array([n not in failing for n in nodes.names], dtype=np.bool_), unschedulable(reason))

    return FilterHook(name, "filter", call)


def single(name: str, answer: Answer) -> FilterHook:
    return FilterHook(name, "filter_node", lambda _pod, node, _state: answer(node), per_node=True)


def test_a_node_has_the_status_of_the_first_plugin_that_rejects_it() -> None:
    filters = [whole("A", {"n0", "n1"}, "a"), whole("B", {"n1", "n2"}, "b"), whole("C", set(), "c")]
    outcome = run_filters(filters, pod(), columns(), CycleState())
    assert {name: (s.plugin, s.reasons) for name, s in outcome.statuses().items()} == {
        "n0": ("A", ("a",)),
        "n1": ("A", ("a",)),
        "n2": ("B", ("b",)),
    }
    assert outcome.passes.tolist() == [False, False, False, True, True, True]
    assert [outcome.is_examined(position) for position in range(6)] == [True] * 6
    assert outcome.status(1) == unschedulable("a").by("A")
    assert outcome.status(5) is None


def test_an_error_on_a_node_that_passed_so_far_fails_the_cycle() -> None:
    def broken_on(*names: str) -> FilterHook:
        def call(_pod: Pod, nodes: NodeColumns, _state: CycleState) -> Verdicts:
            codes = np.array([2 if name in names else int(name == "n5") for name in nodes.names])
            return Verdicts(codes, {1: unschedulable("no"), 2: failure("broken")}.__getitem__, may_fail=True)

        return FilterHook("Broken", "filter", call)

    refusing = whole("A", {"n0"}, "a")
    outcome = run_filters([refusing, broken_on("n0")], pod(), columns(), CycleState())
    assert outcome.passes.tolist() == [False, True, True, True, True, False]
    with pytest.raises(HookFailed, match=r'^running "Broken" filter plugin: broken$'):
        run_filters([refusing, broken_on("n0", "n1")], pod(), columns(), CycleState())


def test_skipped_filters_are_not_called() -> None:
    state = CycleState()
    state.skip_filter = frozenset({"A"})
    assert run_filters([whole("A", {"n0"}, "a")], pod(), columns(), state).passes.all()


def test_filter_node_is_called_only_for_nodes_that_pass_all_column_filters() -> None:
    asked = []

    def answer(view: NodeView) -> Status | None:
        asked.append(view.name)
        return unschedulable("odd") if view.name in ("n3", "n5") else None

    outcome = run_filters([single("N", answer), whole("A", {"n0", "n3"}, "a")], pod(), columns(), CycleState())
    assert asked == ["n1", "n2", "n4", "n5"]
    assert {name: s.plugin for name, s in outcome.statuses().items()} == {"n0": "A", "n3": "A", "n5": "N"}


def test_filtering_starts_at_the_given_node_and_stops_when_enough_are_found() -> None:
    asked = []

    def answer(view: NodeView) -> Status | None:
        asked.append(view.name)
        return unschedulable("no") if view.name == "n5" else None

    outcome = run_filters([single("N", answer)], pod(), columns(), CycleState(), num_nodes_to_find=2, start=10)
    assert asked == ["n4", "n5", "n0"]
    assert np.flatnonzero(outcome.passes).tolist() == [0, 4]
    assert outcome.unexamined == 3
    assert outcome.statuses() == {"n5": unschedulable("no").by("N")}
    assert [outcome.is_examined(position) for position in range(6)] == [True, False, False, False, True, True]


def raising(*_args: Any) -> Any:
    raise LookupError("broken")


@pytest.mark.parametrize(
    ("caller", "message"),
    [
        (FilterHook("F", "filter", raising), "filter raised LookupError: broken"),
        (FilterHook("F", "filter_node", raising, per_node=True), "filter_node raised LookupError: broken"),
        (FilterHook("F", "filter_node", lambda *_: failure("broken"), per_node=True), "broken"),
        (FilterHook("F", "filter_node", lambda *_: Status(Code.SKIP, ("odd",)), per_node=True), "odd"),
        (
            FilterHook("F", "filter", lambda *_: Verdicts.where(np.ones(2, dtype=np.bool_), unschedulable())),
            r"filter returned shape \(2,\), expected \(6,\); codes need one entry for each node",
        ),
    ],
)
def test_a_failing_filter_fails_the_cycle_with_the_text_of_kube_scheduler(caller: FilterHook, message: str) -> None:
    with pytest.raises(HookFailed, match=f'^running "F" filter plugin: {message}$') as caught:
        run_filters([caller], pod(), columns(), CycleState())
    assert caught.value.status.plugin == "F"


def test_nodes_excluded_by_pre_filters_have_a_status_too() -> None:
    outcome = run_filters([whole("A", {"n0"}, "a")], pod(), columns().take(slice(0, 2)), CycleState())
    statuses = node_statuses(outcome, ["Z", "B"])
    assert statuses.by_node() == {"n0": unschedulable("a").by("A")}
    assert statuses.get("n4") == unresolvable("node(s) didn't satisfy plugin(s) [B Z]")
    assert node_statuses(outcome, []).get("n4") == unresolvable()


# --- nominated pods -------------------------------------------------------------------------------------------------
