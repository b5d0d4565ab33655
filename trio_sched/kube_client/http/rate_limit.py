"""Client-side rate limit: requests per second."""

import math
from collections import deque
from functools import partial

import outcome
import trio
from attrs import define, field

_Waiter = tuple[float, trio.lowlevel.Task]
"""A task, and when its token is there."""


@define(eq=False)
class TokenBucket:
    """*burst* requests at once, then *qps* a second, in the order in which they were reserved.

    Args:
        qps: tokens added per second; below zero means no limit.
        burst: how many tokens the bucket holds.
    """

    qps: float
    burst: int
    _tokens: float = field(init=False)
    _updated: float = field(init=False, default=-math.inf)
    _timed: float = field(init=False, default=math.inf)
    """When the timer of all that wait ends."""
    _waiting: deque[_Waiter] = field(init=False, factory=deque)

    def __attrs_post_init__(self) -> None:
        self._tokens = float(self.burst)

    def reserve(self, now: float) -> float:
        """Take a token, in advance if there is none; returns how many seconds to wait before the request is sent."""
        if self.qps < 0:
            return 0.0
        tokens = min(float(self.burst), self._tokens + (now - self._updated) * self.qps)
        self._updated = now
        self._tokens = tokens = tokens - 1.0
        return 0.0 if tokens >= 0.0 else -tokens / self.qps

    async def take(self) -> float:
        """Wait for a token; returns how many seconds that took. Not a checkpoint if there is one already."""
        now = trio.current_time()
        delay = self.reserve(now)
        if delay > 0.0:
            await self.wait_until(now + delay)
        return delay

    async def wait_until(self, due: float) -> None:
        """Wait for a token that was reserved in advance; it is returned if that is cancelled.

        Only one task has a timer: under load, hundreds wait, and a timer costs more than a request's bookkeeping. It
        wakes up all that are due with it, and the first one that is not takes over.
        """
        try:
            if due >= self._timed:
                waiter = due, trio.lowlevel.current_task()
                self._waiting.append(waiter)
                if await trio.lowlevel.wait_task_rescheduled(partial(self._leave, waiter)):
                    return
            self._timed = due
            try:
                await trio.sleep_until(due)
            finally:
                self._pass_timer_on(due)
        except BaseException:
            self.return_token()
            raise

    def _leave(self, waiter: _Waiter, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._waiting.remove(waiter)
        return trio.lowlevel.Abort.SUCCEEDED

    def _pass_timer_on(self, due: float) -> None:
        """Wake up the tasks that wait no longer than until now; if the timer was for *due*, the next has to have it."""
        waiting, now = self._waiting, trio.current_time()
        while waiting and waiting[0][0] <= now:
            trio.lowlevel.reschedule(waiting.popleft()[1], outcome.Value(True))
        if self._timed == due:
            self._timed = math.inf
            if waiting:
                self._timed, task = waiting.popleft()
                trio.lowlevel.reschedule(task, outcome.Value(False))

    def return_token(self) -> None:
        """Undo a :meth:`reserve` whose request was not sent, so that later ones need not wait for it."""
        if self.qps >= 0:
            self._tokens += 1.0
