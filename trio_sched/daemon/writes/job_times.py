"""How long jobs wait for a task and how long they take, as the families ``workqueue_*_seconds`` show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio
from attrs import define, field

from trio_sched.engine.hooks.histogram import Histogram, exponential_buckets

QUEUE_BUCKETS: Final = exponential_buckets(1e-08, 10, 10)


@define(eq=False)
class JobTimes:
    """The times of the jobs of one pool, in seconds of trio's clock."""

    waited: Histogram = field(factory=lambda: Histogram(QUEUE_BUCKETS))
    """From the submission of a job to its start."""
    worked: Histogram = field(factory=lambda: Histogram(QUEUE_BUCKETS))
    """From the start of a job to its end."""
    _started: dict[object, float] = field(factory=dict, init=False)
    """What runs a job → when that job was started."""
    _clock: Callable[[], float] = field(init=False)

    def __attrs_post_init__(self) -> None:
        def find_clock() -> float:  # looked up once: every job asks for the time
            self._clock = trio.lowlevel.current_clock().current_time
            return self._clock()

        self._clock = find_clock

    def now(self) -> float:
        """The time."""
        return self._clock()

    def started(self, by: object, submitted_at: float) -> None:
        """*by*, which runs one job at a time, begins one that was submitted at *submitted_at*."""
        now = self._started[by] = self._clock()
        self.waited.observe(now - submitted_at)

    def ended(self, by: object) -> None:
        """The job that *by* runs is over."""
        self.worked.observe(self._clock() - self._started.pop(by))

    def running_seconds(self) -> tuple[float, float]:
        """How long the jobs that run now have been running: the sum, and the longest."""
        now = self._clock()
        ages = [now - began for began in self._started.values()]
        return sum(ages), max(ages, default=0.0)

    def reset(self) -> None:
        """Forget the jobs that are over."""
        self.waited.reset()
        self.worked.reset()
