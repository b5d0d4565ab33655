"""A share of the event loop's time, for what clients ask for before they are known."""

from __future__ import annotations

import math
import types
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from time import thread_time
from typing import Any, Final, TypeVar

import trio
from attrs import define, field

from trio_sched.daemon.serving.limits import TURN_SECONDS

T = TypeVar("T")

_ROUNDING_SECONDS: Final = 1e-6
_USUAL_SECONDS: Final = 0.001
"""The usual length of a turn: so many are given at once as there is time for."""
Rank = tuple[bool, float]
"""The lower, the sooner it is served."""


@types.coroutine
def timed(work: Awaitable[T], spend: Callable[[float], object]) -> Generator[Any, Any, T]:
    """Run *work*, and call *spend* with the seconds of each of its steps; the time that it waits does not count."""
    steps: Any = work.__await__()
    proceed: Callable[[], Any] = partial(next, steps)
    while True:
        began = thread_time()
        try:
            trap = proceed()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            del proceed  # an error in it would refer to this frame, and the frame to the error
            spend(thread_time() - began)
        try:
            proceed = partial(steps.send, (yield trap))
        except BaseException as error:
            proceed = partial(steps.throw, error)


@define(eq=False)
class TimeShare:
    """Up to *share* of the time, after *burst_seconds* at once.

    Turns go by rank. Of the equal ones the newest and the oldest have them alternately: with more of them than can be
    served, the newest are those whose clients have not given up; with as many as can be served, nobody is left out.
    """

    share: float
    burst_seconds: float
    _balance: float = field(init=False)
    _updated: float = field(init=False, default=-math.inf)
    _waiting: dict[trio.Event, Rank] = field(init=False, factory=dict)
    """Ranks, in the order of arrival."""
    _newest_first: bool = field(init=False, default=False)
    _wanted: trio.Event = field(init=False, factory=trio.Event)

    def __attrs_post_init__(self) -> None:
        self._balance = self.burst_seconds

    def spend(self, seconds: float) -> None:
        """Count what was spent.

        No more than *burst_seconds* are owed: tasks spend also when they are ended, and that cannot wait for a turn.
        """
        self._balance = max(self._refilled() - seconds, -self.burst_seconds)

    async def turn(self, rank: Rank) -> None:
        """Wait until there is time, and nobody of a lower *rank* waits. Always a checkpoint.

        Raises:
            trio.TooSlowError: others have asked for so much that it takes too long.
        """
        await trio.lowlevel.checkpoint()
        if not self._waiting and self._refilled() > 0.0:
            return
        turn = trio.Event()
        self._waiting[turn] = rank
        self._wanted.set()
        try:
            with trio.fail_after(TURN_SECONDS):
                await turn.wait()
        finally:
            self._waiting.pop(turn, None)

    async def run(self) -> None:
        """Give turns; never returns."""
        while True:
            if not self._waiting:
                self._wanted = trio.Event()
                await self._wanted.wait()
            await trio.sleep(max(0.0, -self._refilled() / self.share))
            if self._refilled() > -_ROUNDING_SECONDS:
                for _ in range(1 + int(self._balance / _USUAL_SECONDS)):
                    self._give_turn()
                await trio.lowlevel.checkpoint()  # what they spend is counted before the next turns

    def _give_turn(self) -> None:
        if self._waiting:
            self._newest_first = not self._newest_first
            order = reversed(self._waiting) if self._newest_first else iter(self._waiting)
            turn = min(order, key=self._waiting.__getitem__)
            del self._waiting[turn]
            turn.set()

    def _refilled(self) -> float:
        now = trio.current_time()
        self._balance = min(self.burst_seconds, self._balance + (now - self._updated) * self.share)
        self._updated = now
        return self._balance
