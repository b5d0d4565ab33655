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

from trio_sched.daemon.limits import WATCH_CATCH_UP_SECONDS, WATCH_RECONNECT_SECONDS
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
        for reflector in disconnected:
            reflector.reconnect_now()
        with trio.move_on_after(WATCH_RECONNECT_SECONDS) as timeout:
            for reflector in disconnected:
                await reflector.connected.wait()
            await trio.sleep(WATCH_CATCH_UP_SECONDS)
        if timeout.cancelled_caught:
            kinds = ", ".join(reflector.kind.plural for reflector in disconnected)
            log.warning("scheduling begins although the watches of %s are still broken", kinds)
