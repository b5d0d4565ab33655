"""Tells when the time of a simulation stands still because plugins keep pods moving."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import trio
from attrs import define, field

log = logging.getLogger(__name__)

LIMIT_SECONDS: Final = 20.0
"""Longer than everything takes that happens to a large cluster at one instant, and decides on no pod."""


@define(eq=False)
class StallDetector(trio.abc.Instrument):
    """Warns once, after a while of real time in which neither time passes nor a pod is decided on, but pods are moved.

    Args:
        undecided: how many pods are not decided on.
        moves: how often pods came into each queue, by queue and reason.
        clock: real time, in seconds.
    """

    undecided: Callable[[], int]
    moves: Callable[[], Mapping[tuple[str, str], int]]
    clock: Callable[[], float] = time.perf_counter
    _at: tuple[float, int] | None = field(default=None, init=False)
    _since: float = field(default=0.0, init=False)
    _moves_before: dict[tuple[str, str], int] = field(factory=dict, init=False)
    _has_warned: bool = field(default=False, init=False)

    def before_io_wait(self, timeout: float) -> None:
        """A turn of the event loop is over."""
        at = (trio.current_time(), self.undecided())
        if at != self._at:
            self._at, self._since, self._moves_before = at, self.clock(), dict(self.moves())
        elif not self._has_warned and self.clock() - self._since > LIMIT_SECONDS:
            self._has_warned = True
            self._warn()

    def _warn(self) -> None:
        moved = Counter(self.moves()) - Counter(self._moves_before)
        tried = sum(count for (queue, _reason), count in moved.items() if queue == "active")
        if tried:
            log.warning(
                "The cluster's time stands still: pods were tried %d times at one instant. A plugin keeps them moving, "
                "with handle.activate at every attempt for instance; --trace-plugins shows its calls, Ctrl-C ends this",
                tried,
            )
