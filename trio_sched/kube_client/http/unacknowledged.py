"""Warns of requests that wait for a server which does not respond, long before they time out."""

import logging
import math

import trio
from attrs import define, field

log = logging.getLogger(__name__)

FIRST_WARNING_SECONDS = 10.0
MAX_PAUSE_SECONDS = 600.0
_NONE = (math.inf, b"", b"")


@define(eq=False)
class UnacknowledgedRequests:
    """The requests to one server that have no response yet.

    Args:
        server: its URL, for the log.
    """

    server: str
    _waiting: dict[int, tuple[float, bytes, bytes]] = field(init=False, factory=dict)
    """When each was sent, its method and target; the oldest comes first."""
    _last_number: int = field(init=False, default=0)
    _pause: float = field(init=False, default=FIRST_WARNING_SECONDS)
    _warned_at: float = field(init=False, default=float("-inf"))

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest_sent_at(self) -> float:
        """When the request was sent that has waited longest; infinite if there is none."""
        return next(iter(self._waiting.values()), _NONE)[0]

    def begin(self, method: bytes, target: bytes, *, now: float) -> int:
        """Count a request as waiting; returns its number for :meth:`end`."""
        self._last_number = number = self._last_number + 1
        self._waiting[number] = (now, method, target)
        return number

    def end(self, number: int, *, answered: bool) -> None:
        """Count a request as done; if it got a response, the next warning is not delayed by those before it."""
        del self._waiting[number]
        if answered and self._pause != FIRST_WARNING_SECONDS:
            self._pause = FIRST_WARNING_SECONDS
            self._warned_at = float("-inf")

    async def warn(self) -> None:
        """Log a warning when the oldest request has waited too long, and again after ever longer pauses; never returns.

        There is one line for all requests, and the pauses go on growing over retries until the server responds.
        """
        while True:
            now = trio.current_time()
            oldest = next(iter(self._waiting.values()), None)
            if oldest is None:
                await trio.sleep(FIRST_WARNING_SECONDS / 2)
                continue
            began, method, target = oldest
            due = max(began + FIRST_WARNING_SECONDS, self._warned_at + self._pause)
            if now < due:
                await trio.sleep(min(due - now, FIRST_WARNING_SECONDS / 2))  # a response may bring it forward
                continue
            others = len(self._waiting) - 1
            log.warning(
                "no response for %.0f s: %s %s%s%s; is the server up, and is it an API server?",
                now - began,
                method.decode("ascii", "replace"),
                self.server,
                target.partition(b"?")[0].decode("ascii", "replace"),
                f" and {others} other requests" if others else "",
            )
            self._warned_at = now
            self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)
