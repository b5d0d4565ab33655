"""Whether the API server can be reached, as far as the clients of one process know.

A stream whose connection broke does not try again by itself: it waits until the server has answered somebody, be it
another stream or the heartbeat.
"""

from __future__ import annotations

from typing import Protocol

import trio
from attrs import define, field

from trio_sched.kube_client.http.pool import Pool
from trio_sched.kube_client.retry import SHORTEST_PAUSE_SECONDS, refusal_pause_seconds


class ClientOfServer(Protocol):
    """What a `Heartbeat` needs of a `KubeClient`, which itself needs what is known here."""

    @property
    def pool(self) -> Pool | None:
        """Its connections; None if it has none of its own."""

    @property
    def oldest_request_sent_at(self) -> float:
        """When the oldest request without a response was sent, in seconds of trio's clock; ``inf``: there is none."""

    def prepared_headers(self) -> bytes | None:
        """The headers of a request, with credentials; None if these must be fetched first."""

    def path(self, path: bytes) -> bytes:
        """*path* behind the path of the server's URL."""


@define(eq=False)
class Reachability:
    """What the clients of one server know together about whether it can be reached."""

    clients: list[ClientOfServer] = field(init=False, factory=list)
    """Those with connections of their own."""
    is_checked: bool = field(init=False, default=False)
    """Whether a `Heartbeat` finds out when the server is back."""
    outages: int = field(init=False, default=0)
    """How often it was seen that the server could not be reached."""
    _lost: trio.Event = field(init=False, factory=trio.Event)
    _back: trio.Event = field(init=False, factory=trio.Event)

    @property
    def is_lost(self) -> bool:
        """Whether a connection has failed, and there was no answer since."""
        return self._lost.is_set()

    def lost(self) -> None:
        """A connection has failed."""
        self._lost.set()

    def answered(self) -> None:
        """The server has answered: whatever waits tries again now."""
        if self.is_lost:
            self._lost = trio.Event()
        self._back.set()
        self._back = trio.Event()

    async def wait_lost(self) -> None:
        """Wait until a connection fails."""
        await self._lost.wait()

    async def outlast(self, lost_at: float) -> None:
        """Wait before another try, since the server does not answer: ever longer, or until it answers somebody.

        Args:
            lost_at: when it began, on trio's clock.
        """
        await self.pause(refusal_pause_seconds(trio.current_time() - lost_at), at_least=SHORTEST_PAUSE_SECONDS)

    async def pause(self, seconds: float, *, at_least: float = 0.0) -> None:
        """Wait for *seconds*, or until the server answers somebody, but not less than *at_least*."""
        back = self._back
        with trio.move_on_after(seconds):
            await trio.sleep(at_least)
            await back.wait()
