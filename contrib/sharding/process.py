"""What every part of a process has: an identity, a clock of its own, and a network."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from attrs import define, field

from contrib.sharding.events import EventLoop
from contrib.sharding.link import Link
from contrib.sharding.protocol import Protocol
from trio_sched.engine.sharding.ownership import shard_of


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
        return shard_of(name, self.protocol.shards)
