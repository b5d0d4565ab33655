"""Finds hooks that block the event loop, and names them in the log.

A whole turn of the event loop is timed, by a reading of the clock before and one after it. Hooks are timed one by one
only at the start, and for a while after a turn that took too long.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio
from attrs import define, field

from trio_sched.daemon.limits import (
    BLOCKING_LOG_INTERVAL_SECONDS,
    BLOCKING_SECONDS,
    TIME_HOOKS_AFTER_BLOCKING_SECONDS,
    TIME_HOOKS_AT_START_SECONDS,
)
from trio_sched.engine.bound_hooks import BoundHook
from trio_sched.engine.hook_times import HookTime, HookTimes

log = logging.getLogger(__name__)


@define(eq=False)
class _Unlogged:
    """How often a hook has blocked the event loop since its last line in the log."""

    hook: BoundHook
    last_logged: float = -math.inf
    times: int = 0
    longest_seconds: float = 0.0
    calls: int = 0
    """Calls in the longest of these."""


@define(eq=False)
class BlockingHooks(trio.abc.Instrument):
    """Watches the event loop as an instrument of trio; two readings of the clock for each turn."""

    hook_times: HookTimes
    _turn_began: float = field(default=math.nan, init=False)
    _timing_ends: float = field(default=math.inf, init=False)
    _by_hook: dict[tuple[str, str], _Unlogged] = field(factory=dict, init=False)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the event loop inside the block, if there are hooks to time."""
        if not self.hook_times.has_hooks:
            yield
            return
        self.start()
        trio.lowlevel.add_instrument(self)
        try:
            yield
        finally:
            with contextlib.suppress(KeyError):  # trio removes instruments that fail
                trio.lowlevel.remove_instrument(self)
            self.hook_times.switch_off()

    def start(self) -> None:
        """Time hooks from now on; for so long that a plugin that blocks at every call is named at once."""
        self._timing_ends = self.hook_times.clock() + TIME_HOOKS_AT_START_SECONDS
        self.hook_times.switch_on()

    def time_for(self, seconds: float) -> None:
        """Time hooks for so long at least."""
        if self.hook_times.has_hooks:
            self._timing_ends = max(self._timing_ends, self.hook_times.clock() + seconds)
            self.hook_times.switch_on()

    def after_io_wait(self, timeout: float) -> None:
        """A turn of the event loop begins."""
        self._turn_began = self.hook_times.clock()

    def before_io_wait(self, timeout: float) -> None:
        """A turn of the event loop is over."""
        times = self.hook_times
        now = times.clock()
        if now - self._turn_began >= BLOCKING_SECONDS:
            self._was_blocked(now)
        elif times.is_on:
            times.drain()
            self._log_due(now)
            if now >= self._timing_ends:
                times.switch_off()

    def _was_blocked(self, now: float) -> None:
        times = self.hook_times
        was_on = times.is_on
        for taken in times.drain():
            if taken.seconds >= BLOCKING_SECONDS:
                self._add(taken)
        self._log_due(now)
        self._timing_ends = now + TIME_HOOKS_AFTER_BLOCKING_SECONDS
        times.switch_on()
        if not was_on:
            log.info(
                "nothing else ran for %.2f s; hooks of plugins are timed for %.0f s to find out whether one blocks",
                now - self._turn_began,
                TIME_HOOKS_AFTER_BLOCKING_SECONDS,
            )

    def _add(self, taken: HookTime) -> None:
        hook = taken.hook
        unlogged = self._by_hook.setdefault((hook.plugin, hook.hook), _Unlogged(hook))
        unlogged.times += 1
        if taken.seconds >= unlogged.longest_seconds:
            unlogged.longest_seconds, unlogged.calls = taken.seconds, taken.calls

    def _log_due(self, now: float) -> None:
        for unlogged in self._by_hook.values():
            if unlogged.times and now - unlogged.last_logged >= BLOCKING_LOG_INTERVAL_SECONDS:
                unlogged.last_logged = now
                _log(unlogged)
                unlogged.times, unlogged.longest_seconds = 0, 0.0


def _log(unlogged: _Unlogged) -> None:
    hook, seconds = unlogged.hook, unlogged.longest_seconds
    took = f"{seconds:.2f} s" if unlogged.calls == 1 else f"{seconds:.2f} s in {unlogged.calls} calls"
    often = "" if unlogged.times == 1 else f", the longest of {unlogged.times} times"
    log.warning(
        "plugin %s blocks the scheduler: %s took %s%s, and nothing else ran meanwhile; await what takes time in a hook "
        "that may be async, with trio.to_thread.run_sync if it cannot be awaited, or prepare it in run",
        hook.plugin,
        hook.hook,
        took,
        often,
        extra={"plugin": hook.plugin, "hook": hook.hook, "distribution": hook.source, "times": unlogged.times},
    )
