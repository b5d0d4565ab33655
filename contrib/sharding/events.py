"""Simulated time: what is to happen, and when. Equal seeds give equal runs."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from attrs import define, field

Action = Callable[[], None]


@define(eq=False)
class EventLoop:
    """Runs actions in the order of their times, those of the same time in the order in which they were scheduled."""

    now: float = 0.0
    """In seconds."""
    _heap: list[tuple[float, int, Action]] = field(factory=list, init=False)
    _numbers: count[int] = field(factory=count, init=False)

    def at(self, time: float, action: Action) -> None:
        """Run *action* at *time*; at once if that is over."""
        heappush(self._heap, (max(time, self.now), next(self._numbers), action))

    def after(self, seconds: float, action: Action) -> None:
        """Run *action* in so many seconds."""
        self.at(self.now + seconds, action)

    def run(self, until: float) -> None:
        """Run everything up to the time *until*."""
        while self._heap and self._heap[0][0] <= until:
            self.now, _number, action = heappop(self._heap)
            action()
        self.now = until
