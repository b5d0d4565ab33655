"""What clients may use up before they are known, all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trio
from attrs import define, field

from trio_sched.daemon.serving.connections.memory_budget import MemoryBudget
from trio_sched.daemon.serving.connections.time_share import Rank, TimeShare
from trio_sched.daemon.serving.limits import (
    CROWD,
    HANDSHAKE_BURST_SECONDS,
    HANDSHAKE_SHARE,
    REQUEST_BURST_SECONDS,
    REQUEST_SHARE,
    UNAUTHENTICATED_BYTES,
)


@define(eq=False)
class Unauthenticated:
    """The bounds of all connections none of whose requests has been authenticated."""

    memory: MemoryBudget[Any] = field(factory=lambda: MemoryBudget(UNAUTHENTICATED_BYTES))
    handshakes: TimeShare = field(factory=lambda: TimeShare(HANDSHAKE_SHARE, HANDSHAKE_BURST_SECONDS))
    requests: TimeShare = field(factory=lambda: TimeShare(REQUEST_SHARE, REQUEST_BURST_SECONDS))
    _addresses: Counter[str] = field(init=False, factory=Counter)
    """How many connections come from each."""

    @contextmanager
    def connected_from(self, address: str) -> Iterator[None]:
        """Count a connection inside the block."""
        self._addresses[address] += 1
        try:
            yield
        finally:
            self._addresses[address] -= 1
            if not self._addresses[address]:
                del self._addresses[address]

    def rank(self, address: str, spent_seconds: float = 0.0) -> Rank:
        """Who comes first: an address with few connections, and a connection that has used up little."""
        return self._addresses[address] > CROWD, spent_seconds

    async def run(self) -> None:
        """Give turns; never returns."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.handshakes.run)
            nursery.start_soon(self.requests.run)
