"""The failure of a plugin at a hook, in words: what it raised or returned, and the fix.

Source of the prefixes: the scheduling framework of Kubernetes 1.36.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import AsyncGeneratorType, CoroutineType, TracebackType
from typing import Final

import numpy as np

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.go.text import quote
from trio_sched.interrupts import raise_interrupt
from trio_sched.plugin_api.status import Code, Status

_MAX_TEXT: Final = 4096
"""Longer texts of exceptions and reasons are cut to so many characters."""

_PREFIXES: Final[Mapping[str, str]] = {
    "pre_enqueue": "running PreEnqueue plugin {}: ",
    "queue_sort": "running QueueSort plugin {}: ",
    "pre_filter": "running PreFilter plugin {}: ",
    "filter": "running {} filter plugin: ",
    "filter_node": "running {} filter plugin: ",
    "add_pod": "running AddPod on PreFilter plugin {}: ",
    "remove_pod": "running RemovePod on PreFilter plugin {}: ",
    "post_filter": "running PostFilter plugin {}: ",
    "pre_score": "running PreScore plugin {}: ",
    "score": "running Score plugins: plugin {} failed with: ",
    "score_node": "running Score plugins: plugin {} failed with: ",
    "normalize_score": "running Normalize on Score plugins: plugin {} failed with: ",
    "reserve": "running Reserve plugin {}: ",
    "permit": "running Permit plugin {}: ",
    "placement_generate": "",
    "placement_feasible": "running PlacementFeasible plugin {}: ",
    "placement_score": "running PlacementScore plugins: plugin {} failed with: ",
    "normalize_placement_score": "running NormalizePlacementScore on PlacementScore plugins: plugin {} failed with: ",
    "pod_group_post_filter": "",
    "pre_bind_pre_flight": "running PreBindPreFlight {}: ",
    "pre_bind": "running PreBind plugin {}: ",
    "bind": "running Bind plugin {}: ",
    "post_bind": "running PostBind plugin {}: ",
    "clone": "cloning the {name}: ",
}
_A_STATUS: Final = 'return None, or a Status: unschedulable("why") for instance'
_FIXES: Final[Mapping[str, str]] = {
    "queue_sort": "return a sort key that compares with those of other pods: a tuple of numbers for instance",
    "pre_filter": 'return None, a PreFilterResult, SKIP, or a Status: unresolvable("why") for instance',
    "filter": 'return Verdicts: Verdicts.where(passes, unschedulable("why")) for instance',
    "post_filter": "return None or a PostFilterResult",
    "pre_score": "return None or SKIP",
    "score": "return an int64 array with a score for each node",
    "score_node": "return an int",
    "normalize_score": "return an int64 array of the shape of *scores*",
    "permit": 'return None, Wait(seconds), or a Status: unschedulable("why") for instance',
    "placement_generate": "return a list of Placement(name, frozenset(node_names)), None, or a Status",
    "placement_feasible": 'return None, not_yet("why") or unschedulable("why")',
    "placement_score": "return an int",
    "normalize_placement_score": "return an int64 array of the shape of *scores*",
    "pod_group_post_filter": 'return a list of pods to evict, None, or a Status: unschedulable("why") for instance',
    "pre_bind_pre_flight": "return None, SKIP, or PreFlight(...)",
    "add_pod": "return None",
    "remove_pod": "return None",
    "unreserve": "return None from a plain function",
    "sign": "return a hashable value, or None",
    "clauses": "return a list of Clause(reason=..., title=...)",
    "events_to_register": "return a list of on(resource, action, hint)",
    "hint": "return Hint.QUEUE or Hint.SKIP",
}


class HookFailed(Exception):
    """A plugin failed at a hook: it raised, returned Error, or returned something that the hook cannot return.

    The text is kube-scheduler's, with the reason behind the prefix. ``__cause__`` is what the plugin raised, or the
    error of the Status that it returned.
    """

    def __init__(
        self, hook: BoundHook, problem: str, *, prefix: str | None = None, returned_error: bool = False
    ) -> None:
        if prefix is None:
            prefix = _PREFIXES.get(hook.hook, "running plugin {}: ").format(quote(hook.plugin), name=hook.plugin)
        super().__init__(prefix + problem)
        self.hook = hook
        self.problem = problem
        """What was wrong, and the fix."""
        self.returned_error = returned_error
        """Whether the plugin itself returned Error: nothing is wrong with the plugin then."""

    @property
    def status(self) -> Status:
        """The failure as a status of the plugin, code Error."""
        return Status(Code.ERROR, (), self, self.hook.plugin)


class HookTimedOut(Exception):
    """A hook was awaited for too long, so it was cancelled."""

    def __init__(self, limit_seconds: float) -> None:
        super().__init__(limit_seconds)
        self.limit_seconds = limit_seconds

    def __str__(self) -> str:
        return (
            f"took longer than {self.limit_seconds:g} s and was cancelled; give what it waits for a timeout of its own"
        )


def describe_error(error: BaseException) -> str:
    """Type and text of *error*, whatever its ``__str__`` does."""
    name = type_name(type(error))
    text = error_text(error)
    return f"{name}: {text}" if text else name


def error_text(error: BaseException) -> str:
    """``str(error)``, usable as `plain_text` says; a replacement where that fails."""
    try:
        return plain_text(str(error))
    except BaseException as problem:
        raise_interrupt(problem)
        return f"<its __str__ raised {type_name(type(problem))}>"


def plain_text(text: str) -> str:
    """*text* as a plain str that can be encoded (no lone surrogates), cut to a bounded length."""
    if type(text) is str and len(text) <= _MAX_TEXT and text.isascii():
        return text
    return str.__str__(text)[:_MAX_TEXT].encode("utf-8", "replace").decode()


def has_plain_text(error: BaseException) -> bool:
    """Whether ``str(error)`` can be used as it is."""
    try:
        text = str(error)
    except BaseException as problem:
        raise_interrupt(problem)
        return False
    return type(text) is str and plain_text(text) == text


def type_name(kind: type) -> str:
    """The name of a class, whatever its metaclass does."""
    name: str = type.__dict__["__name__"].__get__(kind)
    return plain_text(name)


def raised(hook: BoundHook, error: BaseException) -> HookFailed:
    """The failure of a plugin that raised *error*; the traceback of *error* then begins in the plugin.

    Raises:
        KeyboardInterrupt: *error* is one, which came to the process, not from the plugin.
    """
    raise_interrupt(error)
    BaseException.with_traceback(error, _from_plugin_on(error.__traceback__))
    return HookFailed(hook, f"{hook.hook} raised {describe_error(error)}")


def _from_plugin_on(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        if not str(module).startswith(("trio_sched.engine.", "trio_sched.daemon.")):
            return traceback
        traceback = traceback.tb_next
    return None


def place_in_plugin(error: BaseException | None) -> str:
    """Where a plugin has raised *error*, as `` (file.py:12)``, or nothing; for texts without a traceback."""
    traceback = None if error is None else _from_plugin_on(error.__traceback__)
    if traceback is None:
        return ""
    file, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
    while (traceback := traceback.tb_next) is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            line = traceback.tb_lineno
    return "" if file.startswith("<") else f" ({plain_text(file.rpartition('/')[2])}:{line})"


def wrong_return_value(hook: BoundHook, returned: object, problem: str = "", fix: str = "") -> HookFailed:
    """The failure of a plugin that returned something that the hook cannot return."""
    if not problem:
        problem = describe_value(returned)
    return HookFailed(hook, f"{hook.hook} returned {problem}; {fix or _FIXES.get(hook.hook, _A_STATUS)}")


def describe_value(value: object) -> str:
    """The type of *value*; for arrays with dtype and shape. A coroutine is closed: nothing will await it."""
    kind = type(value)
    if issubclass(kind, CoroutineType):
        with contextlib.suppress(Exception):  # one that was started may refuse to end
            value.close()  # type: ignore[attr-defined]  # isinstance would trust __class__, which plugins can override
        return "a coroutine, which cannot be awaited here"
    if issubclass(kind, AsyncGeneratorType):
        return "an async generator, which cannot be awaited here"
    if issubclass(kind, np.ndarray):
        array = np.asarray(value)
        return f"an array of dtype {array.dtype} and shape {array.shape}"
    return type_name(kind)
