"""Hooks of plugins that do not always fail closed: a failing call, or one that is left out, gets a neutral answer.

================================== =============================================================================
hook                               neutral answer
================================== =============================================================================
pre_enqueue, permit, reserve       as if the plugin had nothing against the pod
pre_filter                         Skip: its filter is not called either
filter, filter_node                all nodes pass (filter_node: the node that it failed on)
add_pod, remove_pod                nothing has changed
post_filter, pod_group_post_filter nothing can be done
pre_score                          Skip: its score is not called either
score, normalize_score             0 for every node (score_node: for the node that it failed on)
placement_generate                 any node will do
placement_feasible                 enough pods fit
placement_score                    0
pre_bind_pre_flight                pre_bind has something to do
sign                               nothing is cached for the pod
unreserve, post_bind               none is needed
pre_bind                           there is none: a pod must not start without what was to be prepared for it
================================== =============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from types import CoroutineType
from typing import Any, Final

import numpy as np

from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook, HookFunction, ScoreHook
from trio_sched.engine.hooks.failure_guard import FailureGuard
from trio_sched.engine.hooks.hook_failure import HookFailed, raised, wrong_return_value
from trio_sched.engine.hooks.placement_values import (
    MAX_PLACEMENTS,
    MAX_VICTIMS,
    read_placements,
    read_pod_group_post_filter,
    read_victims,
)
from trio_sched.engine.hooks.return_values import (
    check_score_range,
    distinct_codes,
    read_node_scores,
    read_permit,
    read_pre_filter,
    read_pre_flight,
    read_scores,
    read_status,
    read_verdicts,
)
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.extension_points import ASYNC_HOOKS
from trio_sched.plugin_api.pod_groups import PodGroupInfo, PodGroupPostFilterResult
from trio_sched.plugin_api.status import SKIP, Status, unschedulable
from trio_sched.plugin_api.verdicts import Verdicts

Args = tuple[Any, ...]

_UNGUARDED: Final = frozenset({"clauses", "events_to_register", "run", "pre_bind", "bind", "queue_sort"})


def guarded(hook: BoundHook, guard: FailureGuard, *, has_normalize: bool = False) -> HookFunction:
    """What is called in place of *hook*'s function.

    Args:
        hook: the hook; its function takes all arguments by position.
        guard: counts the failures of its plugin.
        has_normalize: whether the plugin normalizes its scores, whose range then counts only afterwards.
    """
    if hook.hook in _UNGUARDED:
        return hook.function
    neutral = _NEUTRAL.get(hook.hook, _nothing)
    function = hook.function
    if hook.hook in ASYNC_HOOKS:  # how they end shows when they have been awaited: `plugin_calls` tells the guard
        return lambda *args: neutral(args) if guard.is_skipping() else function(*args)
    if hook.hook == "sign":
        return _guarded_sign(hook, guard)
    check = _CHECKS.get(hook.hook, _status)
    if has_normalize:
        check = _UNNORMALIZED.get(hook.hook, check)

    def call(*args: Any) -> Any:
        if guard.is_skipping():
            return neutral(args)
        try:
            returned = function(*args)
        except BaseException as error:
            if guard.failed(raised(hook, error), _subject(args)):
                return neutral(args)
            raise
        try:
            checked = check(hook, args, returned)
        except BaseException as error:
            failed = error if isinstance(error, HookFailed) else raised(hook, error)
            if guard.failed(failed, _subject(args)):
                return neutral(args)
            return returned  # the caller finds the same
        guard.succeeded(hook.hook)
        return checked

    return call


def _guarded_sign(hook: BoundHook, guard: FailureGuard) -> HookFunction:
    function = hook.function

    def sign(pod: Pod) -> Any:
        if guard.is_skipping():
            return None
        try:
            part = function(pod)
            hash(part)
        except BaseException as error:
            if guard.failed(raised(hook, error), pod.key):
                return None
            raise
        if part is None or type(part) is CoroutineType:
            return part
        return part, guard.epoch

    return sign


def _subject(args: Args) -> str:
    """The pod or group that a call is about."""
    first = args[0] if args else None
    return first.key if isinstance(first, Pod | PodGroupInfo) else ""


# --- neutral answers ------------------------------------------------------------------------------------------------


def _nothing(_args: Args) -> None:
    return None


def _skip(_args: Args) -> Status:
    return SKIP


def _zero(_args: Args) -> int:
    return 0


def _zeros(args: Args) -> Any:
    return np.zeros(len(args[1]), dtype=np.int64)  # nodes, or scores


def _every_node_passes(args: Args) -> Verdicts:
    return Verdicts.where(np.ones(len(args[1]), dtype=np.bool_), unschedulable())


_NEUTRAL: Final[Mapping[str, Callable[[Args], Any]]] = {
    "pre_filter": _skip,
    "filter": _every_node_passes,
    "pre_score": _skip,
    "score": _zeros,
    "score_node": _zero,
    "normalize_score": _zeros,
    "placement_score": _zero,
    "normalize_placement_score": _zeros,
}
"""Hook → its neutral answer, where that is not None."""


# --- what they return -----------------------------------------------------------------------------------------------


def _status(hook: BoundHook, _args: Args, returned: Any) -> Any:
    return returned if returned is None or returned is SKIP else read_status(hook, returned)


def _verdicts(hook: BoundHook, args: Args, returned: Any) -> Verdicts:
    """The verdicts; that they can be explained is found out at once, because later there is no neutral answer.

    Raises:
        HookFailed: they are none, or a code cannot be explained.
    """
    assert isinstance(hook, FilterHook)
    verdicts = read_verdicts(hook, returned, len(args[1]))
    for code in distinct_codes(verdicts.codes):
        if code:
            try:
                status = verdicts.explain(code)
            except BaseException as error:
                raise raised(hook, error) from error
            if read_status(hook, status) is None:
                raise wrong_return_value(hook, status, f"Success for the code {code}")
    return verdicts


def _scores(hook: BoundHook, args: Args, returned: Any) -> Any:
    scores = read_scores(hook, returned, len(args[1]))
    _check_range(hook, scores)
    return scores


def _raw_scores(hook: BoundHook, args: Args, returned: Any) -> Any:
    return read_scores(hook, returned, len(args[1]))


def _node_score(hook: BoundHook, _args: Args, returned: Any) -> int:
    scores = read_node_scores(hook, [returned])
    return int(scores[0])


def _node_score_in_range(hook: BoundHook, args: Args, returned: Any) -> int:
    score = _node_score(hook, args, returned)
    _check_range(hook, np.array([score]))
    return score


def _check_range(hook: BoundHook, scores: Any) -> None:
    check_score_range(ScoreHook(hook.plugin, hook.hook, hook.function, hook.source), scores)


def _placements(hook: BoundHook, args: Args, returned: Any) -> Any:
    if returned is None or isinstance(returned, Status | str | bytes | CoroutineType):
        return _status(hook, args, returned)
    return read_placements(hook, list(islice(returned, MAX_PLACEMENTS + 1)), args[1].names)


def _victims(hook: BoundHook, args: Args, returned: Any) -> Any:
    if returned is None or isinstance(returned, Status | str | bytes | CoroutineType):
        return _status(hook, args, returned)
    if type(returned) is PodGroupPostFilterResult:
        return read_pod_group_post_filter(hook, returned)
    return read_victims(hook, list(islice(returned, MAX_VICTIMS + 1)))


def _unreserved(hook: BoundHook, _args: Args, returned: Any) -> None:
    if isinstance(returned, CoroutineType):
        raise wrong_return_value(hook, returned)


_CHECKS: Final[Mapping[str, Callable[[BoundHook, Args, Any], Any]]] = {
    "pre_filter": lambda hook, _args, returned: (
        returned if returned is None or returned is SKIP else read_pre_filter(hook, returned)
    ),
    "filter": _verdicts,
    "score": _scores,
    "score_node": _node_score_in_range,
    "normalize_score": _scores,
    "permit": lambda hook, _args, returned: None if returned is None else read_permit(hook, returned),
    "pre_bind_pre_flight": lambda hook, _args, returned: (
        returned if returned is None or returned is SKIP else read_pre_flight(hook, returned)
    ),
    "unreserve": _unreserved,
    "placement_generate": _placements,
    "placement_score": _node_score,
    "normalize_placement_score": _raw_scores,
    "pod_group_post_filter": _victims,
}
"""Hook → what reads its return value, where that is not a status or None."""
_UNNORMALIZED: Final = {"score": _raw_scores, "score_node": _node_score}
"""Neutral answers for scores whose range does not count yet."""
