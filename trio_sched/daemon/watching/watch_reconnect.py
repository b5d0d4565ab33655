"""Waits until the watches are connected, before a new leader takes its first decision.

A follower can acquire the lease while its watches pause after an outage. What the previous leader bound last would be
missing from the cache, and the same resources would be assigned twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import trio
from attrs import define

from trio_sched.daemon.limits import WATCH_CATCH_UP_SECONDS, WATCH_RECONNECT_SECONDS, WATCH_RETRY_SECONDS
from trio_sched.kube_client.watch import Reflector

log = logging.getLogger(__name__)


@define(eq=False)
class WatchReconnect:
    """Waits for the watches of nodes and pods after an interruption."""

    reflectors: Sequence[Reflector[Any]]

    async def wait_connected(self) -> None:
        """Wait until each is open and has caught up, or the timeout is over; returns at once if all are up to date."""
        disconnected = [reflector for reflector in self.reflectors if not reflector.is_up_to_date]
        if not disconnected:
            return
        with trio.move_on_after(WATCH_RECONNECT_SECONDS) as timeout:
            async with trio.open_nursery() as nursery:
                for reflector in disconnected:
                    nursery.start_soon(_connect, reflector)
            await trio.sleep(WATCH_CATCH_UP_SECONDS)
        if timeout.cancelled_caught:
            kinds = ", ".join(reflector.kind.plural for reflector in disconnected)
            log.warning("scheduling begins although the watches of %s are still broken", kinds)


async def _connect(reflector: Reflector[Any]) -> None:
    """Wait for the watch; it pauses no longer than a server needs that is about to be ready: it refuses at first."""
    while not reflector.connected.is_set():
        reflector.reconnect_now()
        with trio.move_on_after(WATCH_RETRY_SECONDS):
            await reflector.connected.wait()
