"""Client-side rate limit: requests per second."""

import math
from collections.abc import Callable

import trio
from attrs import define, field


@define(eq=False)
class TokenBucket:
    """*burst* requests at once, then *qps* a second, in the order in which they were reserved.

    Args:
        qps: tokens added per second; below zero means no limit.
        burst: how many tokens the bucket holds.
        clock: returns the time in seconds.
    """

    qps: float
    burst: int
    clock: Callable[[], float] = trio.current_time
    _tokens: float = field(init=False)
    _updated: float = field(init=False, default=-math.inf)

    def __attrs_post_init__(self) -> None:
        self._tokens = float(self.burst)

    def reserve(self) -> float:
        """Take a token, in advance if there is none; returns how many seconds to wait before the request is sent."""
        if self.qps < 0:
            return 0.0
        now = self.clock()
        tokens = min(float(self.burst), self._tokens + (now - self._updated) * self.qps)
        self._updated = now
        self._tokens = tokens = tokens - 1.0
        return 0.0 if tokens >= 0.0 else -tokens / self.qps

    async def take(self) -> float:
        """Wait for a token; returns how many seconds that took. Not a checkpoint if there is one already."""
        delay = self.reserve()
        if delay > 0.0:
            try:
                await trio.sleep(delay)
            except BaseException:
                self.return_token()
                raise
        return delay

    def return_token(self) -> None:
        """Undo a :meth:`reserve` whose request was not sent, so that later ones need not wait for it."""
        if self.qps >= 0:
            self._tokens += 1.0
