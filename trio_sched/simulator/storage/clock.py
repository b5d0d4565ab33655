"""Where the simulator's time comes from, and how it reads the timestamps of objects."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    from trio.testing import MockClock

Clock = Callable[[], datetime]
"""Returns the time of the simulated cluster, with the UTC time zone."""

EPOCH_OF_TESTS = datetime(2026, 1, 1, tzinfo=UTC)
"""When a cluster on trio's clock begins, by default."""

_LOOK_AT_THREADS_SECONDS: Final = 0.0005


def jumping_clock(step_seconds: float = 0.0) -> MockClock:
    """A clock for trio that jumps to the next deadline when all tasks wait, unless one of them waits for a thread.

    Threads of ``trio.to_thread.run_sync`` and of trio's files take real time: without this, hours would pass until the
    first line of a file has been read. The hook is trio's own; a trio without it jumps over threads, too. The clock
    stands still between jumps, and its rate cannot be changed.

    Args:
        step_seconds: every jump goes on to the next multiple of this, so that tasks whose deadlines lie close together
            wake up together: nobody sees the difference, and what they write is read at once. 0 for no such steps.
    """
    from trio.testing import MockClock  # where pytest is installed, this imports it as well

    clock = MockClock(autojump_threshold=0)
    jump: Callable[[], None] | None = getattr(clock, "_autojump", None)
    if jump is None:
        return clock

    def jump_unless_threads_run() -> None:
        if trio.to_thread.current_default_thread_limiter().borrowed_tokens:
            time.sleep(_LOOK_AT_THREADS_SECONDS)
            return
        jump()
        if step_seconds:
            clock.jump(-clock.current_time() % step_seconds)

    adapted: Any = clock
    adapted._autojump = jump_unless_threads_run
    _remember_time(clock)
    return clock


def _remember_time(clock: MockClock) -> None:
    """Have *clock*, which only jumps, work its time out when it does: it is asked dozens of times for every pod."""
    read, jump = clock.current_time, clock.jump
    now = read()

    def remembered() -> float:
        return now

    def jump_and_read(seconds: float) -> None:
        nonlocal now
        jump(seconds)
        now = read()

    adapted: Any = clock
    adapted.current_time, adapted.jump = remembered, jump_and_read


def wall_clock() -> datetime:
    """The machine's own time."""
    return datetime.now(UTC)


def trio_clock(start: datetime = EPOCH_OF_TESTS) -> Clock:
    """A clock that moves with trio's, and so jumps when trio's does.

    Args:
        start: the cluster's time at the first call.
    """
    clock: trio.abc.Clock | None = None
    origin = read_at = math.nan
    moment = start

    def now() -> datetime:
        nonlocal clock, origin, read_at, moment
        if clock is None:
            clock = trio.lowlevel.current_clock()
            origin = clock.current_time()
        seconds = clock.current_time()
        if seconds != read_at:  # thousands of objects are written at one instant
            read_at, moment = seconds, start + timedelta(seconds=seconds - origin)
        return moment

    return now


def parse_timestamp(text: str) -> datetime | None:
    """Read a moment in whole seconds or finer; ``None`` if *text* is no moment at all."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
