"""How often the configuration was reloaded, and what came of it."""

from __future__ import annotations

from collections import deque
from typing import Final

import trio
from attrs import define, field, frozen

_KEPT_RELOADS: Final = 50


@frozen(kw_only=True)
class ReloadResult:
    """One reload of the configuration."""

    at: float
    """In seconds of trio's clock."""
    problem: str
    """Why it failed; empty if it succeeded."""
    changed: tuple[str, ...] = ()
    """The lines of the configuration that went (``-``) and came (``+``); not all if these are many."""


@define(eq=False)
class ReloadCounters:
    """How often the configuration was reloaded."""

    succeeded: int = 0
    failed: int = 0
    last_problem: str = ""
    """Why the last one failed; empty if it succeeded."""
    results: deque[ReloadResult] = field(factory=lambda: deque(maxlen=_KEPT_RELOADS))
    """The last ones, the oldest first."""
    finished: trio.Event = field(factory=trio.Event)
    """Set when the one under way, or the next one, is over; replaced by a new event then."""

    def count(self, problem: str, changed: tuple[str, ...] = ()) -> None:
        """One is over.

        Args:
            problem: why it failed; empty if it did not.
            changed: the lines of the configuration that are others now.
        """
        if problem:
            self.failed += 1
        else:
            self.succeeded += 1
        self.last_problem = problem
        self.results.append(ReloadResult(at=trio.current_time(), problem=problem, changed=changed))
        self.finished.set()
        self.finished = trio.Event()
