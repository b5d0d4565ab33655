"""``--trace-plugins``: shows every call of every plugin for chosen pods, and what it returned, in the log.

While it is on, functions that look for chosen pods stand in place of the hooks; while it is off there is nothing.
"""

from __future__ import annotations

import inspect
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from fnmatch import fnmatchcase, translate
from functools import partial
from typing import Any, Final

import numpy as np
from attrs import define, field, frozen

from trio_sched.engine.hooks.bound_hooks import BoundHook, HookFunction
from trio_sched.engine.hooks.hook_failure import describe_error, describe_value, plain_text
from trio_sched.go.text import shortened
from trio_sched.interrupts import raise_interrupt
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.pod_groups import PodGroupInfo
from trio_sched.plugin_api.status import Status
from trio_sched.plugin_api.verdicts import PostFilterResult, PreFilterResult, Verdicts, Wait
from trio_sched.snapshot.node_columns import NodeColumns, NodeView

log = logging.getLogger(__name__)

_SHOWN: Final = 10
"""Nodes, reasons or keys that a line shows at most."""
_REMEMBERED: Final = 10_000
"""Pods of which it is known that they are not chosen."""
_NOT_TRACED: Final = frozenset({"run", "events_to_register", "queue_sort"})
_ON_REQUEST: Final = frozenset({"sign", "hint"})
"""Hooks whose calls are shown if a selector asks for them: they are many, and say nothing about nodes."""


class BadTraceSelector(ValueError):
    """A text that chooses no pods; says how to write one."""


@frozen
class TraceSelector:
    """Which pods are chosen: by ``namespace/name``, or by labels; and which hooks are shown besides the usual ones."""

    names: tuple[str, ...] = ()
    """Patterns for ``namespace/name``; one of them must match."""
    labels: tuple[tuple[str, bool, str], ...] = ()
    """Key, whether it must match, and a pattern for the value; all of them must hold."""
    more_hooks: frozenset[str] = frozenset()
    """Those of ``sign`` and ``hint`` whose calls are shown, too."""
    _any_name: re.Pattern[str] = field(init=False, eq=False, repr=False)

    @_any_name.default
    def _compile_names(self) -> re.Pattern[str]:
        return re.compile("|".join(translate(pattern) for pattern in self.names))

    @classmethod
    def read(cls, text: str) -> TraceSelector:
        """What *text* says: ``shop/cart-*,db-0`` (any namespace without a slash), or ``app=cart,tier!=web*``.

        ``+sign`` and ``+hint`` among the parts have the calls of these hooks shown, too.

        Raises:
            BadTraceSelector: it is neither.
        """
        every_part = [part.strip() for part in text.split(",") if part.strip()]
        parts = [part for part in every_part if not part.startswith("+")]
        more_hooks = frozenset(part[1:].strip() for part in every_part if part.startswith("+"))
        for unknown in sorted(more_hooks - _ON_REQUEST):
            raise BadTraceSelector(
                f"{shortened('+' + unknown)!r} is no hook that can be asked for; write +hint or +sign"
            )
        if not parts:
            raise BadTraceSelector("no pods are named; write namespace/name with * for any text, or key=value")
        if not any("=" in part for part in parts):
            names = tuple(part if "/" in part else f"*/{part}" for part in parts)
            return cls(names=names, more_hooks=more_hooks)
        labels = []
        for part in parts:
            is_wanted = "!=" not in part
            key, separator, value = part.partition("=" if is_wanted else "!=")
            if not separator or not key.strip():
                raise BadTraceSelector(f"{shortened(part)!r} is neither key=value nor key!=value, as other parts are")
            labels.append((key.strip(), is_wanted, value.removeprefix("=").strip()))
        return cls(labels=tuple(labels), more_hooks=more_hooks)

    def matches(self, key: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod of this name with these labels is chosen."""
        if self.names:
            return self._any_name.match(key) is not None
        return all(
            (name in labels and fnmatchcase(labels[name], pattern)) == is_wanted
            for name, is_wanted, pattern in self.labels
        )


@define(eq=False)
class PluginTrace:
    """Traces the hooks of the profiles that are scheduled with."""

    clock: Callable[[], float] = time.perf_counter
    selector: TraceSelector | None = None
    _hooks: list[BoundHook] = field(factory=list, init=False)
    _undo: list[Callable[[], None]] = field(factory=list, init=False)
    _others: set[str] = field(factory=set, init=False)
    """UIDs of pods that are not chosen."""
    _other: object = field(default=None, init=False)
    """The one of them that the last call was about."""

    def install(self, hooks: Iterable[BoundHook]) -> None:
        """Trace *hooks*, instead of those before, when there is a selector."""
        self._undo.clear()  # attempts under way end with the former ones, traced or not as they began
        self._hooks = [hook for hook in hooks if hook.hook not in _NOT_TRACED]
        self.choose(self.selector)

    def choose(self, selector: TraceSelector | None) -> None:
        """Trace the pods that *selector* chooses from now on; None: none."""
        self.selector = selector
        self._others.clear()
        self._other = None
        if selector is None:
            for undo in self._undo:
                undo()
            self._undo.clear()
        elif not self._undo:  # inside of what times calls, wherever that is switched on meanwhile
            self._undo = [hook.wrap(partial(self._traced, hook), innermost=True) for hook in self._hooks]

    def _is_chosen(self, subject: object) -> bool:
        """Whether a call whose first argument is *subject* is about a chosen pod, or a chosen group."""
        selector = self.selector
        if isinstance(subject, Pod):
            uid = subject.metadata.uid
            if uid not in self._others:
                if selector is not None and selector.matches(subject.key, subject.labels):
                    return True
                if len(self._others) >= _REMEMBERED:
                    self._others.clear()
                self._others.add(uid)
            self._other = subject
            return False
        return selector is not None and isinstance(subject, PodGroupInfo) and selector.matches(subject.key, {})

    def _traced(self, hook: BoundHook, function: HookFunction) -> HookFunction:
        is_sign, is_on_request = hook.hook == "sign", hook.hook in _ON_REQUEST

        def traced(subject: Any, *args: Any) -> Any:
            # Of each pod that is not chosen one call after the other is made: they cost next to nothing.
            if subject is self._other or not self._is_chosen(subject):
                return function(subject, *args)
            is_shown = not is_on_request or (self.selector is not None and hook.hook in self.selector.more_hooks)
            returned = self._call(hook, function, (subject, *args)) if is_shown else function(subject, *args)
            # Without a signature nothing comes from a cache: every plugin is called.
            return None if is_sign and not inspect.isawaitable(returned) else returned

        return traced

    def _call(self, hook: BoundHook, function: HookFunction, args: tuple[Any, ...]) -> Any:
        state = next((arg for arg in args if isinstance(arg, CycleState)), None)
        before = len(state.keys()) if state is not None else 0
        began = self.clock()
        try:
            returned = function(*args)
        except BaseException as error:
            self._log(hook, args, began, f"raised {describe_error(error)}", state, before)
            raise
        if inspect.isawaitable(returned):
            return self._await(hook, returned, args, began, state, before)
        self._log(hook, args, began, describe_answer(hook.hook, args, returned), state, before)
        return returned

    async def _await(
        self,
        hook: BoundHook,
        awaitable: Awaitable[Any],
        args: tuple[Any, ...],
        began: float,
        state: CycleState | None,
        before: int,
    ) -> Any:
        try:
            returned = await awaitable
        except BaseException as error:
            self._log(hook, args, began, f"raised {describe_error(error)}", state, before)
            raise
        self._log(hook, args, began, describe_answer(hook.hook, args, returned), state, before)
        return returned

    def _log(
        self, hook: BoundHook, args: tuple[Any, ...], began: float, answer: str, state: CycleState | None, before: int
    ) -> None:
        fields: dict[str, Any] = {
            "pod": args[0].key,
            "plugin": hook.plugin,
            "hook": hook.hook,
            "seconds": round(self.clock() - began, 6),
            "answer": answer,
        }
        if len(args) > 1 and isinstance(args[1], NodeView | str):
            fields["node"] = args[1] if isinstance(args[1], str) else args[1].name
        if state is not None and (written := state.keys()[before:]):
            fields["wrote"] = [_key(key) for key in written[:_SHOWN]]
        log.info("Plugin called", extra=fields)


def describe_answer(hook: str, args: tuple[Any, ...], returned: Any) -> str:
    """What *hook* returned, in words; whatever it is."""
    try:
        return _described(hook, args, returned)
    except BaseException as error:  # explanations and __repr__ are the plugin's code
        raise_interrupt(error)
        return f"{describe_value(returned)}, which cannot be shown: {describe_error(error)}"


def _described(hook: str, args: tuple[Any, ...], returned: Any) -> str:
    nodes = args[1] if len(args) > 1 and isinstance(args[1], NodeColumns) else None
    if returned is None:
        return "not to be cached" if hook == "sign" else "nothing" if hook in ("permit", "post_filter") else "success"
    if isinstance(returned, Status):
        return _status(returned)
    if isinstance(returned, Verdicts) and nodes is not None:
        return _verdicts(returned, nodes)
    if isinstance(returned, PreFilterResult):
        names = returned.node_names
        return "all nodes" if names is None else f"only {len(names)} nodes: {_first(sorted(names))}"
    if isinstance(returned, PostFilterResult):
        nominated = f"nominated {returned.nominated_node_name}" if returned.nominated_node_name else "no node nominated"
        return nominated if returned.status is None else f"{nominated}; {_status(returned.status)}"
    if isinstance(returned, Wait):
        return f"wait {returned.timeout_seconds:g} s" + (f": {returned.message}" if returned.message else "")
    if isinstance(returned, np.ndarray) and nodes is not None and returned.shape == (len(nodes),):
        return _first(f"{name}={score}" for name, score in zip(nodes.names, returned.tolist(), strict=True))
    if isinstance(returned, np.ndarray):
        return _first(map(str, returned.tolist()))
    return shortened(_text(returned))


def _status(status: Status) -> str:
    return f"{status.code.name}: {shortened(', '.join(status.all_reasons))}" if status.all_reasons else status.code.name


def _verdicts(verdicts: Verdicts, nodes: NodeColumns) -> str:
    passes = verdicts.passes
    parts = [f"{int(passes.sum())} of {len(nodes)} pass"]
    codes = verdicts.codes[~passes]
    for code, count in list(zip(*np.unique(codes, return_counts=True), strict=True))[:_SHOWN]:
        parts.append(f"{count}: {_status(verdicts.explain(code.item()))}")
    return "; ".join(parts)


def _key(key: Any) -> str:
    """A key of the cycle state, whatever its ``__repr__`` does."""
    try:
        return shortened(_text(key))
    except BaseException as error:
        raise_interrupt(error)
        return describe_value(key)


def _first(texts: Iterable[str]) -> str:
    listed = list(texts)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return shortened(" ".join(listed[:_SHOWN]), 1000) + more


def _text(value: Any) -> str:
    return plain_text(str(value) if isinstance(value, str) else repr(value))
