"""What every part of a process has: an identity, a clock of its own, and a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import Any

from attrs import define, field

from contrib.sharding.events import EventLoop
from contrib.sharding.link import Link
from contrib.sharding.protocol import Protocol


@lru_cache(1 << 14)
def _shard_of(name: str, shards: int) -> int:
    """The shard with the highest hash together with *name*.

    Which shard it is does not matter to the rules, but the seeds of the tests find what they are there for with this.
    """
    return max(range(shards), key=lambda shard: blake2b(f"{shard}/{name}".encode(), digest_size=8).digest())


@define(eq=False, kw_only=True)
class Process:
    """One process, from its start to its end; another start is another one."""

    identity: str
    protocol: Protocol
    loop: EventLoop
    link: Link
    random: Random
    clock: Callable[[], float]
    clock_rate: float
    """Seconds of the local clock in a second."""
    decisions: int = field(default=0, init=False)
    """So often a pod was decided on."""

    def later(self, local_seconds: float, action: Callable[[], None]) -> None:
        """Do *action* in so many seconds of the local clock."""
        self.loop.after(local_seconds / self.clock_rate, lambda: self.link.deliver(action))

    def ask(self, call: Callable[[], Any], answer: Callable[[Any], None]) -> None:
        """Ask for something; *answer* gets it, and nothing happens without one."""
        seconds = self.protocol.request_seconds
        self.link.request(call, lambda value: None if value is None else answer(value), seconds)

    def shard(self, name: str) -> int:
        """The shard of a node, or of the owner of pods."""
        return _shard_of(name, self.protocol.shards)
