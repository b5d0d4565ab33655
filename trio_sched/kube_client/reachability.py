"""Whether the API server can be reached, as far as the clients of one process know.

A stream whose connection broke does not try again by itself: it waits until the server has answered somebody, be it
another stream or the heartbeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import define, field

if TYPE_CHECKING:
    from trio_sched.kube_client.connection import KubeClient


@define(eq=False)
class Reachability:
    """What the clients of one server know together about whether it can be reached."""

    clients: list[KubeClient] = field(init=False, factory=list)
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

    async def pause(self, seconds: float, *, at_least: float = 0.0) -> None:
        """Wait for *seconds*, or until the server answers somebody, but not less than *at_least*."""
        back = self._back
        with trio.move_on_after(seconds):
            await trio.sleep(at_least)
            await back.wait()
