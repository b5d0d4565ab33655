"""How many requests per second we allow ourselves."""

import math
from collections.abc import Callable

import trio
from attrs import define, field


@define(eq=False)
class TokenBucket:
    """*burst* requests at once, then *qps* a second; those who wait are served in the order they came.

    Args:
        qps: tokens that come in per second; below zero means no limit.
        burst: how many the bucket holds.
        clock: the time in seconds.
    """

    qps: float
    burst: int
    clock: Callable[[], float] = trio.current_time
    _tokens: float = field(init=False)
    _updated: float = field(init=False, default=-math.inf)

    def __attrs_post_init__(self) -> None:
        self._tokens = float(self.burst)

    def reserve(self) -> float:
        """Take a token now or in advance; answers after how many seconds it may be spent."""
        if self.qps < 0:
            return 0.0
        now = self.clock()
        tokens = min(float(self.burst), self._tokens + (now - self._updated) * self.qps)
        self._updated = now
        self._tokens = tokens = tokens - 1.0
        return 0.0 if tokens >= 0.0 else -tokens / self.qps

    async def take(self) -> float:
        """Wait for a token; answers how many seconds that took. Not a checkpoint when there is one."""
        delay = self.reserve()
        if delay > 0.0:
            try:
                await trio.sleep(delay)
            except BaseException:
                self.give_back()
                raise
        return delay

    def give_back(self) -> None:
        """Undo a :meth:`reserve` whose token was not spent, so that those who come later need not wait for it."""
        if self.qps >= 0:
            self._tokens += 1.0
