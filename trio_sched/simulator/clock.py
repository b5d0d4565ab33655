"""Where the simulator's time comes from, and how it reads the timestamps of objects."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import trio

Clock = Callable[[], datetime]
"""Returns the time of the simulated cluster, with the UTC time zone."""

EPOCH_OF_TESTS = datetime(2026, 1, 1, tzinfo=UTC)
"""When a cluster on trio's clock begins, by default."""


def wall_clock() -> datetime:
    """The machine's own time."""
    return datetime.now(UTC)


def trio_clock(start: datetime = EPOCH_OF_TESTS) -> Clock:
    """A clock that moves with trio's, and so jumps when trio's does.

    Args:
        start: the cluster's time at the first call.
    """
    origin: float | None = None

    def now() -> datetime:
        nonlocal origin
        if origin is None:
            origin = trio.current_time()
        return start + timedelta(seconds=trio.current_time() - origin)

    return now


def parse_timestamp(text: str) -> datetime | None:
    """Read a moment in whole seconds or finer; ``None`` if *text* is no moment at all."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
