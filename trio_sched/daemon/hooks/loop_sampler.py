"""Finds out where the thread of the event loop stands while a turn of the loop takes too long.

A second thread looks at the stack of the first; it sleeps while the loop waits for something to happen.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Final

from attrs import define, field

Stack = tuple[tuple[CodeType, int], ...]
"""What calls what, with the lines; the innermost call first."""

_MAX_DEPTH: Final = 100
_LONGEST_STEP_SECONDS: Final = 1.0


@define(eq=False)
class LoopSampler:
    """Samples the stack of the thread that runs it, once a turn of the event loop takes longer than a while."""

    overdue_seconds: float
    """From when on a turn is sampled; then again and again, in steps that grow."""
    stuck_seconds: float
    """From when on *report_stuck* is called; then again whenever twice as much has passed."""
    report_stuck: Callable[[float, Stack], None]
    """Called in the sampling thread, with how long the turn has taken so far, and where it stands."""
    while_stuck: Callable[[float, float], None] | None = None
    """Called in the sampling thread between two samples of a turn that is stuck, with how long the turn has taken so
    far, and how long the call may take."""
    _turn: int = field(default=0, init=False)
    """Odd while a turn is under way; changes when one begins or ends."""
    _seen: Counter[Stack] = field(factory=Counter, init=False)
    _is_parked: bool = field(default=False, init=False)
    _wake: threading.Event = field(factory=threading.Event, init=False)
    _is_over: bool = field(default=False, init=False)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Sample the calling thread inside the block."""
        watched = threading.get_ident()
        thread = threading.Thread(target=self._run, args=(watched,), name="trio-sched loop sampler", daemon=True)
        self._is_over = False
        self._wake.clear()
        thread.start()
        try:
            yield
        finally:
            self._is_over = True
            self._wake.set()
            thread.join(timeout=1.0)

    def turn_begins(self) -> None:
        """The loop runs tasks."""
        self._turn |= 1
        if self._is_parked:
            self._is_parked = False
            self._wake.set()

    def turn_ends(self) -> None:
        """The loop waits."""
        self._turn = (self._turn | 1) + 1

    def take(self) -> Stack | None:
        """Where it stood most often since the last time; None if no turn was overdue when it was looked."""
        if not self._seen:
            return None
        ((stack, _times),) = self._seen.most_common(1)
        self._seen = Counter()
        return stack

    def _run(self, watched: int) -> None:
        while not self._is_over:
            turn = self._turn
            if not turn % 2:
                self._wake.clear()
                self._is_parked = True
                if not self._turn % 2 and not self._is_over:
                    self._wake.wait()
                continue
            began, due = time.monotonic(), self.stuck_seconds
            self._wake.clear()
            self._wake.wait(self.overdue_seconds)
            step = self.overdue_seconds
            while self._turn == turn and not self._is_over:
                stack = self._sample(watched)
                if (seconds := time.monotonic() - began) >= due:
                    due *= 2
                    self.report_stuck(seconds, stack)
                if self.while_stuck is not None and seconds >= self.stuck_seconds:
                    self.while_stuck(seconds, step)
                else:
                    self._wake.wait(step)
                step = min(2 * step, _LONGEST_STEP_SECONDS)

    def _sample(self, watched: int) -> Stack:
        frame = sys._current_frames().get(watched)
        stack: list[tuple[CodeType, int]] = []
        while frame is not None and len(stack) < _MAX_DEPTH:
            stack.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        self._seen[tuple(stack)] += 1
        return tuple(stack)
