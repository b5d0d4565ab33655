"""Interrupts a hook that does not return: a loop without an end would keep a test busy for ever.

A thread looks at the stacks of the threads that tests run in, and raises an exception in one where the same call of a
hook has been under way for too long. Where no exception can be raised, because the call never comes back from C code,
the process ends; so it does when C code keeps that thread itself from running.
"""

from __future__ import annotations

import faulthandler
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Final

import trio
from attrs import define, field

from trio_sched.daemon.hooks.hook_calls import call_under_way
from trio_sched.engine.hooks.plugin_calls import hook_called_by
from trio_sched.errors import TrioSchedError
from trio_sched.interrupts import HookInterrupted

HOOK_SECONDS: Final = 20.0
"""Hundreds of times what a hook may take in a scheduler."""
default_seconds: float = HOOK_SECONDS
"""The limit where a test gives none; pytest sets it to its option ``plugin_hook_seconds``."""

_LONGEST_STEP_SECONDS: Final = 1.0
_PATIENCE: Final = 2
"""So many times the limit a call may take that no exception ends."""
_PATIENCE_WITH_C: Final = 3
"""So many times the limit may C code let no Python code run."""
_DEBUGGERS: Final = ("bdb", "pdb", "pydevd", "_pydevd_bundle", "debugpy")
_SIGNAL: Final = signal.SIGURG
"""Has a main thread that waits look for exceptions; nothing else happens when it arrives."""


class HookNeverReturned(TrioSchedError):
    """One call of a hook took longer than the limit of the test, and was interrupted."""

    def __init__(self, plugin: str, hook: str, limit_seconds: float, stack: Sequence[str]) -> None:
        super().__init__(plugin, hook, limit_seconds, stack)
        self.plugin, self.hook, self.limit_seconds = plugin, hook, limit_seconds
        self.stack = tuple(stack)
        """Where it stood, the plugin's own function first."""

    def __str__(self) -> str:
        return "\n  ".join(
            [
                f"plugin {self.plugin}: {self.hook} had not returned after {self.limit_seconds:g} s and was "
                "interrupted; nothing else runs while a hook computes. It stood at:",
                *self.stack,
            ]
        )


@define(eq=False)
class HookLimit(trio.abc.Instrument):
    """Limits every call of a hook that is made in the calling thread, inside a ``with`` block.

    What a hook awaits does not count: the limit is an instrument of the event loop that runs in the thread. Around
    ``trio.run`` it must be given to that.
    """

    seconds: float = field(factory=lambda: default_seconds)
    """Seconds of real time; infinity for no limit."""
    never_returned: HookNeverReturned | None = field(default=None, init=False)
    _thread: int = field(factory=threading.get_ident, init=False)
    _turn: int = field(default=0, init=False)
    _held: dict[FrameType, float] = field(factory=dict, init=False)
    """The calls that were under way when it was looked last, the innermost first, and for how long they had been."""
    _held_in_turn: int = field(default=0, init=False)
    _looked: float = field(default=math.nan, init=False)
    _handler: Any = field(default=None, init=False)

    def __enter__(self) -> HookLimit:
        self._thread = threading.get_ident()
        if self.seconds < math.inf:
            if threading.current_thread() is threading.main_thread():
                self._handler = signal.getsignal(_SIGNAL)
                if self._handler in (signal.SIG_DFL, signal.SIG_IGN):
                    signal.signal(_SIGNAL, _do_nothing)
            if trio.lowlevel.in_trio_run():
                trio.lowlevel.add_instrument(self)
            _WATCHER.add(self)
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        while True:
            try:
                self._leave()
                break
            except HookInterrupted:  # it has returned at the last moment
                continue
        if self.never_returned is not None:
            raise self.never_returned from error

    def _leave(self) -> None:
        _WATCHER.remove(self)
        if trio.lowlevel.in_trio_run():
            with suppress(KeyError):  # this was called before
                trio.lowlevel.remove_instrument(self)
        if self.never_returned is not None:
            _raise_in(self._thread, None)
        if self._handler in (signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(_SIGNAL, self._handler)

    def before_io_wait(self, timeout: float) -> None:
        """The event loop is done with a turn: no hook is called."""
        self._turn += 1

    def look(self, now: float, step: float = _LONGEST_STEP_SECONDS) -> None:
        """Look at the stack of the thread, and interrupt a call that has been there for too long.

        Args:
            now: by a clock that does not stop.
            step: after how long it is looked again; if it was longer, the process did not run.
        """
        frames = _frames_of(self._thread)
        if any(str(frame.f_globals.get("__name__", "")).partition(".")[0] in _DEBUGGERS for frame in frames):
            self._held = {}
            return
        before = self._held if self._held_in_turn == self._turn else {}
        passed = min(now - self._looked, 2 * step) if before else 0.0
        self._looked, self._held_in_turn = now, self._turn
        calls = [frame for frame in frames if _hook_of(frame) is not None]
        self._held = {frame: before[frame] + passed if frame in before else 0.0 for frame in calls}
        for frame, seconds in self._held.items():
            if seconds >= self.seconds:
                self._interrupt(frame, frames[: frames.index(frame)], is_last=seconds >= _PATIENCE * self.seconds)
                return

    def _interrupt(self, frame: FrameType, inside: Sequence[FrameType], *, is_last: bool) -> None:
        hook = _hook_of(frame)
        if hook is None:
            return
        if self.never_returned is None:
            stack = [f"{one.f_code.co_filename}, line {one.f_lineno}, in {one.f_code.co_name}" for one in inside]
            self.never_returned = HookNeverReturned(hook.plugin, hook.hook, self.seconds, stack[::-1])
        if is_last:
            _end_process(str(self.never_returned))
        elif frame in _frames_of(self._thread):  # else it has returned by now
            _raise_in(self._thread, HookInterrupted)
            if self._thread == threading.main_thread().ident and signal.getsignal(_SIGNAL) is _do_nothing:
                signal.pthread_kill(self._thread, _SIGNAL)


@define(eq=False)
class _Watcher:
    """The thread that looks, for all limits of the process; it sleeps while there are none."""

    _limits: list[HookLimit] = field(factory=list, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    """Held while a limit is looked at or removed: a limit that was removed interrupts nothing."""
    _wake: threading.Event = field(factory=threading.Event, init=False)
    _step: float = field(default=math.inf, init=False)
    """For how long the thread sleeps now."""
    _looking: threading.Thread | None = field(default=None, init=False)

    def add(self, limit: HookLimit) -> None:
        self._limits.append(limit)
        if self._step == math.inf:
            _end_process_after(_PATIENCE_WITH_C * limit.seconds)
        if self._looking is None or not self._looking.is_alive():  # after a fork it is not
            self._lock, self._wake = threading.Lock(), threading.Event()
            self._looking = threading.Thread(target=self._look, name="trio-sched hook limit", daemon=True)
            self._looking.start()
        elif _step_of(limit) < self._step:
            self._wake.set()

    def remove(self, limit: HookLimit) -> None:
        with self._lock:
            if limit in self._limits:
                self._limits.remove(limit)

    def _look(self) -> None:
        while True:
            self._step = step = min(map(_step_of, self._limits), default=math.inf)
            self._wake.wait(None if step == math.inf else step)
            self._wake.clear()
            _end_process_after(_PATIENCE_WITH_C * min((limit.seconds for limit in self._limits), default=math.inf))
            with self._lock:
                innermost = {limit._thread: limit for limit in self._limits}
                for limit in innermost.values():
                    limit.look(time.monotonic(), step)


_WATCHER: Final = _Watcher()


def _step_of(limit: HookLimit) -> float:
    return min(_LONGEST_STEP_SECONDS, limit.seconds / 10)


def _hook_of(frame: FrameType) -> Any:
    return hook_called_by(frame) or call_under_way(frame)


def _frames_of(thread: int) -> list[FrameType]:
    """The stack of *thread*, the innermost frame first."""
    frame = sys._current_frames().get(thread)
    found: list[FrameType] = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Have *error* raised in *thread* as soon as it runs Python code; None takes back what has not been raised yet."""
    import ctypes

    given = ctypes.c_void_p(None) if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass


def _end_process(text: str) -> None:
    """Write *text* and end this process: the thread that is to be interrupted runs no Python code any more."""
    with suppress(OSError):
        os.write(_stderr(), f"\n{text}\nIt cannot be interrupted, so the process of the tests ends.\n".encode())
    os._exit(1)


def _stderr() -> int:
    plugin = sys.modules.get("trio_sched.pytest_plugin")
    return 2 if plugin is None else int(plugin.stderr_fd)


def _end_process_after(seconds: float) -> None:
    """Unless this is called again in time, write all stacks and end this process; infinity for not at all."""
    plugin = sys.modules.get("trio_sched.pytest_plugin")
    if plugin is not None and not plugin.faulthandler_is_free:
        return
    if seconds == math.inf:
        faulthandler.cancel_dump_traceback_later()
    else:
        faulthandler.dump_traceback_later(seconds, exit=True, file=_stderr())
