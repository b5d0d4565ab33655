"""The only place that calls plugins and reads what they return or raise.

There is one function per shape of answer. Each turns whatever comes back, any object and any exception, into an answer
of the declared type or into a `HookFailed` that names the plugin, its distribution, the hook, what was wrong and how to
mend it. Hooks that may be ``async`` are called by the daemon, which hands the outcome back as a `HookResult`.

Source of the prefixes: the scheduling framework of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import isnan
from types import AsyncGeneratorType, CoroutineType, TracebackType
from typing import Any, Final

import numpy as np
from attrs import evolve, frozen

from trio_sched.engine.bound_hooks import BoundHook, FilterHook, ScoreHook
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cluster_events import ClusterEvent, EventRegistration, Hint
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import REJECTED, SKIP, Code, Status
from trio_sched.plugin_api.verdicts import (
    PostFilterResult,
    PreFilterResult,
    PreFlight,
    QueuedPod,
    Verdicts,
    Wait,
)
from trio_sched.snapshot.arrays import BoolArray, Int64Array
from trio_sched.snapshot.node_columns import NodeColumns

MAX_SCORE: Final = 100
_MAX_TEXT: Final = 4096
"""Longer texts of exceptions are cut to so many characters."""
_INT64: Final = np.dtype(np.int64)
_CODES: Final = frozenset(map(int, Code))

_PREFIXES: Final[Mapping[str, str]] = {
    "pre_enqueue": 'running PreEnqueue plugin "{}": ',
    "queue_sort": 'running QueueSort plugin "{}": ',
    "pre_filter": 'running PreFilter plugin "{}": ',
    "filter": 'running "{}" filter plugin: ',
    "filter_node": 'running "{}" filter plugin: ',
    "add_pod": 'running AddPod on PreFilter plugin "{}": ',
    "remove_pod": 'running RemovePod on PreFilter plugin "{}": ',
    "post_filter": 'running PostFilter plugin "{}": ',
    "pre_score": 'running PreScore plugin "{}": ',
    "score": 'running Score plugins: plugin "{}" failed with: ',
    "score_node": 'running Score plugins: plugin "{}" failed with: ',
    "normalize_score": 'running Normalize on Score plugins: plugin "{}" failed with: ',
    "reserve": 'running Reserve plugin "{}": ',
    "permit": 'running Permit plugin "{}": ',
    "pre_bind_pre_flight": 'running PreBindPreFlight "{}": ',
    "pre_bind": 'running PreBind plugin "{}": ',
    "bind": 'running Bind plugin "{}": ',
    "post_bind": 'running PostBind plugin "{}": ',
    "clone": "cloning the {}: ",
}
_SUPPORTED: Final[Mapping[str, frozenset[Code]]] = {
    "pre_enqueue": REJECTED | {Code.SKIP, Code.WAIT},  # whatever is not Success keeps the pod back
    "pre_filter": frozenset({Code.SKIP, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE}),
    "filter": REJECTED,
    "filter_node": REJECTED,
    "add_pod": frozenset(),
    "remove_pod": frozenset(),
    "pre_score": frozenset({Code.SKIP}),
    "reserve": REJECTED,
    "permit": REJECTED,
    "pre_bind_pre_flight": frozenset({Code.SKIP}),
    "pre_bind": REJECTED,
    "bind": REJECTED | {Code.SKIP},
}
"""Hook → the codes, besides Success, that are not the plugin's failure."""
_MAY_SKIP: Final = frozenset(hook for hook, codes in _SUPPORTED.items() if Code.SKIP in codes)

_A_STATUS: Final = 'return None, or a Status: unschedulable("why") for instance'
_MENDS: Final[Mapping[str, str]] = {
    "queue_sort": "return a sort key that compares with those of other pods: a tuple of numbers for instance",
    "pre_filter": 'return None, a PreFilterResult, SKIP, or a Status: unresolvable("why") for instance',
    "filter": 'return Verdicts: Verdicts.where(passes, unschedulable("why")) for instance',
    "post_filter": "return None or a PostFilterResult",
    "pre_score": "return None or SKIP",
    "score": "return an int64 array with a score for each node",
    "score_node": "return an int",
    "normalize_score": "return an int64 array of the shape of *scores*",
    "permit": 'return None, Wait(seconds), or a Status: unschedulable("why") for instance',
    "pre_bind_pre_flight": "return None, SKIP, or PreFlight(...)",
    "add_pod": "return None",
    "remove_pod": "return None",
    "unreserve": "return None from a plain function",
    "sign": "return a hashable value, or None",
    "events_to_register": "return a list of on(resource, action, hint)",
    "hint": "return Hint.QUEUE or Hint.SKIP",
}


class HookFailed(Exception):
    """A plugin failed at a hook: it raised, answered with Error, or with something that the hook cannot return.

    The text is kube-scheduler's, with the reason behind the prefix. ``__cause__`` is what the plugin raised, or the
    error of the Status that it returned.
    """

    def __init__(self, hook: BoundHook, problem: str, *, prefix: str | None = None, is_answer: bool = False) -> None:
        if prefix is None:
            prefix = _PREFIXES.get(hook.hook, 'running plugin "{}": ').format(hook.plugin)
        super().__init__(prefix + problem)
        self.hook = hook
        self.problem = problem
        """What was wrong, and the mend."""
        self.is_answer = is_answer
        """Whether the plugin itself answered with Error: nothing is wrong with the plugin then."""

    @property
    def status(self) -> Status:
        """The failure as a status of the plugin, code Error."""
        return Status(Code.ERROR, (), self, self.hook.plugin)


def describe_error(error: BaseException) -> str:
    """Type and text of *error*, whatever its ``__str__`` does."""
    name = type(error).__name__
    text = error_text(error)
    return f"{name}: {text}" if text else name


def error_text(error: BaseException) -> str:
    """``str(error)``, cut to a bounded length; a replacement where that fails."""
    try:
        return str(error)[:_MAX_TEXT]
    except Exception as problem:
        return f"<its __str__ raised {type(problem).__name__}>"


def raised(hook: BoundHook, error: Exception) -> HookFailed:
    """The failure of a plugin that raised *error*; the traceback of *error* then begins in the plugin."""
    error.with_traceback(_from_plugin_on(error.__traceback__))
    return HookFailed(hook, f"{hook.hook} raised {describe_error(error)}")


def _from_plugin_on(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        if not str(module).startswith(("trio_sched.engine.", "trio_sched.daemon.")):
            return traceback
        traceback = traceback.tb_next
    return None


def wrong_answer(hook: BoundHook, answer: object, problem: str = "", mend: str = "") -> HookFailed:
    """The failure of a plugin that returned something that the hook cannot return."""
    if not problem:
        problem = describe_value(answer)
    return HookFailed(hook, f"{hook.hook} answered with {problem}; {mend or _MENDS.get(hook.hook, _A_STATUS)}")


def describe_value(value: object) -> str:
    """The type of *value*; for arrays with dtype and shape. A coroutine is closed: nothing will await it."""
    kind = type(value)
    if issubclass(kind, CoroutineType):
        value.close()  # type: ignore[attr-defined]  # isinstance would trust __class__, which plugins can override
        return "a coroutine, which cannot be awaited here"
    if issubclass(kind, AsyncGeneratorType):
        return "an async generator, which cannot be awaited here"
    if issubclass(kind, np.ndarray):
        array = np.asarray(value)
        return f"an array of dtype {array.dtype} and shape {array.shape}"
    return kind.__name__


# --- statuses -------------------------------------------------------------------------------------------------------


def ask_status(hook: BoundHook, *args: object) -> Status | None:
    """Call a hook that answers with a Status or None.

    Returns:
        None for success, else a status of a code that the hook supports; a rejection bears the plugin's name.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        answer = hook.function(*args)
    except Exception as error:
        raise raised(hook, error) from error
    if answer is None or (answer is SKIP and hook.hook in _MAY_SKIP):
        return answer
    return _status(hook, answer)


def _status(hook: BoundHook, answer: object) -> Status | None:
    status = checked_status(hook, answer)
    if status.code == Code.SUCCESS:
        return None
    if status.code in _SUPPORTED[hook.hook]:
        return status.by(hook.plugin) if status.is_rejected else status
    raise answered_error(hook, status)


def answered_error(hook: BoundHook, status: Status) -> HookFailed:
    """The failure of a plugin that answered with Error, or with a code that the hook does not support."""
    text = status.message if status.error is None else error_text(status.error)
    failed = HookFailed(hook, text, is_answer=True)
    failed.__cause__ = status.error
    return failed


def checked_status(hook: BoundHook, answer: object) -> Status:
    """*answer*, if it is a Status all parts of which can be used.

    Raises:
        HookFailed: it is not.
    """
    if not issubclass(type(answer), Status):
        raise wrong_answer(hook, answer)
    status: Status = answer  # type: ignore[assignment]  # looked at above
    if type(status.code) is not Code:
        if type(status.code) is not int or status.code not in _CODES:
            problem = f"a Status whose code is {_describe_code(status.code)}"
            raise wrong_answer(hook, answer, problem, "use a member of Code")
        status = evolve(status, code=Code(status.code))
    if type(status.reasons) is not tuple or not all(issubclass(type(reason), str) for reason in status.reasons):
        raise wrong_answer(
            hook, answer, "a Status whose reasons are not a tuple of strings", 'write unschedulable("why", "and why")'
        )
    error = status.error
    if error is not None:
        if not issubclass(type(error), BaseException):
            raise wrong_answer(
                hook, answer, f"a Status whose error is {describe_value(error)}", "use failure(exception or text)"
            )
        try:
            str(error)  # texts are made of it later, where that must not fail
        except Exception:
            replacement = RuntimeError(error_text(error))
            replacement.__cause__ = error
            status = evolve(status, error=replacement)
    return status


def _describe_code(code: object) -> str:
    return f"the number {code}" if type(code) in (int, float, bool) else describe_value(code)


# --- results of the scheduling cycle --------------------------------------------------------------------------------


def ask_pre_filter(hook: BoundHook, pod: Pod, nodes: NodeColumns, state: CycleState) -> PreFilterResult | Status | None:
    """Call pre_filter; its result, a status (Skip, or rejected), or None for success.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        answer = hook.function(pod, nodes, state)
    except Exception as error:
        raise raised(hook, error) from error
    if answer is None or answer is SKIP:
        return answer
    if not issubclass(type(answer), PreFilterResult):
        return _status(hook, answer)
    names = answer.node_names
    if names is None or type(names) is frozenset:
        return answer  # type: ignore[no-any-return]  # looked at above
    if issubclass(type(names), set):
        return PreFilterResult(frozenset(names))
    raise wrong_answer(
        hook,
        answer,
        f"a PreFilterResult whose node_names are {describe_value(names)}",
        "give a frozenset of names, or None for all nodes",
    )


def ask_filter(hook: FilterHook, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
    """Call a filter that takes all nodes at once.

    Raises:
        HookFailed: the plugin failed as a whole; on single nodes it may still, see `check_nodes`.
    """
    try:
        verdicts = hook.function(pod, nodes, state)
    except Exception as error:
        raise raised(hook, error) from error
    if type(verdicts) is Verdicts:
        codes = verdicts.codes
        if type(codes) is np.ndarray and codes.dtype.kind in "biu" and codes.shape == (len(nodes),):
            return verdicts
    return _checked_verdicts(hook, verdicts, len(nodes))


def _checked_verdicts(hook: FilterHook, verdicts: object, count: int) -> Verdicts:
    if not issubclass(type(verdicts), Verdicts):
        raise wrong_answer(hook, verdicts)
    answer: Verdicts = verdicts  # type: ignore[assignment]  # looked at above
    codes: Any = answer.codes
    if not issubclass(type(codes), np.ndarray):
        raise wrong_answer(
            hook, verdicts, f"Verdicts whose codes are {describe_value(codes)}", "codes must be an array of integers"
        )
    codes = np.asarray(codes)
    if codes.dtype.kind not in "biu":
        raise wrong_answer(
            hook,
            verdicts,
            f"Verdicts whose codes have dtype {codes.dtype}",
            "codes must be integers or booleans; convert them with .astype(np.int64)",
        )
    if codes.shape != (count,):
        raise wrong_answer(
            hook, verdicts, f"shape {codes.shape}, expected ({count},)", "codes need one entry for each node"
        )
    return evolve(answer, codes=codes)


def explain(hook: BoundHook, verdicts: Verdicts, code: int) -> Status:
    """The status that *verdicts* gives for *code*, which is not 0.

    Raises:
        HookFailed: the plugin failed on the nodes with that code, or cannot explain it.
    """
    try:
        answer = verdicts.explain(code)
    except Exception as error:
        raise raised(hook, error) from error
    status = _status(hook, answer)
    if status is None:
        raise wrong_answer(hook, answer, f"Success for the code {code}", "nodes that pass must have the code 0")
    return status


def check_nodes(hook: FilterHook, verdicts: Verdicts, reached: BoolArray) -> None:
    """Look whether a filter failed on a node that it had to judge; only needed if ``verdicts.may_fail``.

    Args:
        hook: the filter.
        verdicts: its answer.
        reached: shape (nodes,): the nodes that passed the filters before it.

    Raises:
        HookFailed: it did.
    """
    for code in np.unique(verdicts.codes[reached]).tolist():
        if code:
            explain(hook, verdicts, code)


def ask_scores(hook: ScoreHook, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
    """Call score, or score_node for each of *nodes*; shape (nodes,).

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        if hook.per_node:
            answer: Any = [hook.function(pod, node, state) for node in nodes]
        else:
            answer = hook.function(pod, nodes, state)
            if type(answer) is np.ndarray and answer.dtype is _INT64 and answer.shape == (len(nodes),):
                return answer
    except Exception as error:
        raise raised(hook, error) from error
    return _scores_of_list(hook, answer) if hook.per_node else _checked_scores(hook, answer, len(nodes))


def _scores_of_list(hook: BoundHook, scores: Sequence[Any]) -> Int64Array:
    for score in scores:
        if type(score) is not int and not issubclass(type(score), np.integer):
            for one in scores:  # coroutines among them would warn that they were never awaited
                describe_value(one)
            raise wrong_answer(hook, score)
    try:
        return np.array(scores, dtype=np.int64)
    except OverflowError:
        raise wrong_answer(hook, scores, "an int that does not fit into 64 bits") from None


def _checked_scores(hook: BoundHook, scores: object, count: int) -> Int64Array:
    if not issubclass(type(scores), np.ndarray):
        raise wrong_answer(hook, scores)
    array = np.asarray(scores)
    if array.dtype.kind not in "iu":
        mend = "scores must be integers; round them and convert with .astype(np.int64)"
        raise wrong_answer(hook, scores, mend=mend)
    if array.shape != (count,):
        raise wrong_answer(hook, scores, f"shape {array.shape}, expected ({count},)")
    return array.astype(np.int64)


def ask_normalized(hook: ScoreHook, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
    """Call normalize_score, which may overwrite *scores*; same shape.

    Raises:
        HookFailed: the plugin failed.
    """
    normalize = hook.normalize
    assert normalize is not None
    count = len(scores)
    try:
        answer = normalize.function(pod, scores, state)
    except Exception as error:
        raise raised(normalize, error) from error
    if type(answer) is np.ndarray and answer.dtype is _INT64 and answer.shape == (count,):
        return answer
    return _checked_scores(normalize, answer, count)


def check_score_range(hook: ScoreHook, scores: Int64Array) -> None:
    """Scores are 0..100 once normalised.

    Raises:
        HookFailed: one is not.
    """
    if len(scores) == 1:
        if 0 <= int(scores[0]) <= MAX_SCORE:
            return
    # Read as unsigned, negative numbers are huge: the highest shows both kinds of offenders.
    elif len(scores) == 0 or scores.view(np.uint64).max() <= MAX_SCORE:
        return
    lowest, highest = int(scores.min()), int(scores.max())
    bad = lowest if lowest < 0 else highest
    raise HookFailed(
        hook if hook.normalize is None else hook.normalize,
        f'plugin "{hook.plugin}" returns an invalid score {bad}, '
        f"it should in the range of [0, {MAX_SCORE}] after normalizing",
        prefix="applying score defaultWeights on Score plugins: ",
    )


def ask_permit(hook: BoundHook, pod: Pod, node_name: str, state: CycleState) -> Wait | Status | None:
    """Call permit: None, a rejecting status, or how long to wait.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        answer = hook.function(pod, node_name, state)
    except Exception as error:
        raise raised(hook, error) from error
    if answer is None:
        return None
    if not issubclass(type(answer), Wait):
        return _status(hook, answer)
    seconds = answer.timeout_seconds
    if type(seconds) not in (int, float) or isnan(seconds):
        raise wrong_answer(
            hook,
            answer,
            f"a Wait whose timeout_seconds is {describe_value(seconds)}"
            + (" (not a number)" if type(seconds) is float else ""),
            "give the seconds as a number",
        )
    return answer  # type: ignore[no-any-return]  # looked at above


def ask_pre_flight(hook: BoundHook, pod: Pod, node_name: str, state: CycleState) -> PreFlight | Status | None:
    """Call pre_bind_pre_flight: None or a `PreFlight` if pre_bind has something to do, a status with Skip if not.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        answer = hook.function(pod, node_name, state)
    except Exception as error:
        raise raised(hook, error) from error
    if answer is None:
        return None
    if issubclass(type(answer), PreFlight):
        if type(answer.allow_parallel) is not bool:
            what = f"a PreFlight whose allow_parallel is {describe_value(answer.allow_parallel)}"
            raise wrong_answer(hook, answer, what, "use True or False")
        return answer  # type: ignore[no-any-return]  # looked at above
    status = checked_status(hook, answer)
    if status.code in (Code.SUCCESS, Code.SKIP, Code.ERROR):
        return _status(hook, status)
    raise HookFailed(
        hook,
        f'PreBindPreFlight {hook.plugin} returned "{status.code.label}", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status",
        prefix="",
    )


def call_unreserve(hook: BoundHook, pod: Pod, node_name: str, state: CycleState) -> None:
    """Call unreserve; what it returns does not matter, unless it is something that had to be awaited.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        answer = hook.function(pod, node_name, state)
    except Exception as error:
        raise raised(hook, error) from error
    if issubclass(type(answer), CoroutineType):
        raise wrong_answer(hook, answer)


def clone_state(state: CycleState) -> CycleState:
    """A clone of *state*, for which values of plugins are cloned by their own ``clone``.

    Raises:
        HookFailed: one of these failed.
    """
    try:
        return state.clone()
    except Exception as error:
        hook = BoundHook("CycleState", "clone", state.clone)
        raise raised(hook, error) from error


# --- the queue ------------------------------------------------------------------------------------------------------


def ask_sort_key(hook: BoundHook, queued: QueuedPod) -> Any:
    """Call queue_sort; the key compares with itself, which does not say that it compares with other keys.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        key = hook.function(queued)
    except Exception as error:
        raise raised(hook, error) from error
    try:
        # NaN differs from itself; things without an order raise.
        is_ordered = all(part == part for part in (key if type(key) is tuple else (key,))) and not key < key
    except Exception:
        is_ordered = False
    if not is_ordered:
        raise wrong_answer(hook, key, f"{describe_value(key)}, which has no order")
    return key


def ask_signature(hooks: Iterable[BoundHook], pod: Pod) -> tuple[Hashable, ...]:
    """Call sign of one plugin after the other; None stands for plugins whose answers may not be cached for *pod*.

    Raises:
        HookFailed: a plugin failed.
    """
    parts: list[Hashable] = []
    for hook in hooks:
        try:
            part = hook.function(pod)
        except Exception as error:
            raise raised(hook, error) from error
        try:
            hash(part)
        except Exception as error:
            raise wrong_answer(hook, part, f"{describe_value(part)}, which is not hashable") from error
        if type(part) is CoroutineType:
            raise wrong_answer(hook, part)
        parts.append(part)
    return tuple(parts)


def ask_hint(hook: BoundHook, pod: Pod, old: Any, new: Any) -> Hint:
    """Call a hint function.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        hint = hook.function(pod, old, new)
    except Exception as error:
        raise raised(hook, error) from error
    if type(hint) is not Hint:
        raise wrong_answer(hook, hint)
    return hint


def ask_events(hook: BoundHook) -> list[EventRegistration]:
    """Call events_to_register.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        answer = hook.function()
        registrations = None if type(answer) in (str, bytes, CoroutineType) else list(answer)
    except Exception as error:
        raise raised(hook, error) from error
    if registrations is None:
        raise wrong_answer(hook, answer)
    for registration in registrations:
        _check_registration(hook, registration)
    return registrations


def _check_registration(hook: BoundHook, registration: object) -> None:
    if type(registration) is not EventRegistration:
        raise wrong_answer(hook, registration, f"{describe_value(registration)} among its registrations")
    event, hint = registration.event, registration.hint
    if type(event) is not ClusterEvent or not isinstance(event.resource, str) or not isinstance(event.action, int):
        raise wrong_answer(hook, event, "a registration for something that is no event of a resource and an action")
    if hint is not None and not callable(hint):
        raise wrong_answer(hook, hint, f"a registration whose hint is {describe_value(hint)}, not a function")


# --- hooks that may be async ----------------------------------------------------------------------------------------


@frozen(eq=False)
class HookCall:
    """A call that the daemon is to make, and to await if there is something to be awaited."""

    hook: BoundHook
    args: tuple[object, ...]


@frozen(eq=False)
class HookResult:
    """What came of a `HookCall`: a value, or an exception."""

    value: object = None
    error: Exception | None = None


def read_status(hook: BoundHook, result: HookResult) -> Status | None:
    """The same as `ask_status` for a call that was made by the daemon.

    Raises:
        HookFailed: the plugin failed.
    """
    value = _value(hook, result)
    return None if value is None else _status(hook, value)


def read_post_filter(hook: BoundHook, result: HookResult) -> PostFilterResult | None:
    """What post_filter answered; a status in it has any code.

    Raises:
        HookFailed: the plugin raised, or answered with something else.
    """
    value = _value(hook, result)
    if value is None:
        return None
    if not issubclass(type(value), PostFilterResult):
        raise wrong_answer(hook, value)
    answer: PostFilterResult = value  # type: ignore[assignment]  # looked at above
    nominated = answer.nominated_node_name
    if nominated is not None and type(nominated) is not str:
        what = f"a PostFilterResult whose nominated_node_name is {describe_value(nominated)}"
        raise wrong_answer(hook, value, what, "give a node's name, or None")
    if answer.status is None:
        return answer
    return evolve(answer, status=checked_status(hook, answer.status))


def read_nothing(hook: BoundHook, result: HookResult) -> None:
    """What came of a hook whose return value does not matter.

    Raises:
        HookFailed: the plugin raised.
    """
    _value(hook, result)


def _value(hook: BoundHook, result: HookResult) -> object:
    if result.error is not None:
        raise raised(hook, result.error) from result.error
    return result.value
