"""Lets other tasks run after something that does not wait."""

from __future__ import annotations

import trio

from trio_sched.daemon.limits import LONG_SECONDS


async def give_way(blocked_seconds: float) -> None:
    """Let other tasks run, after the event loop was blocked for so long.

    After a long time for half as long: a request, like that which renews a lease, takes many turns of the loop. With
    one turn between two pods that each take a second, it would take longer than the lease lasts.
    """
    if blocked_seconds < LONG_SECONDS:
        await trio.lowlevel.checkpoint()
    else:
        await trio.sleep(blocked_seconds / 2)
