"""Reads what plugins returned: checks every part that is used later, so that nothing can fail where it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

import numpy as np
from attrs import evolve

from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook, ScoreHook
from trio_sched.engine.hooks.hook_failure import (
    HookFailed,
    describe_value,
    error_text,
    has_plain_text,
    plain_text,
    wrong_return_value,
)
from trio_sched.go.text import quote
from trio_sched.interrupts import raise_interrupt
from trio_sched.plugin_api.clauses import Change, Clause
from trio_sched.plugin_api.cluster_events import Action, ClusterEvent, EventRegistration, Hint
from trio_sched.plugin_api.custom_resources import CustomResource
from trio_sched.plugin_api.status import REJECTED, Code, Status
from trio_sched.plugin_api.verdicts import (
    MAX_SCORE,
    CodeArray,
    PostFilterResult,
    PreFilterResult,
    PreFlight,
    Verdicts,
    Wait,
)
from trio_sched.snapshot.arrays import BoolArray, Int64Array

_CODES: Final = frozenset(map(int, Code))
_MAX_REASONS: Final = 1000
_MAX_WAIT_SECONDS: Final = 10**9
"""Longer waits are cut to this, so that they can be added to a time; the framework's own limit is far below."""

SUPPORTED: Final[Mapping[str, frozenset[Code]]] = {
    "pre_enqueue": REJECTED | {Code.SKIP, Code.WAIT},  # whatever is not Success keeps the pod back
    "pre_filter": frozenset({Code.SKIP, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE}),
    "filter": REJECTED,
    "filter_node": REJECTED,
    "add_pod": frozenset(),
    "remove_pod": frozenset(),
    "pre_score": frozenset({Code.SKIP}),
    "reserve": REJECTED,
    "permit": REJECTED,
    "placement_generate": REJECTED,
    "placement_feasible": frozenset({Code.UNSCHEDULABLE, Code.WAIT}),
    "placement_score": frozenset(),
    "normalize_placement_score": frozenset(),
    "pod_group_post_filter": REJECTED,
    "pre_bind_pre_flight": frozenset({Code.SKIP}),
    "pre_bind": REJECTED,
    "bind": REJECTED | {Code.SKIP},
}
"""Hook → the codes, besides Success, that are not the plugin's failure."""


def read_status(hook: BoundHook, returned: object) -> Status | None:
    """*returned* as a status of a code that the hook supports; None for success.

    Raises:
        HookFailed: it is something else, or Error.
    """
    status = checked_status(hook, returned)
    if status.code == Code.SUCCESS:
        return None
    if status.code in SUPPORTED[hook.hook]:
        return status.by(hook.plugin) if status.is_rejected else status
    raise _error_of_status(hook, status)


def _error_of_status(hook: BoundHook, status: Status) -> HookFailed:
    """The failure of a plugin that returned Error, or a code that the hook does not support."""
    text = status.message if status.error is None else error_text(status.error)
    if status.code != Code.ERROR and not text:
        return wrong_return_value(hook, status, f"a Status of code {status.code.name}")
    failed = HookFailed(hook, text, returned_error=status.code == Code.ERROR)
    failed.__cause__ = status.error
    return failed


def checked_status(hook: BoundHook, returned: object) -> Status:
    """*returned*, if it is a Status all parts of which can be used.

    Raises:
        HookFailed: it is not.
    """
    if not issubclass(type(returned), Status):
        raise wrong_return_value(hook, returned)
    code, reasons, error, clause, remedy = _fields(hook, returned, "code", "reasons", "error", "clause", "remedy")
    if type(code) is not Code:
        if type(code) is not int or code not in _CODES:
            problem = f"a Status whose code is {_describe_code(code)}"
            raise wrong_return_value(hook, returned, problem, "use a member of Code")
        code = Code(code)
    if type(reasons) is not tuple or not all(issubclass(type(reason), str) for reason in reasons):
        raise wrong_return_value(
            hook, returned, "a Status whose reasons are not a tuple of strings", 'write unschedulable("why", "and why")'
        )
    texts = tuple(map(plain_text, reasons[:_MAX_REASONS]))
    if len(reasons) > _MAX_REASONS:
        texts += (f"and {len(reasons) - _MAX_REASONS} more reasons",)
    if error is not None:
        if not issubclass(type(error), BaseException):
            raise wrong_return_value(
                hook, returned, f"a Status whose error is {describe_value(error)}", "use failure(exception or text)"
            )
        if not has_plain_text(error):  # texts are made of it later, where that must not fail
            replacement = RuntimeError(error_text(error))
            replacement.__cause__ = error
            error = replacement
    if clause or remedy is not None:
        if not issubclass(type(clause), str) or not (remedy is None or issubclass(type(remedy), Change)):
            raise wrong_return_value(
                hook, returned, "a Status with a wrong clause or remedy", "give them with about(text, remedy=Change(…))"
            )
        return Status(code, texts, error, clause=plain_text(clause), remedy=remedy)
    return Status(code, texts, error)


def _fields(hook: BoundHook, returned: object, *names: str) -> list[Any]:
    """The attributes *names* of a return value, which a subclass can lack or compute.

    Raises:
        HookFailed: one of them cannot be read.
    """
    values: list[Any] = []
    for name in names:
        try:
            values.append(getattr(returned, name))
        except BaseException as error:
            raise_interrupt(error)
            raise wrong_return_value(hook, returned, f"{describe_value(returned)} without {name}") from error
    return values


def _describe_code(code: object) -> str:
    return f"the number {code}" if type(code) in (int, float, bool) else describe_value(code)


def read_pre_filter(hook: BoundHook, returned: object) -> PreFilterResult | Status | None:
    """What pre_filter returned: its result, a status (Skip, or rejected), or None for success.

    Raises:
        HookFailed: it is something else.
    """
    if not issubclass(type(returned), PreFilterResult):
        return read_status(hook, returned)
    (names,) = _fields(hook, returned, "node_names")
    if names is None:
        return PreFilterResult(None)
    if issubclass(type(names), set | frozenset):
        iterate: Any = set.__iter__ if issubclass(type(names), set) else frozenset.__iter__
        elements: list[Any] = list(iterate(names))
        for element in elements:  # other things would be compared with names, which can raise
            if type(element) is not str:
                problem = f"a PreFilterResult with {describe_value(element)} among its node_names"
                raise wrong_return_value(hook, returned, problem, "give a frozenset of names, or None for all nodes")
        return PreFilterResult(frozenset(elements))
    raise wrong_return_value(
        hook,
        returned,
        f"a PreFilterResult whose node_names are {describe_value(names)}",
        "give a frozenset of names, or None for all nodes",
    )


def read_verdicts(hook: FilterHook, verdicts: object, count: int) -> Verdicts:
    """*verdicts* about *count* nodes, their codes as a plain array.

    Raises:
        HookFailed: they are something else.
    """
    if not issubclass(type(verdicts), Verdicts):
        raise wrong_return_value(hook, verdicts)
    codes, explain, may_fail = _fields(hook, verdicts, "codes", "explain", "may_fail")
    if not issubclass(type(codes), np.ndarray):
        raise wrong_return_value(
            hook, verdicts, f"Verdicts whose codes are {describe_value(codes)}", "codes must be an array of integers"
        )
    codes = np.asarray(codes)
    if codes.dtype.kind not in "biu":
        raise wrong_return_value(
            hook,
            verdicts,
            f"Verdicts whose codes have dtype {codes.dtype}",
            "codes must be integers or booleans; convert them with .astype(np.int64)",
        )
    if codes.shape != (count,):
        raise wrong_return_value(
            hook, verdicts, f"shape {codes.shape}, expected ({count},)", "codes need one entry for each node"
        )
    if type(may_fail) is not bool:
        problem = f"Verdicts whose may_fail is {describe_value(may_fail)}"
        raise wrong_return_value(hook, verdicts, problem, "use True or False")
    return Verdicts(codes, explain, may_fail)


def distinct_codes(codes: CodeArray | BoolArray) -> list[int]:
    """The different *codes*, in ascending order.

    What ``np.unique`` returns, which would import ``numpy.ma`` in the midst of the first attempt to schedule.
    """
    ordered = np.sort(codes)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    distinct: list[int] = ordered[is_first].tolist()
    return distinct


def read_node_scores(hook: BoundHook, scores: Sequence[Any]) -> Int64Array:
    """The scores of single nodes as a column.

    Raises:
        HookFailed: one of them is no int.
    """
    for score in scores:
        if type(score) is not int and (
            not issubclass(type(score), np.integer) or issubclass(type(score), np.timedelta64)
        ):
            for one in scores:  # coroutines among them would warn that they were never awaited
                describe_value(one)
            raise wrong_return_value(hook, score)
    try:
        return np.array(scores, dtype=np.int64)
    except OverflowError:
        raise wrong_return_value(hook, scores, "an int that does not fit into 64 bits") from None


def read_scores(hook: BoundHook, scores: object, count: int) -> Int64Array:
    """*scores* of *count* nodes as int64.

    Raises:
        HookFailed: they are something else, or not whole.
    """
    if not issubclass(type(scores), np.ndarray):
        raise wrong_return_value(hook, scores)
    array = np.asarray(scores)
    if array.dtype.kind not in "iu":
        fix = "scores must be integers; round them and convert with .astype(np.int64)"
        raise wrong_return_value(hook, scores, fix=fix)
    if array.shape != (count,):
        raise wrong_return_value(hook, scores, f"shape {array.shape}, expected ({count},)")
    return array.astype(np.int64)


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
        f"plugin {quote(hook.plugin)} returns an invalid score {bad}, "
        f"it should in the range of [0, {MAX_SCORE}] after normalizing",
        prefix="applying score defaultWeights on Score plugins: ",
    )


def read_permit(hook: BoundHook, returned: object) -> Wait | Status | None:
    """What permit returned: None, a rejecting status, or how long to wait.

    Raises:
        HookFailed: it is something else.
    """
    if not issubclass(type(returned), Wait):
        return read_status(hook, returned)
    seconds, message = _fields(hook, returned, "timeout_seconds", "message")
    if type(seconds) not in (int, float) or seconds != seconds:
        what = "not a number" if type(seconds) is float else describe_value(seconds)
        problem = f"a Wait whose timeout_seconds is {what}"
        raise wrong_return_value(hook, returned, problem, "give the seconds as a number")
    if not issubclass(type(message), str):
        problem = f"a Wait whose message is {describe_value(message)}"
        raise wrong_return_value(hook, returned, problem, "give a text, or none")
    return Wait(min(max(seconds, 0), _MAX_WAIT_SECONDS), plain_text(message))


def read_pre_flight(hook: BoundHook, returned: object) -> PreFlight | Status | None:
    """What pre_bind_pre_flight returned: None or a `PreFlight` if pre_bind has something to do, Skip if not.

    Raises:
        HookFailed: it is something else.
    """
    if issubclass(type(returned), PreFlight):
        (allow_parallel,) = _fields(hook, returned, "allow_parallel")
        if type(allow_parallel) is not bool:
            what = f"a PreFlight whose allow_parallel is {describe_value(allow_parallel)}"
            raise wrong_return_value(hook, returned, what, "use True or False")
        return PreFlight(allow_parallel=allow_parallel)
    status = checked_status(hook, returned)
    if status.code in (Code.SUCCESS, Code.SKIP, Code.ERROR):
        return read_status(hook, status)
    raise HookFailed(
        hook,
        f"PreBindPreFlight {hook.plugin} returned {quote(status.code.label)}, which is unsupported. "
        "It is supposed to return Success, Skip, or Error status",
        prefix="",
    )


def read_post_filter(hook: BoundHook, returned: object) -> PostFilterResult:
    """What post_filter returned; a status in it has any code but Skip and Wait.

    Raises:
        HookFailed: it is something else.
    """
    if not issubclass(type(returned), PostFilterResult):
        raise wrong_return_value(hook, returned)
    status, nominated = _fields(hook, returned, "status", "nominated_node_name")
    if nominated is not None and (type(nominated) is not str or plain_text(nominated) != nominated):
        described = "no text that can be sent" if type(nominated) is str else describe_value(nominated)
        what = f"a PostFilterResult whose nominated_node_name is {described}"
        raise wrong_return_value(hook, returned, what, "give a node's name, or None")
    if status is not None:
        status = checked_status(hook, status)
        if status.code in (Code.SKIP, Code.WAIT):
            what = f"a PostFilterResult whose status is {status.code.label}"
            raise wrong_return_value(hook, returned, what, 'use unschedulable("why"), or no status for success')
    return PostFilterResult(status=status, nominated_node_name=nominated)


def read_sort_key(hook: BoundHook, key: Any) -> Any:
    """A sort key that compares with itself, which does not say that it compares with other keys.

    Raises:
        HookFailed: it does not.
    """
    is_ordered = True
    try:
        for part in key if type(key) is tuple else (key,):
            if part != part:  # NaN
                is_ordered = False
        if key < key:
            is_ordered = False
    except BaseException as error:  # things without an order
        raise_interrupt(error)
        is_ordered = False
    if not is_ordered:
        raise wrong_return_value(hook, key, f"{describe_value(key)}, which has no order")
    return key


def read_clause(hook: BoundHook, clause: object, count: int) -> Clause:
    """Check one of the clauses that clauses gave for *count* nodes.

    Raises:
        HookFailed: it cannot be used.
    """
    if not issubclass(type(clause), Clause):
        raise wrong_return_value(hook, clause, f"an element that is {describe_value(clause)}")
    reason, title, fails = _fields(hook, clause, "reason", "title", "fails")
    for name, text in (("reason", reason), ("title", title)):
        if not issubclass(type(text), str) or not text:
            raise wrong_return_value(hook, clause, f"a Clause whose {name} is {describe_value(text)}", "give it a text")
    if fails is not None and not (type(fails) is np.ndarray and fails.dtype == np.bool_ and fails.shape == (count,)):
        problem = f"a Clause whose fails is {describe_value(fails)}"
        raise wrong_return_value(hook, clause, problem, f"use an array of {count} booleans, one for each node, or None")
    found: Clause = clause  # type: ignore[assignment]  # issubclass has checked it
    return evolve(found, reason=plain_text(reason), title=plain_text(title))


_ALL_ACTIONS: Final = reduce(or_, map(int, Action.__members__.values()))


def check_registration(hook: BoundHook, registration: object) -> None:
    """Check one of the registrations that events_to_register gave.

    Raises:
        HookFailed: it is something else.
    """
    if type(registration) is not EventRegistration:
        raise wrong_return_value(hook, registration, f"{describe_value(registration)} among its registrations")
    event, hint, node_local, custom = _fields(hook, registration, "event", "hint", "node_local", "custom_resource")
    resource, action = _fields(hook, event, "resource", "action") if type(event) is ClusterEvent else (None, 0)
    if not issubclass(type(resource), str) or type(action) not in (int, Action) or not 0 < int(action) <= _ALL_ACTIONS:
        raise wrong_return_value(
            hook, event, "a registration for something that is no event of a resource and an action"
        )
    if type(node_local) is not bool:
        raise wrong_return_value(hook, node_local, f"a registration whose node_local is {describe_value(node_local)}")
    if custom is not None and (type(custom) is not CustomResource or custom.resource != resource):
        raise wrong_return_value(
            hook, custom, f"a registration for {resource} whose custom_resource is {describe_value(custom)}"
        )
    if hint is not None and type(hint) is not Hint and not callable(hint):
        raise wrong_return_value(hook, hint, f"a registration whose hint is {describe_value(hint)}, not a function")
