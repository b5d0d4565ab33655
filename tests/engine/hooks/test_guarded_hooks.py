import signal
from typing import Any

import numpy as np
import pytest

from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook
from trio_sched.engine.hooks.failure_guard import SKIP_SECONDS, FailureGuard, FailureGuards
from trio_sched.engine.hooks.failure_policy import CLOSED, FailurePolicy, read_failure_policy
from trio_sched.engine.hooks.guarded_hooks import guarded
from trio_sched.engine.hooks.hook_failure import HookFailed, HookTimedOut
from trio_sched.engine.hooks.plugin_calls import (
    HookResult,
    call_filter,
    call_permit,
    call_pre_filter,
    call_status_hook,
    read_post_filter_result,
    read_status_result,
    read_value,
)
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.plugin_api import SKIP, CycleState, Verdicts, Wait, failure, unschedulable
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import make_table, node, pod

NODES = NodeColumns(make_table([node("a"), node("b")]))
POD = pod("p")
STATE = CycleState()
THREE = np.zeros(3, dtype=np.int64)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def guard_of(policy: str, clock: Clock | None = None) -> FailureGuard:
    return FailureGuard("P", read_failure_policy(policy), clock or Clock(), PluginFailures())


def bound(hook: str, function: Any, guard: FailureGuard | None = None) -> Any:
    kind = FilterHook if hook == "filter" else BoundHook
    one = kind("P", hook, function, "somewhere")
    if guard is not None:
        one.function = guarded(one, guard)
        one.guard = guard
    return one


def raises(*_args: Any) -> Any:
    raise LookupError("odd")


NODE_ARGS = (POD, NODES, STATE)
SCORE_ARGS = (POD, THREE, STATE)


@pytest.mark.parametrize("fails", ["raises", "wrong type", "error"])
@pytest.mark.parametrize(
    ("hook", "args", "neutral"),
    [
        ("pre_enqueue", (POD,), None),
        ("pre_filter", NODE_ARGS, SKIP),
        ("filter_node", (POD, NODES.node(0), STATE), None),
        ("add_pod", NODE_ARGS, None),
        ("pre_score", NODE_ARGS, SKIP),
        ("score_node", (POD, NODES.node(0), STATE), 0),
        ("reserve", (POD, "a", STATE), None),
        ("permit", (POD, "a", STATE), None),
        ("pre_bind_pre_flight", (POD, "a", STATE), None),
        ("placement_generate", NODE_ARGS, None),
        ("placement_feasible", (POD, None, STATE), None),
        ("placement_score", NODE_ARGS, 0),
        ("pod_group_post_filter", (POD, None), None),
    ],
)
def test_a_failing_call_gets_a_neutral_answer(hook: str, args: Any, neutral: Any, fails: str) -> None:
    function = {"raises": raises, "wrong type": lambda *_: 1j, "error": lambda *_: failure("no")}[fails]
    guard = guard_of("open")
    assert bound(hook, function, guard).function(*args) == neutral
    (reported,) = guard.failures.drain()
    assert reported.failed.hook.hook == hook
    assert reported.pod == "default/p"


@pytest.mark.parametrize("answer", [raises, lambda *_: "x", lambda *_: np.zeros(9), lambda *_: np.full(2, 101)])
def test_scores_of_a_failing_call_are_zero_for_all(answer: Any) -> None:
    assert bound("score", answer, guard_of("open")).function(*NODE_ARGS).tolist() == [0, 0]
    assert bound("normalize_score", answer, guard_of("open")).function(*SCORE_ARGS).tolist() == [0, 0, 0]


def test_raw_scores_may_leave_the_range_if_they_are_normalized() -> None:
    guard = guard_of("open")
    call = guarded(BoundHook("P", "score", lambda *_: np.array([500, 7])), guard, has_normalize=True)
    assert call(*NODE_ARGS).tolist() == [500, 7]
    assert not guard.failures


@pytest.mark.parametrize(
    "verdicts",
    [
        raises,
        lambda *_: None,
        lambda *_: Verdicts(np.array([0, 1]), raises),
        lambda *_: Verdicts(np.array([0, 1]), lambda _code: None),  # type: ignore[arg-type, return-value]
        lambda *_: Verdicts(np.array([0, 1]), lambda _code: failure("no"), may_fail=True),
        lambda *_: Verdicts(np.zeros(3, dtype=np.int64), lambda _code: unschedulable()),
    ],
)
def test_all_nodes_pass_a_filter_that_fails_or_cannot_explain_itself(verdicts: Any) -> None:
    assert call_filter(bound("filter", verdicts, guard_of("open")), *NODE_ARGS).passes.all()


@pytest.mark.parametrize("policy", ["open", "skip:3"])
def test_answers_without_failure_are_left_alone(policy: str) -> None:
    guard = guard_of(policy)
    verdicts = Verdicts.where(np.array([True, False]), unschedulable("full"))
    assert call_filter(bound("filter", lambda *_: verdicts, guard), *NODE_ARGS).passes.tolist() == [True, False]
    assert call_permit(bound("permit", lambda *_: Wait(5.0), guard), POD, "a", STATE) == Wait(5.0)
    status = call_status_hook(bound("reserve", lambda *_: unschedulable("no"), guard), POD, "a", STATE)
    assert status is not None
    assert (status.reasons, status.plugin) == (("no",), "P")
    assert call_pre_filter(bound("pre_filter", lambda *_: SKIP, guard), *NODE_ARGS) is SKIP
    assert guard.epoch == 0


def test_what_comes_to_the_process_is_no_failure() -> None:
    def interrupted(*_args: Any) -> None:
        signal.default_int_handler(signal.SIGINT, None)

    with pytest.raises(KeyboardInterrupt):
        bound("permit", interrupted, guard_of("open")).function(POD, "a", STATE)


def test_a_plugin_is_skipped_after_so_many_failures_in_a_row_and_tried_again_later() -> None:
    clock = Clock()
    guard = guard_of("skip:2", clock)
    answers: list[Any] = []
    calls: list[int] = []

    def permit(*_args: Any) -> Any:
        calls.append(1)
        return answers.pop(0)

    hook = bound("permit", permit, guard)

    def call() -> Any:
        try:
            return call_permit(hook, POD, "a", STATE)
        except HookFailed as failed:
            return failed.problem.partition(";")[0]

    wrong = "permit returned int"
    answers += [1, None, 1, 1]
    assert [call() for _ in range(4)] == [wrong, None, wrong, wrong]  # closed until there were two in a row
    assert guard.failures.drain_notices() == [("P", 2)]
    assert guard.failures.skipped == {"P": True}
    assert [call() for _ in range(3)] == [None] * 3
    assert len(calls) == 4
    clock.now = SKIP_SECONDS
    answers += [1]
    assert [call(), call()] == [wrong, None]  # one failure is enough now
    assert guard.failures.drain_notices() == [("P", None), ("P", 3)]
    clock.now = 2 * SKIP_SECONDS
    answers += [1]
    assert call() == wrong
    clock.now = 3 * SKIP_SECONDS
    guard.failures.drain_notices()
    assert bound("reserve", lambda *_: None, guard).function(POD, "a", STATE) is None  # another hook proves nothing
    answers += [None, 1, None]
    assert [call() for _ in range(3)] == [None, wrong, None]
    assert guard.failures.skipped == {"P": False}


def test_a_failure_costs_the_pod_its_attempt_with_its_own_text_until_the_plugin_is_skipped() -> None:
    hook = bound("filter", raises, guard_of("skip:2"))
    with pytest.raises(HookFailed, match="filter raised LookupError: odd") as caught:
        call_filter(hook, *NODE_ARGS)
    assert isinstance(caught.value.__cause__, LookupError)
    with pytest.raises(HookFailed, match="odd"):
        call_filter(hook, *NODE_ARGS)
    assert call_filter(hook, *NODE_ARGS).passes.all()


def test_signatures_change_with_every_neutral_answer() -> None:
    clock = Clock()
    guard = guard_of("skip:1", clock)
    sign = bound("sign", lambda pod: "s", guard).function
    first = sign(POD)
    assert sign(POD) == first
    with pytest.raises(HookFailed):
        call_permit(bound("permit", raises, guard), POD, "a", STATE)
    assert sign(POD) is None  # skipped: what is found out now must not be kept
    clock.now = SKIP_SECONDS
    assert sign(POD) not in (first, None)
    assert bound("sign", lambda pod: [], guard_of("open")).function(POD) is None
    assert bound("sign", raises, guard_of("open")).function(POD) is None
    with pytest.raises(LookupError):
        bound("sign", raises, guard_of("skip:2")).function(POD)


def test_hooks_that_are_awaited_are_judged_by_how_they_end() -> None:
    guard = guard_of("open")
    late, wrong = HookResult(error=HookTimedOut(60.0)), HookResult(value=3)
    assert read_post_filter_result(bound("post_filter", raises, guard), late) is None
    assert read_post_filter_result(bound("post_filter", raises, guard), wrong) is None
    assert read_value(bound("post_bind", raises, guard), late) is None
    assert len(guard.failures.drain()) == 2
    with pytest.raises(HookFailed):  # a pod must not start without what was to be prepared for it
        read_status_result(bound("pre_bind", raises, guard), late)
    assert guard.epoch == 4
    skipping = guard_of("skip:1")
    with pytest.raises(HookFailed):
        read_post_filter_result(bound("post_filter", raises, skipping), late)
    assert bound("post_filter", raises, skipping).function(POD, None, STATE) is None
    with pytest.raises(LookupError):
        bound("pre_bind", raises, skipping).function(POD, "a", STATE)


def test_policies_are_read_and_checked() -> None:
    assert read_failure_policy("closed") == CLOSED
    assert read_failure_policy("skip:5") == FailurePolicy(skip_after=5)
    for wrong in ("skip", "skip:0", "skip:x", "OPEN", "", None, 5, "skip:99999999"):
        with pytest.raises(ValueError, match="is no failure policy"):
            read_failure_policy(wrong)
    guards = FailureGuards({"Flag": CLOSED}, Clock(), PluginFailures())
    assert guards.guard("Flag", "s", "open", ["filter"]) is None
    assert guards.guard("Own", "s", None, ["filter"]) is None
    assert guards.guard("Own", "s", "open", ["filter"]) is guards.guard("Own", "s", "open", ["filter"])
    for hook in ("bind", "queue_sort"):
        with pytest.raises(BadPlugin, match=f"it has '{hook}', for which there is no neutral answer"):
            guards.guard("Own", "s", "open", [hook])
