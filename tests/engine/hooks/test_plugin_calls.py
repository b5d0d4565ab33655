import traceback
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook, ScoreHook
from trio_sched.engine.hooks.hook_failure import HookFailed, describe_value
from trio_sched.engine.hooks.plugin_calls import (
    HookResult,
    call_events_to_register,
    call_filter,
    call_permit,
    call_pre_filter,
    call_queue_sort,
    call_score,
    call_status_hook,
    check_nodes,
    clone_state,
    explain,
    read_post_filter_result,
    read_status_result,
)
from trio_sched.plugin_api import (
    SKIP,
    Action,
    Code,
    CycleState,
    EventRegistration,
    NodeColumns,
    PostFilterResult,
    PreFilterResult,
    QueuedPod,
    Resource,
    Status,
    Verdicts,
    Wait,
    failure,
    on,
    unresolvable,
    unschedulable,
)
from trio_sched.testing import make_table, node, pod

NODES = NodeColumns(make_table([node("a"), node("b")]))
STATE = CycleState()
SOURCE = "teams 1.0 (teams.plugin:Teams)"


def hook(name: str, answer: Any, kind: type[Any] = BoundHook, **more: Any) -> Any:
    return kind("Teams", name, answer if callable(answer) else lambda *_args: answer, SOURCE, **more)


def failed(call: Callable[..., Any], *args: Any) -> HookFailed:
    with pytest.raises(HookFailed) as caught:
        call(*args)
    return caught.value


def test_an_exception_is_told_with_its_type_and_the_traceback_begins_in_the_plugin() -> None:
    def look_up(_pod: Any, _node: Any, _state: Any) -> Any:
        return {}["team"]

    problem = failed(call_status_hook, hook("filter_node", look_up), pod(), None, STATE)
    assert str(problem) == "running \"Teams\" filter plugin: filter_node raised KeyError: 'team'"
    assert (problem.hook.plugin, problem.hook.source, problem.returned_error) == ("Teams", SOURCE, False)
    assert problem.status == Status(Code.ERROR, (), problem, "Teams")
    assert isinstance(problem.__cause__, KeyError)
    frames = traceback.extract_tb(problem.__cause__.__traceback__)
    assert [frame.name for frame in frames] == ["look_up"]


def test_an_exception_without_a_text_is_told_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    def mute(*_args: Any) -> Any:
        raise Mute

    assert str(failed(call_status_hook, hook("reserve", mute), pod(), "n", STATE)) == (
        'running Reserve plugin "Teams": reserve raised Mute: <its __str__ raised ValueError>'
    )
    returned = failed(call_status_hook, hook("reserve", Status(Code.ERROR, (), Mute())), pod(), "n", STATE)
    assert returned.status.message == 'running Reserve plugin "Teams": <its __str__ raised ValueError>'


def test_an_exception_that_goes_on_for_ever_is_cut() -> None:
    def verbose(*_args: Any) -> Any:
        raise RuntimeError("x" * 10_000_000)

    assert len(str(failed(call_status_hook, hook("permit", verbose), pod()))) < 5_000


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("reserve", None, None),
        ("reserve", Status(Code.SUCCESS), None),
        ("reserve", unschedulable("no"), unschedulable("no").by("Teams")),
        ("reserve", Status(2, ("no",)), unschedulable("no").by("Teams")),  # type: ignore[arg-type]  # a number will do
        ("pre_score", SKIP, SKIP),
        ("bind", SKIP, SKIP),
    ],
)
def test_a_status_that_the_hook_supports_is_the_answer(name: str, answer: Any, expected: Status | None) -> None:
    assert call_status_hook(hook(name, answer), pod(), "n", STATE) == expected
    assert read_status_result(hook(name, None), HookResult(answer)) == expected


@pytest.mark.parametrize(
    ("name", "answer", "text"),
    [
        (
            "reserve",
            SKIP,
            'running Reserve plugin "Teams": reserve returned a Status of code SKIP; '
            'return None, or a Status: unschedulable("why") for instance',
        ),
        ("pre_score", unschedulable("no"), 'running PreScore plugin "Teams": no'),
        ("reserve", failure(LookupError("lost"), "and more"), 'running Reserve plugin "Teams": lost'),
        ("add_pod", unresolvable("never"), 'running AddPod on PreFilter plugin "Teams": never'),
    ],
)
def test_a_status_that_the_hook_does_not_support_is_a_failure_in_kube_schedulers_words(
    name: str, answer: Any, text: str
) -> None:
    problem = failed(call_status_hook, hook(name, answer), pod(), "n", STATE)
    assert (str(problem), problem.returned_error) == (text, answer.code == Code.ERROR)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (False, 'returned bool; return None, or a Status: unschedulable("why") for instance'),
        (Status(2.0), "returned a Status whose code is the number 2.0; use a member of Code"),  # type: ignore[arg-type]
        (Status(True), "returned a Status whose code is the number True; use a member of Code"),  # type: ignore[arg-type]
        (Status(17), "returned a Status whose code is the number 17; use a member of Code"),  # type: ignore[arg-type]
        (
            Status(Code.UNSCHEDULABLE, "why"),  # type: ignore[arg-type]
            'returned a Status whose reasons are not a tuple of strings; write unschedulable("why", "and why")',
        ),
        (
            Status(Code.ERROR, (), "broken"),  # type: ignore[arg-type]
            "returned a Status whose error is str; use failure(exception or text)",
        ),
        (np.zeros(2), "returned an array of dtype float64 and shape (2,); return None, or a Status"),
    ],
)
def test_what_is_no_status_is_a_failure_with_the_mend(answer: Any, problem: str) -> None:
    found = failed(call_status_hook, hook("filter_node", answer), pod(), None, STATE)
    assert found.problem.startswith(f"filter_node {problem}")


def test_a_coroutine_is_told_and_never_left_to_warn() -> None:
    async def later() -> None: ...

    found = failed(call_status_hook, hook("reserve", lambda *_args: later()), pod(), "n", STATE)
    assert "reserve returned a coroutine, which cannot be awaited here" in str(found)


def test_the_type_of_a_thing_is_told_without_asking_it() -> None:
    class Liar:
        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            raise RuntimeError("hands off")

        def __repr__(self) -> str:
            raise RuntimeError("hands off")

    assert describe_value(Liar()) == "Liar"
    assert "returned Liar" in str(failed(call_status_hook, hook("reserve", Liar()), pod(), "n", STATE))


# --- filter -----------------------------------------------------------------------------------------------------------


def refuse(codes: Any, **more: Any) -> Verdicts:
    return Verdicts(codes, lambda _code: unschedulable("no"), **more)


@pytest.mark.parametrize("codes", [np.array([False, True]), np.array([0, 1], dtype=np.uint8), np.array([0, -1])])
def test_codes_are_integers_or_booleans(codes: Any) -> None:
    answer = call_filter(hook("filter", refuse(codes), FilterHook), pod(), NODES, STATE)
    assert answer.passes.tolist() == [True, False]


def test_codes_of_a_subclass_of_arrays_are_taken_as_plain_ones() -> None:
    masked = np.ma.array([0, 1], mask=[True, True])
    answer = call_filter(hook("filter", refuse(masked), FilterHook), pod(), NODES, STATE)
    assert type(answer.codes) is np.ndarray


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (np.zeros(2, dtype=np.bool_), "an array of dtype bool and shape (2,); return Verdicts: Verdicts.where("),
        (refuse([0, 1]), "Verdicts whose codes are list; codes must be an array of integers"),
        (refuse(np.array([0.0, 1.0])), "Verdicts whose codes have dtype float64; codes must be integers or booleans"),
        (refuse(np.zeros(3, dtype=np.int8)), "shape (3,), expected (2,); codes need one entry for each node"),
        (refuse(np.int64(1)), "Verdicts whose codes are int64; codes must be an array of integers"),
    ],
)
def test_other_verdicts_are_failures(answer: Any, problem: str) -> None:
    found = failed(call_filter, hook("filter", answer, FilterHook), pod(), NODES, STATE)
    assert found.problem.startswith(f"filter returned {problem}")


def test_a_code_that_cannot_be_explained_is_a_failure() -> None:
    asked = hook("filter", None, FilterHook)
    wrong: list[Any] = [None, lambda _code: "no", lambda _code: None, {}.__getitem__, lambda _code: SKIP]
    texts = [str(failed(explain, asked, Verdicts(np.ones(2), each), 1)) for each in wrong]
    assert "filter raised TypeError: 'NoneType' object is not callable" in texts[0]
    assert "filter returned Verdicts that explain the code 1 by str; give a rejecting Status" in texts[1]
    assert "filter returned Verdicts that explain the code 1 by NoneType" in texts[2]
    assert "filter raised KeyError: 1" in texts[3]
    assert "filter returned Verdicts that explain the code 1 by SKIP" in texts[4]


def test_a_filter_that_fails_on_a_node_fails_if_it_was_to_judge_that_node() -> None:
    asked = hook("filter", None, FilterHook)
    verdicts = Verdicts(np.array([0, 1]), lambda _code: failure("no answer"), may_fail=True)
    check_nodes(asked, verdicts, np.array([True, False]))
    problem = failed(check_nodes, asked, verdicts, np.array([True, True]))
    assert str(problem) == 'running "Teams" filter plugin: no answer'


# --- score ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [np.array([1, 2]), np.array([1, 2], dtype=np.uint8), np.array([1, 2], dtype=">i8")])
def test_scores_of_any_integer_dtype_are_taken(scores: Any) -> None:
    answer = call_score(hook("score", scores, ScoreHook), pod(), NODES, STATE)
    assert (answer.dtype, answer.tolist()) == (np.int64, [1, 2])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (np.array([0.5, 1.0]), "an array of dtype float64 and shape (2,); scores must be integers; round them"),
        (np.array([True, False]), "an array of dtype bool and shape (2,); scores must be integers"),
        (np.array([1]), "shape (1,), expected (2,); return an int64 array with a score for each node"),
        ([1, 2], "list; return an int64 array with a score for each node"),
    ],
)
def test_other_scores_are_failures_and_never_cut(answer: Any, problem: str) -> None:
    found = failed(call_score, hook("score", answer, ScoreHook), pod(), NODES, STATE)
    assert found.problem.startswith(f"score returned {problem}")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [(0.5, "float"), (True, "bool"), (None, "NoneType"), (2**63, "an int that does not fit into 64 bits")],
)
def test_the_score_of_a_node_is_an_int(answer: Any, problem: str) -> None:
    asked = hook("score_node", lambda *_args: answer, ScoreHook, per_node=True)
    assert failed(call_score, asked, pod(), NODES, STATE).problem.startswith(f"score_node returned {problem}; ")


# --- others -----------------------------------------------------------------------------------------------------------


def test_a_set_of_names_is_as_good_as_a_frozen_one() -> None:
    answer = PreFilterResult({"a"})  # type: ignore[arg-type]
    assert call_pre_filter(hook("pre_filter", answer), pod(), NODES, STATE) == PreFilterResult(frozenset({"a"}))


@pytest.mark.parametrize("seconds", ["5", None, float("nan"), True])
def test_a_wait_is_for_a_number_of_seconds(seconds: Any) -> None:
    problem = failed(call_permit, hook("permit", Wait(seconds)), pod(), "n", STATE)
    assert "permit returned a Wait whose timeout_seconds is" in str(problem)
    for given, expected in ((float("inf"), 10**9), (10**400, 10**9), (-(10**400), 0), (-float("inf"), 0), (2.5, 2.5)):
        assert call_permit(hook("permit", Wait(given)), pod(), "n", STATE) == Wait(expected)


@pytest.mark.parametrize("answer", [PostFilterResult("no"), PostFilterResult(None, 5), unschedulable()])  # type: ignore[arg-type]
def test_a_post_filter_answers_with_its_result(answer: Any) -> None:
    problem = failed(read_post_filter_result, hook("post_filter", None), HookResult(answer))
    assert str(problem).startswith('running PostFilter plugin "Teams": post_filter returned ')


@pytest.mark.parametrize("key", [float("nan"), (1, float("nan")), None, {}, np.array([1, 2]), object()], ids=type)
def test_a_sort_key_has_an_order(key: Any) -> None:
    problem = failed(call_queue_sort, hook("queue_sort", lambda _queued: key), QueuedPod(pod(), 0.0))
    assert "which has no order; return a sort key that compares" in str(problem)


class OwnStatus(Status):
    def __init__(self, why: str) -> None:
        Status.__init__(self, Code.UNSCHEDULABLE, (why,))

    def by(self, plugin: str) -> Status:
        raise RuntimeError("mine")


class OwnVerdicts(Verdicts):
    def __init__(self) -> None:
        Verdicts.__init__(self, np.ones(2, dtype=np.int8), lambda _code: OwnStatus("no"))


class OwnResult(PostFilterResult):
    def __init__(self) -> None:
        PostFilterResult.__init__(self, OwnStatus("no"), "n")


class Loud(str):
    __slots__ = ()

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __format__(self, _spec: str) -> str:
        raise RuntimeError("no format")


def test_subclasses_of_answers_are_read_as_what_they_are() -> None:
    rejected = Status(Code.UNSCHEDULABLE, ("no",), plugin="Teams")
    assert call_status_hook(hook("reserve", OwnStatus("no")), pod(), "n", STATE) == rejected
    filter_hook = hook("filter", OwnVerdicts(), FilterHook, per_node=False, depends_on=None)
    verdicts = call_filter(filter_hook, pod(), NODES, STATE)
    assert type(verdicts) is Verdicts
    assert explain(filter_hook, verdicts, 1) == rejected
    result = read_post_filter_result(hook("post_filter", None), HookResult(OwnResult()))
    assert result == PostFilterResult(Status(Code.UNSCHEDULABLE, ("no",)), "n")


def test_reasons_become_plain_text_of_bounded_length_and_number() -> None:
    def reasons(*given: str) -> tuple[str, ...]:
        status = call_status_hook(hook("reserve", unschedulable(*given)), pod(), "n", STATE)
        assert status is not None
        return status.reasons

    assert reasons("bad \ud800", "für") == ("bad ?", "für")
    (loud,) = reasons(Loud("loud"))
    assert type(loud) is str
    assert hash(loud) == hash("loud")
    assert reasons("x" * 10_000) == ("x" * 4096,)
    many = reasons(*map(str, range(5000)))
    assert (len(many), many[:2], many[-1]) == (1001, ("0", "1"), "and 4000 more reasons")


@pytest.mark.parametrize("answer", [np.timedelta64(5, "s"), np.timedelta64("NaT", "s"), 10**400])
def test_scores_are_numbers_of_64_bits(answer: Any) -> None:
    asked = hook("score_node", answer, ScoreHook, weight=1, normalize=None, per_node=True, depends_on=None)
    assert failed(call_score, asked, pod(), NODES, STATE).problem.startswith("score_node returned ")


@pytest.mark.parametrize("error", [SystemExit(1), RuntimeError("no")])
def test_a_value_that_cannot_be_cloned_names_its_key(error: BaseException) -> None:
    class Value:
        def clone(self) -> None:
            raise error

    state = CycleState()
    state.write(("Teams", "sizes"), Value())
    problem = str(failed(clone_state, state))
    assert "('Teams', 'sizes')" in problem
    assert type(error).__name__ in problem


@pytest.mark.parametrize(
    "registrations",
    [
        [on(Resource.NODE, True)],  # type: ignore[arg-type]
        [on(Resource.NODE, -1)],  # type: ignore[arg-type]
        [on(Resource.NODE, 1 << 70)],  # type: ignore[arg-type]
        count(),
        (on(Resource.NODE, Action.ADD) for _ in count()),
        [EventRegistration.__new__(EventRegistration)],
        on(Resource.NODE, Action.ADD),
    ],
)
def test_registrations_are_a_bounded_number_of_events(registrations: Any) -> None:
    problem = failed(call_events_to_register, hook("events_to_register", lambda: registrations))
    assert problem.problem.startswith("events_to_register returned ")


@pytest.mark.parametrize("returned", [on(Resource.NODE, Action.ADD), None])
def test_a_list_that_was_forgotten_is_asked_for(returned: Any) -> None:
    problem = failed(call_events_to_register, hook("events_to_register", lambda: returned))
    assert problem.problem.endswith("; return a list of on(resource, action, hint)")
