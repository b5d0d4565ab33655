"""Ends a test on a clock that jumps if something in it goes on for ever, which no timeout on that clock would.

A task that loops without letting time pass, or a plugin that changes the cluster every millisecond, would keep such a
test busy for hours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import trio
from attrs import define, field

from trio_sched.engine.hooks import hook_times
from trio_sched.errors import TrioSchedError

_OBSERVED_SHARE: Final = 0.1
"""For the last part of the limit, the steps of tasks are counted."""


class RealTimeExceeded(TrioSchedError):
    """The cluster was busy for too long between two calls of the test."""

    def __init__(self, limit_seconds: float, clock_seconds: float, busiest: str) -> None:
        super().__init__(limit_seconds, clock_seconds, busiest)
        self.limit_seconds, self.clock_seconds, self.busiest = limit_seconds, clock_seconds, busiest

    def __str__(self) -> str:
        return (
            f"the cluster was busy for {self.limit_seconds:g} s of real time, and the test still waits at "
            f"{self.clock_seconds:.1f} s of its clock; {self.busiest}. If that is no endless loop, give "
            "virtual_cluster a larger real_seconds"
        )


@define(eq=False)
class RealTimeLimit(trio.abc.Instrument):
    """Adds up how long the event loop is busy; waiting does not count."""

    limit_seconds: float
    clock: Callable[[], float]
    scope: trio.CancelScope
    """Cancelled when the limit is exceeded."""
    exceeded: RealTimeExceeded | None = field(default=None, init=False)
    _busy_seconds: float = field(default=0.0, init=False)
    _turn_began: float = field(default=math.nan, init=False)
    _steps: _StepCounts | None = field(default=None, init=False)

    def restart(self) -> None:
        """The test has called: count from zero."""
        self._busy_seconds = 0.0
        self._stop_counting()

    def after_io_wait(self, timeout: float) -> None:
        """A turn of the event loop begins."""
        self._turn_began = self.clock()

    def before_io_wait(self, timeout: float) -> None:
        """A turn of the event loop is over."""
        if math.isnan(self._turn_began):
            return
        self._busy_seconds += self.clock() - self._turn_began
        left = self.limit_seconds - self._busy_seconds
        if left > self.limit_seconds * _OBSERVED_SHARE or self.exceeded is not None:
            return
        if self._steps is None:
            self._steps = _StepCounts()
            trio.lowlevel.add_instrument(self._steps)
        elif left <= 0:
            self.exceeded = RealTimeExceeded(self.limit_seconds, trio.current_time(), self._steps.describe())
            self._stop_counting()
            self.scope.cancel()

    def remove(self) -> None:
        """Stop watching the event loop."""
        self._stop_counting()
        trio.lowlevel.remove_instrument(self)

    def _stop_counting(self) -> None:
        if self._steps is not None:
            trio.lowlevel.remove_instrument(self._steps)
            self._steps = None


@define(eq=False)
class _StepCounts(trio.abc.Instrument):
    """Counts the steps of every task."""

    _counts: Counter[trio.lowlevel.Task] = field(factory=Counter, init=False)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._counts[task] += 1

    def describe(self) -> str:
        """Which tasks made most steps, and where they are."""
        if not self._counts:
            return "no task made a step"
        total = self._counts.total()
        most = [f"{task.name} ({count / total:.0%}, {_place(task)})" for task, count in self._counts.most_common(3)]
        return f"most steps were those of {', '.join(most)}"


def _place(task: trio.lowlevel.Task) -> str:
    """The innermost line of *task* outside of trio."""
    place = "it has ended"
    awaited: Any = task.coro
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is None:
            break
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("trio.", hook_times.__name__)):
            place = f"{frame.f_code.co_name} at {frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
        if module == hook_times.__name__:  # a timed hook makes the steps of its coroutine by itself
            awaited = frame.f_locals["awaited"]
    return place
