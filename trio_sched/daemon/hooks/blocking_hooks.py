"""Finds hooks that block the event loop, and names them in the log.

A whole turn of the event loop is timed, by a reading of the clock before and one after it. Hooks are timed one by one
only at the start, and for a while after a turn that took too long.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio
from attrs import define, field, frozen

from trio_sched.daemon.hooks.loop_sampler import LoopSampler, Stack
from trio_sched.daemon.limits import (
    BLOCKING_LOG_INTERVAL_SECONDS,
    BLOCKING_SECONDS,
    STUCK_SECONDS,
    TIME_HOOKS_AFTER_BLOCKING_SECONDS,
    TIME_HOOKS_AT_START_SECONDS,
)
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_times import HookTime, HookTimes

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
    stood_at: str = ""
    """File and line where it stood during the longest of these, if that was seen."""


@frozen(eq=False)
class _Stand:
    """Where the thread stood."""

    hook: BoundHook
    place: str


@define(eq=False)
class BlockingHooks(trio.abc.Instrument):
    """Watches the event loop as an instrument of trio; two readings of the clock for each turn."""

    hook_times: HookTimes
    budget_seconds: float = BLOCKING_SECONDS
    """How long a hook may let nothing else run before it is named."""
    last: tuple[str, str] | None = field(default=None, init=False)
    """Plugin and hook that blocked the event loop last, also if that hook has not returned yet."""
    stuck_in: tuple[str, str] | None = field(default=None, init=False)
    """Plugin and hook in which the event loop was when it was stuck last; None if it was in none."""
    _sampler: LoopSampler = field(init=False)
    _turn_began: float = field(default=math.nan, init=False)
    _timing_ends: float = field(default=math.inf, init=False)
    _by_hook: dict[tuple[str, str], _Unlogged] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._sampler = LoopSampler(self.budget_seconds / 2, STUCK_SECONDS, self._log_stuck)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the event loop inside the block, if there are hooks to time."""
        if not self.hook_times.has_hooks:
            yield
            return
        self.start()
        trio.lowlevel.add_instrument(self)
        try:
            with self._sampler.running():
                yield
        finally:
            with contextlib.suppress(KeyError):  # trio removes instruments that fail
                trio.lowlevel.remove_instrument(self)
            self.hook_times.switch_off()

    def answer_with(self, answer: Callable[[float, float], None]) -> None:
        """Have *answer* called in another thread while a hook does not return; see `LoopSampler.while_stuck`."""
        self._sampler.while_stuck = answer

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
        self._sampler.turn_begins()

    def before_io_wait(self, timeout: float) -> None:
        """A turn of the event loop is over."""
        times = self.hook_times
        now = times.clock()
        self._sampler.turn_ends()
        if now - self._turn_began >= self.budget_seconds:
            self._was_blocked(now)
            return
        times.next_turn()  # also while nothing else is timed: run always is
        if times.is_on:
            self._log_due(now)
            if now >= self._timing_ends:
                times.switch_off()

    def _was_blocked(self, now: float) -> None:
        times = self.hook_times
        was_on = times.is_on
        found = self._where(self._sampler.take())
        for taken in times.in_this_turn():
            if taken.seconds >= self.budget_seconds:
                self._add(taken, found)
        times.next_turn()
        self._log_due(now)
        self._timing_ends = now + TIME_HOOKS_AFTER_BLOCKING_SECONDS
        times.switch_on()
        if not was_on and found is not None:
            seconds = now - self._turn_began
            self._add(HookTime(found.hook, seconds, 0), found)
            self._log_due(now)
        elif not was_on:
            log.info(
                "nothing else ran for %.2f s; hooks of plugins are timed for %.0f s to find out whether one blocks",
                now - self._turn_began,
                TIME_HOOKS_AFTER_BLOCKING_SECONDS,
            )

    def _log_stuck(self, seconds: float, stack: Stack) -> None:
        """Say where the loop stands that nothing else can say so; called in the thread of the sampler."""
        found = self._where(stack)
        lines = [f"{code.co_filename}, line {line}, in {code.co_name}" for code, line in stack]
        self.stuck_in = None if found is None else (found.hook.plugin, found.hook.hook)
        if found is None:
            log.error("nothing has run for %.0f s", seconds, extra={"stack": lines})
            return
        self.last = self.stuck_in
        codes = [code for code, _line in stack]
        log.error(
            "plugin %s has stopped the scheduler: %s has not returned for %.0f s, and nothing else runs meanwhile; "
            "a second SIGTERM ends the process",
            found.hook.plugin,
            found.hook.hook,
            seconds,
            extra={
                "plugin": found.hook.plugin,
                "hook": found.hook.hook,
                "distribution": found.hook.source,
                "stack": lines[: codes.index(found.hook.code) + 1] if found.hook.code in codes else lines,
            },
        )

    def _where(self, stack: Stack | None) -> _Stand | None:
        """The hook in which *stack* stands, and at which line; None if it is in none."""
        by_code = {hook.code: hook for hook in self.hook_times.hooks if hook.code is not None}
        for code, line in stack or ():
            hook = by_code.get(code)
            if hook is not None:
                innermost, at = stack[0] if stack else (code, line)
                inside = f" (in {innermost.co_name})" if innermost is not code else ""
                return _Stand(hook, f"{innermost.co_filename}, line {at}{inside}")
        return None

    def _add(self, taken: HookTime, found: _Stand | None) -> None:
        hook = taken.hook
        self.last = hook.plugin, hook.hook
        unlogged = self._by_hook.setdefault((hook.plugin, hook.hook), _Unlogged(hook))
        unlogged.times += 1
        if taken.seconds >= unlogged.longest_seconds:
            unlogged.longest_seconds, unlogged.calls = taken.seconds, taken.calls
            is_same = found is not None and (found.hook.plugin, found.hook.hook) == (hook.plugin, hook.hook)
            unlogged.stood_at = found.place if found is not None and is_same else ""

    def _log_due(self, now: float) -> None:
        for unlogged in self._by_hook.values():
            if unlogged.times and now - unlogged.last_logged >= BLOCKING_LOG_INTERVAL_SECONDS:
                unlogged.last_logged = now
                _log(unlogged)
                unlogged.times, unlogged.longest_seconds = 0, 0.0


def _log(unlogged: _Unlogged) -> None:
    hook, seconds = unlogged.hook, unlogged.longest_seconds
    took = f"{seconds:.2f} s" if unlogged.calls <= 1 else f"{seconds:.2f} s in {unlogged.calls} calls"
    where = {"file": hook.place, "stoodAt": unlogged.stood_at}
    often = "" if unlogged.times == 1 else f", the longest of {unlogged.times} times"
    log.warning(
        "plugin %s blocks the scheduler: %s took %s%s, and nothing else ran meanwhile; await what takes time in a hook "
        "that may be async, with trio.to_thread.run_sync if it cannot be awaited, or prepare it in run",
        hook.plugin,
        hook.hook,
        took,
        often,
        extra={
            "plugin": hook.plugin,
            "hook": hook.hook,
            "distribution": hook.source,
            "times": unlogged.times,
            **{name: place for name, place in where.items() if place},
        },
    )
