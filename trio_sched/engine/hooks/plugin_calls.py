"""The only module of the engine that calls hooks: one function per type of return value.

Each turns whatever comes back, any object and any exception, into a value of the declared type or a `HookFailed` that
names the plugin, its distribution, the hook, what was wrong and how to fix it (`return_values`, `hook_failure`).
Hooks that may be ``async`` are called by the daemon, which hands the outcome back as a `HookResult`.

What is raised need not be an ``Exception`` (``SystemExit``, errors of asyncio): that fails the plugin all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from types import CoroutineType, FrameType, NoneType
from typing import Any, Final, TypeVar

import numpy as np
from attrs import define

from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook, ScoreHook
from trio_sched.engine.hooks.hook_failure import (
    HookFailed,
    HookTimedOut,
    describe_value,
    plain_text,
    raised,
    wrong_return_value,
)
from trio_sched.engine.hooks.placement_values import (
    MAX_PLACEMENTS,
    MAX_VICTIMS,
    read_placements,
    read_pod_group_post_filter,
    read_victims,
)
from trio_sched.engine.hooks.return_values import (
    SUPPORTED,
    check_registration,
    distinct_codes,
    read_clause,
    read_node_scores,
    read_permit,
    read_post_filter,
    read_pre_filter,
    read_pre_flight,
    read_scores,
    read_sort_key,
    read_status,
    read_verdicts,
)
from trio_sched.interrupts import raise_interrupt
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Clause
from trio_sched.plugin_api.cluster_events import EventRegistration, Hint
from trio_sched.plugin_api.cycle_state import CycleState, ValueNotCloned
from trio_sched.plugin_api.pod_groups import (
    Placement,
    PlacementAssignments,
    PodGroupInfo,
    PodGroupPostFilterResult,
    PodGroupTrial,
)
from trio_sched.plugin_api.status import SKIP, Code, Status
from trio_sched.plugin_api.verdicts import PostFilterResult, PreFilterResult, PreFlight, QueuedPod, Verdicts, Wait
from trio_sched.snapshot.arrays import BoolArray, Int64Array
from trio_sched.snapshot.node_columns import NodeColumns

T = TypeVar("T")

_MAX_CLAUSES: Final = 1000
_MAX_REGISTRATIONS: Final = 1000
_NO_ITERABLES: Final = (str, bytes, CoroutineType, EventRegistration, NoneType)
"""What is returned by mistake: text can be iterated over, the others are a list or a return that was forgotten."""
_INT64: Final = np.dtype(np.int64)
_MAY_SKIP: Final = frozenset(hook for hook, codes in SUPPORTED.items() if Code.SKIP in codes)


def call_status_hook(hook: BoundHook, *args: object) -> Status | None:
    """Call a hook that returns a Status or None.

    Returns:
        None for success, else a status of a code that the hook supports; a rejection bears the plugin's name.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        returned = hook.function(*args)
    except BaseException as error:
        raise raised(hook, error) from error
    if returned is None or (returned is SKIP and hook.hook in _MAY_SKIP):
        return returned
    return read_status(hook, returned)


# --- the scheduling cycle -------------------------------------------------------------------------------------------


def call_pre_filter(
    hook: BoundHook, pod: Pod, nodes: NodeColumns, state: CycleState
) -> PreFilterResult | Status | None:
    """Call pre_filter; its result, a status (Skip, or rejected), or None for success.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        returned = hook.function(pod, nodes, state)
    except BaseException as error:
        raise raised(hook, error) from error
    return returned if returned is None or returned is SKIP else read_pre_filter(hook, returned)


def call_filter(hook: FilterHook, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
    """Call a filter that takes all nodes at once.

    Raises:
        HookFailed: the plugin failed as a whole; on single nodes it may still, see `check_nodes`.
    """
    try:
        verdicts = hook.function(pod, nodes, state)
    except BaseException as error:
        raise raised(hook, error) from error
    if type(verdicts) is Verdicts:
        try:
            codes = verdicts.codes
            is_fine = type(codes) is np.ndarray and codes.dtype.kind in "biu" and codes.shape == (len(nodes),)
            if is_fine and type(verdicts.may_fail) is bool:
                return verdicts
        except AttributeError:  # made without fields; that is found out below
            pass
    return read_verdicts(hook, verdicts, len(nodes))


def explain(hook: BoundHook, verdicts: Verdicts, code: int) -> Status:
    """The status that *verdicts* gives for *code*, which is not 0.

    Raises:
        HookFailed: the plugin failed on the nodes with that code, or cannot explain it.
    """
    try:
        returned = verdicts.explain(code)
    except BaseException as error:
        raise raised(hook, error) from error
    if not issubclass(type(returned), Status):
        raise _wrong_reason(hook, returned, code, describe_value(returned))
    if returned is SKIP:
        raise _wrong_reason(hook, returned, code, "SKIP")
    status = read_status(hook, returned)
    if status is None:
        raise wrong_return_value(hook, returned, f"Success for the code {code}", "nodes that pass must have the code 0")
    return status


def _wrong_reason(hook: BoundHook, returned: object, code: int, what: str) -> HookFailed:
    problem = f"Verdicts that explain the code {code} by {what}"
    return wrong_return_value(hook, returned, problem, 'give a rejecting Status: unschedulable("why") for instance')


def check_nodes(hook: FilterHook, verdicts: Verdicts, reached: BoolArray) -> None:
    """Look whether a filter failed on a node that it had to judge; only needed if ``verdicts.may_fail``.

    Args:
        hook: the filter.
        verdicts: what it returned.
        reached: shape (nodes,): the nodes that passed the filters before it.

    Raises:
        HookFailed: it did.
    """
    for code in distinct_codes(verdicts.codes[reached]):
        if code:
            explain(hook, verdicts, code)


def call_score(hook: ScoreHook, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
    """Call score, or score_node for each of *nodes*; shape (nodes,).

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        if hook.per_node:
            returned: Any = [hook.function(pod, node, state) for node in nodes]
        else:
            returned = hook.function(pod, nodes, state)
            if type(returned) is np.ndarray and returned.dtype is _INT64 and returned.shape == (len(nodes),):
                return returned
    except BaseException as error:
        raise raised(hook, error) from error
    return read_node_scores(hook, returned) if hook.per_node else read_scores(hook, returned, len(nodes))


def call_normalize_score(hook: ScoreHook, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
    """Call normalize_score, which may overwrite *scores*; same shape.

    Raises:
        HookFailed: the plugin failed.
    """
    normalize = hook.normalize
    assert normalize is not None
    count = len(scores)
    try:
        returned = normalize.function(pod, scores, state)
    except BaseException as error:
        raise raised(normalize, error) from error
    if type(returned) is np.ndarray and returned.dtype is _INT64 and returned.shape == (count,):
        return returned
    return read_scores(normalize, returned, count)


# --- the node is chosen ---------------------------------------------------------------------------------------------


def call_permit(hook: BoundHook, pod: Pod, node_name: str, state: CycleState) -> Wait | Status | None:
    """Call permit: None, a rejecting status, or how long to wait.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        returned = hook.function(pod, node_name, state)
    except BaseException as error:
        raise raised(hook, error) from error
    return None if returned is None else read_permit(hook, returned)


def call_pre_bind_pre_flight(hook: BoundHook, pod: Pod, node_name: str, state: CycleState) -> PreFlight | Status | None:
    """Call pre_bind_pre_flight: None or a `PreFlight` if pre_bind has something to do, a status with Skip if not.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        returned = hook.function(pod, node_name, state)
    except BaseException as error:
        raise raised(hook, error) from error
    return returned if returned is None or returned is SKIP else read_pre_flight(hook, returned)


def call_unreserve(hook: BoundHook, pod: Pod, node_name: str, state: CycleState) -> None:
    """Call unreserve; what it returns does not matter, unless it is something that had to be awaited.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        returned = hook.function(pod, node_name, state)
    except BaseException as error:
        raise raised(hook, error) from error
    if issubclass(type(returned), CoroutineType):
        raise wrong_return_value(hook, returned)


def clone_state(state: CycleState) -> CycleState:
    """A clone of *state*, for which values of plugins are cloned by their own ``clone``.

    Raises:
        HookFailed: one of these failed.
    """
    try:
        return state.clone()
    except ValueNotCloned as failed:
        error = failed.__cause__
        assert error is not None
        try:
            key = plain_text(repr(failed.key))
        except Exception:
            key = describe_value(failed.key)
        raise raised(BoundHook(f"CycleState value {key}", "clone", state.clone), error) from error


# --- pod groups -----------------------------------------------------------------------------------------------------


def call_placement_generate(
    hook: BoundHook, group: PodGroupInfo, nodes: NodeColumns, state: CycleState
) -> tuple[Placement, ...] | Status | None:
    """Call placement_generate: the placements, a rejecting status, or None if any node will do.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        returned = hook.function(group, nodes, state)
        elements = None if _is_status(returned) else list(islice(returned, MAX_PLACEMENTS + 1))
    except BaseException as error:
        raise raised(hook, error) from error
    if elements is not None:
        return read_placements(hook, elements, nodes.names)
    return None if returned is None else read_status(hook, returned)


def call_placement_score(
    hook: ScoreHook, group: PodGroupInfo, placements: Iterable[PlacementAssignments], state: CycleState
) -> Int64Array:
    """Call placement_score for each of *placements*; shape (placements,).

    Raises:
        HookFailed: the plugin failed.
    """
    scores: list[Any] = []
    for placement in placements:
        try:
            scores.append(hook.function(group, placement, state))
        except BaseException as error:
            raise raised(hook, error) from error
        if issubclass(type(scores[-1]), Status):
            read_status(hook, scores[-1])
    return read_node_scores(hook, scores)


def call_normalize_placement_score(
    hook: ScoreHook, group: PodGroupInfo, scores: Int64Array, state: CycleState
) -> Int64Array:
    """Call normalize_placement_score, which may overwrite *scores*; same shape.

    Raises:
        HookFailed: the plugin failed.
    """
    normalize = hook.normalize
    assert normalize is not None
    count = len(scores)
    try:
        returned = normalize.function(group, scores, state)
    except BaseException as error:
        raise raised(normalize, error) from error
    if issubclass(type(returned), Status):
        read_status(normalize, returned)
    return read_scores(normalize, returned, count)


def call_pod_group_post_filter(
    hook: BoundHook, group: PodGroupInfo, trial: PodGroupTrial
) -> PodGroupPostFilterResult | Status | None:
    """Call pod_group_post_filter: a result, a rejecting status, or None if there is nothing it can do.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        returned = hook.function(group, trial)
        if type(returned) is PodGroupPostFilterResult:
            return read_pod_group_post_filter(hook, returned)
        victims = None if _is_status(returned) else list(islice(returned, MAX_VICTIMS + 1))
    except HookFailed:
        raise
    except BaseException as error:
        raise raised(hook, error) from error
    if victims is not None:
        return PodGroupPostFilterResult(read_victims(hook, victims))
    return None if returned is None else read_status(hook, returned)


def _is_status(returned: object) -> bool:
    return returned is None or issubclass(type(returned), Status) or type(returned) in (str, bytes, CoroutineType)


# --- the queue ------------------------------------------------------------------------------------------------------


def call_queue_sort(hook: BoundHook, queued: QueuedPod) -> Any:
    """Call queue_sort; the key compares with itself, which does not say that it compares with other keys.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        key = hook.function(queued)
    except BaseException as error:
        raise raised(hook, error) from error
    return read_sort_key(hook, key)


def call_sign(hooks: Iterable[BoundHook], pod: Pod) -> tuple[Hashable, ...]:
    """Call sign of one plugin after the other; None stands for plugins whose results may not be cached for *pod*.

    Raises:
        HookFailed: a plugin failed.
    """
    parts: list[Hashable] = []
    for hook in hooks:
        try:
            part = hook.function(pod)
        except BaseException as error:
            raise raised(hook, error) from error
        try:
            hash(part)
        except BaseException as error:
            raise_interrupt(error)
            raise wrong_return_value(hook, part, f"{describe_value(part)}, which is not hashable") from error
        if type(part) is CoroutineType:
            raise wrong_return_value(hook, part)
        parts.append(part)
    return tuple(parts)


def call_hint(hook: BoundHook, pod: Pod, old: Any, new: Any) -> Hint:
    """Call a hint function.

    Raises:
        HookFailed: the plugin failed.
    """
    try:
        hint = hook.function(pod, old, new)
    except BaseException as error:
        raise raised(hook, error) from error
    if type(hint) is not Hint:
        raise wrong_return_value(hook, hint)
    return hint


def call_events_to_register(hook: BoundHook) -> list[EventRegistration]:
    """Call events_to_register.

    Raises:
        HookFailed: the plugin failed.
    """
    registrations = _listed(hook, _MAX_REGISTRATIONS, "registrations")
    for registration in registrations:
        check_registration(hook, registration)
    return registrations


def _listed(hook: BoundHook, most: int, what: str, *args: object) -> list[Any]:
    """The elements of the iterable that *hook* returns, which nobody has checked.

    Raises:
        HookFailed: the plugin failed, returned no iterable, or one of more than *most* elements.
    """
    try:
        returned = hook.function(*args)
        found = None if type(returned) in _NO_ITERABLES else list(islice(returned, most + 1))
    except BaseException as error:
        raise raised(hook, error) from error
    if found is None:
        raise wrong_return_value(hook, returned)
    if len(found) > most:
        raise wrong_return_value(hook, returned, f"more than {most} {what}")
    return found


# --- explaining a pod -------------------------------------------------------------------------------------------------


def call_clauses(hook: BoundHook, pod: Pod, nodes: NodeColumns, state: CycleState) -> list[Clause]:
    """Call clauses.

    Raises:
        HookFailed: the plugin failed.
    """
    found = _listed(hook, _MAX_CLAUSES, "clauses", pod, nodes, state)
    return [read_clause(hook, clause, len(nodes)) for clause in found]


def call_of_clause(hook: BoundHook, function: Callable[..., T], *args: object) -> T:
    """Call what a clause brings along: its cause, its details, its changes, or an edit.

    Raises:
        HookFailed: it failed.
    """
    try:
        return function(*args)
    except BaseException as error:
        raise raised(hook, error) from error


def hook_called_by(frame: FrameType) -> BoundHook | None:
    """The hook that *frame* calls, if it is one of a function of this module that does."""
    if frame.f_globals is not globals():
        return None
    held = frame.f_locals
    hook = held.get("normalize") or held.get("hook")
    return hook if isinstance(hook, BoundHook) else None


# --- hooks that may be async ----------------------------------------------------------------------------------------


@define(eq=False)  # not frozen: one is made for every bind
class HookCall:
    """A call that the daemon is to make, and to await if there is something to be awaited."""

    hook: BoundHook
    args: tuple[object, ...]


@define(eq=False)
class HookResult:
    """What came of a `HookCall`: a value, or an exception."""

    value: object = None
    error: BaseException | None = None


def read_status_result(hook: BoundHook, result: HookResult) -> Status | None:
    """Check the result of a call that the daemon made, as `call_status_hook` does.

    Raises:
        HookFailed: the plugin failed.
    """
    if hook.guard is not None:
        return _read_guarded(hook, result, read_status, has_neutral=False)
    value = _read_value(hook, result)
    return None if value is None else read_status(hook, value)


def read_post_filter_result(hook: BoundHook, result: HookResult) -> PostFilterResult | None:
    """What post_filter returned; a status in it has any code but Skip and Wait.

    Raises:
        HookFailed: the plugin raised, or returned something else.
    """
    if hook.guard is not None:
        return _read_guarded(hook, result, read_post_filter, has_neutral=True)
    value = _read_value(hook, result)
    return None if value is None else read_post_filter(hook, value)


def read_value(hook: BoundHook, result: HookResult) -> object:
    """What came of a call, for hooks whose return value does not matter.

    Raises:
        HookFailed: the plugin raised, or took too long.
    """
    if hook.guard is not None:
        return _read_guarded(hook, result, lambda _hook, value: value, has_neutral=True)
    return _read_value(hook, result)


def _read_guarded(
    hook: BoundHook, result: HookResult, read: Callable[[BoundHook, object], T], *, has_neutral: bool
) -> T | None:
    """What *read* makes of a result; None in place of a failure that gets a neutral answer.

    Raises:
        HookFailed: the plugin failed, and fails closed.
    """
    guard = hook.guard
    assert guard is not None
    try:
        value = _read_value(hook, result)
        made = None if value is None else read(hook, value)
    except HookFailed as failed:
        if not guard.failed(failed, has_neutral=has_neutral):
            raise
        return None
    guard.succeeded(hook.hook)
    return made


def _read_value(hook: BoundHook, result: HookResult) -> object:
    if type(result.error) is HookTimedOut:
        raise HookFailed(hook, f"{hook.hook} {result.error}")
    if result.error is not None:
        raise raised(hook, result.error) from result.error
    return result.value
