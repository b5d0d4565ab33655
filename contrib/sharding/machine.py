"""Where one process after the other runs: its clock, its network, and what can happen to it."""

from __future__ import annotations

from random import Random

from attrs import define, evolve, field

from contrib.sharding.events import Action, EventLoop
from contrib.sharding.link import Link
from contrib.sharding.process import Process
from contrib.sharding.protocol import Protocol
from contrib.sharding.replica import Replica
from contrib.sharding.server import Server


@define(eq=False)
class Machine:
    """Has at most one process at a time."""

    number: int
    loop: EventLoop
    server: Server
    random: Random
    protocol: Protocol
    rate: float
    """Seconds of its clock in a second."""
    stuck: float
    process: Process | None = field(default=None, init=False)
    _starts: int = field(default=0, init=False)
    _is_stopped: bool = field(default=False, init=False)
    _waiting: list[Action] = field(factory=list, init=False)

    def start(self) -> None:
        """Start another process, unless there is one."""
        if self.process is not None:
            return
        self._starts += 1
        random = Random(self.random.random())

        def deliver(action: Action) -> None:
            if self.process is not process:
                return
            if self._is_stopped:
                self._waiting.append(lambda: deliver(action))
            else:
                action()

        link = Link(self.loop, self.server, random, deliver, self.stuck)
        process = Process(
            identity=f"replica-{self.number}-{self._starts}",
            protocol=self.protocol,
            loop=self.loop,
            link=link,
            random=random,
            clock=lambda: 1000.0 * self.number + self.rate * self.loop.now,
            clock_rate=self.rate,
        )
        self.process = process
        self.server.followers.append(link.followed)
        Replica(process).start()

    def kill(self) -> None:
        """End the process; what it has sent goes on."""
        if self.process is not None:
            self.server.followers.remove(self.process.link.followed)
        self.process = None
        self._is_stopped = False
        self._waiting.clear()

    def reconfigure(self, shards: int) -> None:
        """End the process, and start one that divides by another number of shards."""
        self.kill()
        self.protocol = evolve(self.protocol, shards=shards)
        self.start()

    def stop(self) -> None:
        """Stop the process, as SIGSTOP does."""
        self._is_stopped = True

    def go_on(self) -> None:
        """Let it go on."""
        self._is_stopped = False
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()

    def cut(self) -> None:
        """Cut its network."""
        if self.process is not None:
            self.process.link.cut()

    def mend(self) -> None:
        """Mend its network."""
        if self.process is not None:
            self.process.link.mend()
