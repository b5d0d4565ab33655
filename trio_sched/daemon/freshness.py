"""Whether what we know of the cluster is what it is: asked before a new leader takes its first decision.

A follower can get the lease while its watches still wait out an outage. What the leader before it bound at the end
would be missing from the cache, and its place would be given away a second time.
"""

from __future__ import annotations

import logging
from typing import Any

import trio
from attrs import define, field

from trio_sched.kube_client.watch import Reflector

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 30.0
"""So long a leader waits for its watches; after that it goes on with what it knows."""
CATCH_UP_SECONDS = 1.0
"""What was missed arrives right after a watch is open again."""


@define(eq=False)
class Freshness:
    """Knows the watches that decisions rest on."""

    reflectors: list[Reflector[Any]] = field(factory=list)

    async def regained(self) -> None:
        """Wait until every watch is open and what it missed has been taken in; returns at once if all are."""
        stale = [reflector for reflector in self.reflectors if not reflector.live.is_set()]
        if not stale:
            return
        for reflector in stale:
            reflector.hurry()
        with trio.move_on_after(PATIENCE_SECONDS) as patience:
            for reflector in stale:
                await reflector.live.wait()
            await trio.sleep(CATCH_UP_SECONDS)
        if patience.cancelled_caught:
            kinds = ", ".join(reflector.kind.plural for reflector in stale)
            log.warning("scheduling begins although the watches of %s are still broken", kinds)
