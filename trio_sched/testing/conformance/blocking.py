"""Checks that no hook blocks: while one sleeps, connects or waits for a process, the scheduler does nothing else.

What Python tells its audit hooks about is taken as it is; whatever else blocks shows in the time that a call takes
without computing. That is measured three times before it is believed: a machine can be busy.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from inspect import isawaitable
from types import FrameType
from typing import Any, Final

from attrs import define, field

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.hooks import drive
from trio_sched.testing.conformance.shifted_time import Namespace, namespaces_of
from trio_sched.testing.conformance.subject import Subject

try:
    import resource
except ImportError:  # pragma: no cover  # not on Windows
    resource = None  # type: ignore[assignment]

_AUDITED: Final = {
    "time.sleep": "sleeps",
    "socket.connect": "opens a connection",
    "socket.getaddrinfo": "looks up a host",
    "socket.gethostbyname": "looks up a host",
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.fork": "starts a process",
    "open": "opens a file",
    "os.listdir": "lists a folder",
    "os.scandir": "lists a folder",
}
_OF_FILES: Final = ("open", "os.listdir", "os.scandir")
"""Whoever imports a module or logs a traceback does that, too, so they count in the code of the plugin only."""
_OPENERS: Final = frozenset({"pathlib", "os", "io", "codecs", "tempfile", "shutil", "glob", "posixpath", "genericpath"})
_SUSPECT_SECONDS: Final = 0.005
_COMPUTING_SECONDS: Final = 0.1
"""What the scheduler names in its log."""
_COMPUTING_SECONDS_PER_NODE: Final = 0.01
"""The limit for hooks that are called for every node."""
_PER_NODE: Final = ("filter_node", "score_node")
_TIMES: Final = 3
_ASYNC: Final = "await it, with trio.to_thread.run_sync if it cannot be awaited"
_SYNC: Final = "do it in run and keep the result, or in a hook that may be async"


def blocking_problems(subject: Subject) -> Iterator[str]:
    """Which hooks block, and by what."""
    trial = subject.fresh()
    # Of copies: what a hook changes in them is for another check to find.
    cluster, pods = deepcopy((subject.cluster, subject.pods))
    columns = NodeColumns(trial.show(cluster))
    watch = _Watch()
    for hook in trial.profile.hooks:
        hook.function = partial(watch.call, hook, hook.function)
    with watch.watching(namespaces_of(trial.plugin)):
        for waiting in pods:
            watch.pod = waiting.name
            drive(trial, columns, waiting)
    yield from watch.problems.values()


@define(eq=False)
class _Watch:
    """Watches the calls of hooks, in the thread in which they are made."""

    problems: dict[str, str] = field(factory=dict, init=False)
    """By hook."""
    pod: str = field(default="", init=False)
    _running: list[tuple[BoundHook, int]] = field(factory=list, init=False)
    """The hooks that are called just now, each with the thread."""
    _slow: dict[str, int] = field(factory=dict, init=False)
    """By hook: how often in a row a call took long."""
    _computing: dict[str, int] = field(factory=dict, init=False)
    _of_plugin: set[int] = field(factory=set, init=False)
    """The ids of the namespaces of its modules."""

    @contextmanager
    def watching(self, namespaces: Iterable[Namespace]) -> Iterator[None]:
        """Listen to what Python audits inside the block; *namespaces* are those of the plugin."""
        sleep = time.sleep
        namespaces = list(namespaces)
        self._of_plugin = set(map(id, namespaces))

        def audited_sleep(seconds: Any) -> None:
            is_in_hook = self.saw("time.sleep")
            sleep(0 if is_in_hook else seconds)  # the checks should be quick

        # Older Pythons do not audit it; and it may have been imported by its name.
        places = [(one, name) for one in (vars(time), *namespaces) for name, part in one.items() if part is sleep]
        _listeners.append(self)
        _install()
        for one, name in places:
            one[name] = audited_sleep
        try:
            yield
        finally:
            for one, name in places:
                one[name] = sleep
            _listeners.remove(self)

    def call(self, hook: BoundHook, function: Callable[..., Any], *args: Any) -> Any:
        """Call *hook* and see what it does."""
        self._running.append((hook, threading.get_ident()))
        before, answer = _measure(), None
        try:
            answer = function(*args)
            return self._watched(hook, answer) if isawaitable(answer) else answer
        finally:
            if not isawaitable(answer):
                self._judge(hook, before)
            self._running.pop()

    async def _watched(self, hook: BoundHook, answer: Any) -> Any:
        self._running.append((hook, threading.get_ident()))
        before = time.thread_time()
        try:
            return await answer
        finally:
            self._running.pop()
            self._judge_computing(hook, time.thread_time() - before)

    def _judge(self, hook: BoundHook, before: tuple[float, float, int]) -> None:
        wall, computed, waits = (now - then for now, then in zip(_measure(), before, strict=True))
        name = hook.hook
        self._slow[name] = self._slow.get(name, 0) + 1 if wall - computed > _SUSPECT_SECONDS and waits else 0
        if self._slow[name] == _TIMES:
            self._note(hook, f"waits, {wall:.3f} s in one call, and nothing else runs meanwhile")
        else:
            self._judge_computing(hook, computed)

    def _judge_computing(self, hook: BoundHook, computed: float) -> None:
        name = hook.hook
        limit = _COMPUTING_SECONDS_PER_NODE if name in _PER_NODE else _COMPUTING_SECONDS
        self._computing[name] = self._computing.get(name, 0) + 1 if computed > limit else 0
        if self._computing[name] == _TIMES:
            which = "each node" if name in _PER_NODE else "one call"
            self._note(hook, f"computes for {computed:.2f} s in {which}, and nothing else runs meanwhile")

    def saw(self, event: str) -> bool:
        """Something that blocks has happened; returns whether it was in a hook."""
        if not self._running or self._running[-1][1] != threading.get_ident():
            return False
        hook, _thread = self._running[-1]
        frame: FrameType | None = sys._getframe(1)
        if event in _OF_FILES and not self._is_of_plugin(frame):
            return True
        if not _is_inside_of_trio(frame):
            self._note(hook, f"{_AUDITED[event]}{_place(frame)}, and nothing else runs meanwhile")
        return True

    def _is_of_plugin(self, frame: FrameType | None) -> bool:
        """Whether the plugin itself does it, through modules for files at most."""
        while frame is not None:
            name = str(frame.f_globals.get("__name__", ""))
            if name != __name__ and name.partition(".")[0] not in _OPENERS:
                return id(frame.f_globals) in self._of_plugin
            frame = frame.f_back
        return False

    def _note(self, hook: BoundHook, what: str) -> None:
        fix = _ASYNC if hook.hook in ("post_filter", "pre_bind", "bind", "post_bind") else _SYNC
        self.problems.setdefault(hook.hook, f"pod {self.pod!r}: {hook.hook} {what}: {fix}")


def _measure() -> tuple[float, float, int]:
    """Time, time in which this thread computed, and how often it has waited of its own accord."""
    waits = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw if hasattr(resource, "RUSAGE_THREAD") else 0
    return time.perf_counter(), time.thread_time(), waits


def _is_inside_of_trio(frame: FrameType | None) -> bool:
    """Whether the innermost frames, up to the plugin's, are those of trio, which does such things without blocking."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(("trio.", "trio._")):
            return True
        if module == __name__ and frame.f_code.co_name in ("call", "_watched"):
            return False
        frame = frame.f_back
    return False


def _place(frame: FrameType | None) -> str:
    """The innermost line that is not one of the standard library's or of this module."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if module != "trio_sched" and module not in sys.stdlib_module_names:
            return f" ({frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"
        frame = frame.f_back
    return ""


_listeners: list[_Watch] = []
_is_installed = False


def _install() -> None:
    """Ask Python to tell of what it audits; that cannot be taken back, so there is one listener, mostly idle."""
    global _is_installed
    if not _is_installed:
        sys.addaudithook(_audit)
        _is_installed = True


def _audit(event: str, _args: tuple[Any, ...]) -> None:
    if _listeners and event in _AUDITED:
        for watch in _listeners:
            watch.saw(event)
