"""How long a pod that failed has to wait: pure arithmetic on times."""

from __future__ import annotations

import math

from attrs import evolve, frozen


@frozen
class Backoff:
    """Doubling waits between *initial_seconds* and *max_seconds*.

    With *align_to_window* (gate SchedulerPopFromBackoffQ) times are rounded down to whole seconds, so that pods whose
    wait ends in the same second are ordered by priority.
    """

    initial_seconds: float = 1.0
    max_seconds: float = 10.0
    align_to_window: bool = True

    def for_pods(self, count: int) -> Backoff:
        """The waits of a group of *count* pods: the longest grows with the square root of *count*."""
        return evolve(self, max_seconds=self.max_seconds * math.sqrt(count))

    def duration(self, failure_count: int) -> float:
        """The wait after that many failures in a row."""
        if failure_count <= 0 or self.max_seconds <= 0:
            return 0.0
        exponent = failure_count - 1
        if exponent >= 63 or self.initial_seconds * 2**exponent > self.max_seconds:
            return self.max_seconds
        return float(self.initial_seconds * 2**exponent)

    def expiry(self, timestamp: float, failure_count: int) -> float:
        """When the wait that began at *timestamp* is over; minus infinity if there is none."""
        duration = self.duration(failure_count)
        return self._align(timestamp + duration) if duration else -math.inf

    def is_over(self, expiry: float, now: float) -> bool:
        """Whether *now* is past *expiry*; within the same window it is not yet."""
        return expiry < self._align(now)

    def next_check(self, expiry: float) -> float:
        """The first time at which `is_over` will be true, or just before it where times are not rounded down."""
        return expiry + 1 if self.align_to_window else expiry

    def _align(self, time: float) -> float:
        # In whole microseconds, sums that should be equal are equal.
        return math.floor(time) if self.align_to_window else round(time, 6)
