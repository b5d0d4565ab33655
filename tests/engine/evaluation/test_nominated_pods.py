from typing import ClassVar

import numpy as np
import pytest
from pod_infos import pod_info

from trio_sched.engine.evaluation.filtering import (
    run_filters,
    run_pre_filters,
)
from trio_sched.engine.evaluation.nominated_pods import (
    NominatedRows,
    run_filters_with_nominated_pods,
    statuses_with_nominated,
)
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.plugin_api import (
    SKIP,
    CycleState,
    Handle,
    NodeColumns,
    NodeView,
    Pod,
    Status,
    Verdicts,
    failure,
    hookimpl,
    unschedulable,
)
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing import make_profile, make_table, node, pod

NODES = [node(f"n{i}") for i in range(6)]


class Counting:
    """Counts pods in the cycle's state, as plugins do that implement add_pod."""

    name: ClassVar[str] = "Counting"

    def __init__(self, args: None, handle: Handle) -> None:
        self.fails_on = ""

    @hookimpl
    def pre_filter(self, pod: Pod, state: CycleState) -> Status | None:
        state.write("seen", [])
        return SKIP if pod.name == "skipping" else None

    @hookimpl
    def add_pod(self, added: Pod, node: NodeView, state: CycleState) -> Status | None:
        if added.name == "exploding":
            raise LookupError("broken")
        if added.name == "failing":
            return failure("cannot say")
        state.read("seen").append((added.name, node.name, len(node.pods)))
        return None

    @hookimpl
    def filter(self, nodes: NodeColumns, state: CycleState) -> Verdicts:
        return Verdicts.where(np.full(len(nodes), len(state.read("seen")) < 2), unschedulable("two are too many"))


def added(waiting: Pod, *others: Pod) -> tuple[Status | None, CycleState]:
    profile = make_profile([Counting, "NodeResourcesFit"])
    table, state = make_table(NODES), CycleState()
    run_pre_filters(profile.pre_filter, waiting, NodeColumns(table), state)
    nominated = {"n1": [pod_info(p) for p in others]}
    (status,) = statuses_with_nominated(profile, waiting, state, nominated, ["n1"], NominatedRows(table))
    return status, state


def test_nominated_pods_count_as_if_they_were_on_the_node() -> None:
    assert added(pod(cpu="1"), pod("a", cpu="3"))[0] is None
    status, _state = added(pod(cpu="2"), pod("a", cpu="3"))
    assert status == unschedulable("Insufficient cpu").by("NodeResourcesFit")


def test_add_pod_is_called_for_nominated_pods_on_a_clone_of_the_state() -> None:
    status, state = added(pod(), pod("a"), pod("b"))
    assert status == unschedulable("two are too many").by("Counting")
    assert state.read("seen") == []
    assert added(pod("skipping"), pod("a"), pod("b"))[0] is None


@pytest.mark.parametrize(
    ("name", "message"), [("exploding", "add_pod raised LookupError: broken"), ("failing", "cannot say")]
)
def test_a_failing_add_pod_fails_the_cycle(name: str, message: str) -> None:
    with pytest.raises(HookFailed, match=f'running AddPod on PreFilter plugin "Counting": {message}'):
        added(pod(), pod(name))


def test_reasons_are_those_with_nominated_pods_even_if_the_node_fails_without_them() -> None:
    profile = make_profile(["NodeResourcesFit"])
    table = make_table([node("n", cpu="2", pods=2), node("m")], [pod("r", cpu="1", node_name="n")])
    waiting = pod(cpu="1500m")
    state = CycleState()
    run_pre_filters(profile.pre_filter, waiting, NodeColumns(table), state)
    outcome = run_filters(profile.filter, waiting, NodeColumns(table), state)
    assert outcome.statuses()["n"].reasons == ("Insufficient cpu",)
    nominated = {"n": [pod_info(pod("rival"))], "gone": []}
    run_filters_with_nominated_pods(profile, waiting, outcome, state, nominated, NominatedRows(table))
    assert outcome.statuses()["n"].reasons == ("Too many pods", "Insufficient cpu")
    assert outcome.passes.tolist() == [False, True]


def test_rows_with_nominated_pods_are_copied_again_only_after_a_change() -> None:
    table = make_table([node("a", cpu="4"), node("b", cpu="4")])
    rows = NominatedRows(table)
    nominated = {"a": [pod_info(pod("x", cpu="1"))], "b": [pod_info(pod("y", cpu="2"))]}

    def requested(nominated: dict[str, list[PodInfo]]) -> list[int]:
        columns, positions = rows.with_pods(nominated, list(nominated))
        return columns.requested[0][positions].tolist()

    assert requested(nominated) == [1000, 2000]
    assert requested(nominated) == [1000, 2000]
    table.add_pod(0, pod_info(pod("r", cpu="1", node_name="a")))
    assert requested(nominated) == [2000, 2000]
    assert requested({"b": [*nominated["b"], pod_info(pod("z", cpu="1"))]}) == [3000]
    assert requested(nominated) == [2000, 2000]
    table.add_node(node("c", cpu="4"))
    table.remove_node("a")
    assert requested({"c": nominated["a"], "b": nominated["b"]}) == [1000, 2000]
    assert NodeColumns(table).requested[0].tolist() == [0, 0]
