"""The last hour in steps of ten seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from trio_sched.live_page.rates import Counters

STEP_SECONDS: Final = 10.0
MOST_STEPS: Final = 360
COUNTED: Final = {
    "binds": "binds",
    "attempts_scheduled": "scheduled",
    "attempts_unschedulable": "unschedulable",
    "attempts_error": "error",
    "preemptions": "preemptions",
}
"""Series of rates, and the counters that they are made of."""
SIZES: Final = ("active", "backoff", "unschedulable", "gated")
"""Series of the lengths of the parts of the queue."""


@define(eq=False)
class History:
    """A value of each series for every step; numbers, or None where there is nothing to tell."""

    seconds: deque[int] = field(init=False, factory=lambda: deque(maxlen=MOST_STEPS))
    """When the steps ended, since 1970."""
    series: dict[str, deque[float | None]] = field(init=False)
    _last: Counters | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.series = {name: deque(maxlen=MOST_STEPS) for name in (*COUNTED, *SIZES, "bind_p50", "bind_p99")}

    def add(self, time: float, now: Counters, sizes: Mapping[str, int]) -> None:
        """A step has ended; the first call begins one.

        Args:
            time: in seconds since 1970.
            now: what was counted up to now.
            sizes: how many pods are in each part of the queue.
        """
        before, self._last = self._last, now
        if before is None:
            return
        self.seconds.append(round(time))
        for name, counter in COUNTED.items():
            self.series[name].append(now.per_second(counter, before))
        for name in SIZES:
            self.series[name].append(sizes[name])
        bound = now.bind_seconds.since(before.bind_seconds)
        self.series["bind_p50"].append(bound.quantile(0.5))
        self.series["bind_p99"].append(bound.quantile(0.99))

    def shown(self) -> dict[str, Any]:
        """All of it, the oldest first."""
        return {"seconds": list(self.seconds), "series": {name: list(values) for name, values in self.series.items()}}
