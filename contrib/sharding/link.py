"""The network between a process and the API server: delays, outages, requests that arrive long after they were sent."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from attrs import define, field

from contrib.sharding.events import Action, EventLoop
from contrib.sharding.objects import Change
from contrib.sharding.server import Server

_MEDIAN_SECONDS: Final = 0.004
_STUCK_SECONDS: Final = 45.0
"""For so long at most: longer than any lease is valid."""
_LATE_SECONDS: Final = 6.0
"""So late is what is watched at most, as often as requests are held back."""

Answer = Callable[[Any], None]


@define(eq=False)
class Link:
    """Carries the requests of one process, and what it watches."""

    loop: EventLoop
    server: Server
    random: Random
    deliver: Callable[[Action], None]
    """Runs an action in the process: later if it is stopped, never if it is dead."""
    stuck: float
    """The share of requests that some buffer holds back."""
    is_up: bool = field(default=True, init=False)
    requests: int = field(default=0, init=False)
    """So many were sent."""
    events: int = field(default=0, init=False)
    """So many changes were watched."""
    _held: list[Action] = field(factory=list, init=False)
    """What goes on when the network is there again."""
    _position: int | None = field(default=None, init=False)
    """The position in the log: what is before it was sent to the watch; None: nothing is watched."""
    _watching: Callable[[list[Change]], None] = field(init=False, default=lambda _changes: None)
    _watch_arrives: float = field(default=0.0, init=False)

    def request(self, call: Callable[[], Any], answer: Answer, timeout: float) -> None:
        """Have the server do *call*; *answer* gets what it returns, or None after *timeout* seconds."""
        is_answered = False
        self.requests += 1

        def finish(value: Any) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                answer(value)

        def arrive() -> None:
            if not self.is_up:
                self._stopped(arrive)
                return
            value = call()
            self.loop.after(self._delay(), lambda: self._respond(lambda: finish(value)))

        late = self.random.random() * _STUCK_SECONDS if self.random.random() < self.stuck else 0.0
        self.loop.after(self._delay() + late, arrive)
        self.loop.after(timeout, lambda: self.deliver(lambda: finish(None)))

    def watch(self, position: int, take: Callable[[list[Change]], None]) -> None:
        """Have *take* get all changes from *position* of the log on, in their order."""
        self._position, self._watching, self._watch_arrives = position, take, self.loop.now
        self._send()

    def followed(self) -> None:
        """The log has grown."""
        if self._position is not None and self._watch_arrives <= self.loop.now:
            self._send()

    def cut(self) -> None:
        """Nothing gets through any more."""
        self.is_up = False

    def mend(self) -> None:
        """The network is there again, and brings what it has kept."""
        self.is_up = True
        held, self._held = self._held, []
        for action in held:
            self.loop.after(self._delay(), action)
        self.followed()

    def _respond(self, finish: Action) -> None:
        if self.is_up:
            self.deliver(finish)

    def _stopped(self, action: Action) -> None:
        """A request meets an outage: it is lost, or sent again by the kernel after it."""
        if self.random.random() < 0.5:
            self._held.append(action)

    def _send(self) -> None:
        """Send what the watch has not got yet; what comes meanwhile is sent when this has arrived."""
        position = self._position
        if position is None or not self.is_up or position >= len(self.server.log):
            return
        changes = self.server.log[position:]
        take = self._watching
        late = self.random.random() * _LATE_SECONDS if self.random.random() < self.stuck else 0.0
        self._watch_arrives = self.loop.now + self._delay() + late

        def arrive() -> None:
            if not self.is_up or self._watching is not take or self._position != position:
                return
            self._position = position + len(changes)
            self.events += len(changes)
            self.deliver(lambda: take(changes))
            self._send()

        self.loop.at(self._watch_arrives, arrive)

    def _delay(self) -> float:
        return self.random.lognormvariate(0.0, 0.8) * _MEDIAN_SECONDS
