"""The checks of ``/livez``: whether progress is made; kube-scheduler's own cannot fail while the process responds."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import trio
from attrs import define, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.serving.limits import (
    BUSY_TICKS,
    EVENT_LOOP_LAG_MEMORY_SECONDS,
    EVENT_LOOP_LAG_SECONDS,
    LIVENESS_TICK_SECONDS,
    LOOP_STUCK_SECONDS,
    WATCH_DEAD_SECONDS,
)
from trio_sched.daemon.serving.pages.health import Check


@define(eq=False)
class Liveness:
    """Looks at the loop, the watches and the event loop every second."""

    assembly: Assembly
    _slices: int = field(init=False, default=-1)
    _stuck_since: float | None = field(init=False, default=None)
    _broken_since: dict[str, float] = field(init=False, factory=dict)
    """Watches of nodes and pods that are not open, by the plural of their kind."""
    _lags: deque[tuple[float, float]] = field(init=False, factory=deque)
    """When a tick was late, and by how many seconds."""
    _cycle: int = field(init=False, default=0)
    _had_more: bool = field(init=False, default=False)
    """Whether pods were left in the active queue at the last look."""
    _busy: deque[tuple[float, int]] = field(init=False, factory=lambda: deque(maxlen=BUSY_TICKS))
    """The last ticks at both ends of which pods waited for their turn: seconds, and how many pods were tried."""

    def checks(self) -> Sequence[Check]:
        """The checks, for ``/livez``."""
        return (
            Check("scheduling-loop", self._loop_problem, only_if_failing=True),
            Check("event-loop", self._event_loop_problem, only_if_failing=True),
            Check("watches", self._watch_problem, only_if_failing=True),
        )

    async def run(self) -> None:
        """Look; never returns."""
        while True:
            due = trio.current_time() + LIVENESS_TICK_SECONDS
            await trio.sleep_until(due)
            now = trio.current_time()
            self._look_at_event_loop(now, late=now - due)
            self._look_at_queue(LIVENESS_TICK_SECONDS + now - due)
            self._look_at_loop(now)
            self._look_at_watches(now)

    def _look_at_event_loop(self, now: float, *, late: float) -> None:
        if late > LIVENESS_TICK_SECONDS:
            self._lags.append((now, late))
        while self._lags and self._lags[0][0] < now - EVENT_LOOP_LAG_MEMORY_SECONDS:
            self._lags.popleft()

    def attempts_per_second(self) -> float | None:
        """How many pods are tried while others wait for their turn; None if none have waited lately."""
        seconds, attempts = (sum(column) for column in zip(*self._busy, strict=True)) if self._busy else (0.0, 0)
        return attempts / seconds if attempts else None

    def _look_at_queue(self, seconds: float) -> None:
        queue = self.assembly.scheduler.queue
        tried, self._cycle = queue.scheduling_cycle - self._cycle, queue.scheduling_cycle
        had_more, self._had_more = self._had_more, queue.has_next
        if had_more and self._had_more:
            self._busy.append((seconds, tried))

    def _look_at_loop(self, now: float) -> None:
        loop = self.assembly.schedule_one
        has_work = loop.is_running and self.assembly.scheduler.queue.has_next
        if not has_work or loop.slices != self._slices:
            self._slices, self._stuck_since = loop.slices, None
        elif self._stuck_since is None:
            self._stuck_since = now

    def _look_at_watches(self, now: float) -> None:
        for reflector in self.assembly.watch_reconnect.reflectors:
            name = reflector.kind.plural
            if reflector.is_up_to_date or not reflector.has_listed:
                self._broken_since.pop(name, None)
            else:
                self._broken_since.setdefault(name, now)

    def _loop_problem(self) -> str:
        stuck = _seconds_since(self._stuck_since)
        if stuck < LOOP_STUCK_SECONDS:
            return ""
        pods = len(self.assembly.scheduler.queue.active)
        return f"no pod has been scheduled for {stuck:.0f} s although {pods} pods are in the active queue"

    def _event_loop_problem(self) -> str:
        late = sum(seconds for _at, seconds in self._lags)
        if late < EVENT_LOOP_LAG_SECONDS:
            return ""
        text = f"the event loop was blocked for {late:.1f} of the last {EVENT_LOOP_LAG_MEMORY_SECONDS:.0f} s"
        last = self.assembly.blocking_hooks.last
        if last is None:
            return f"{text}; the log names hooks of plugins that block it"
        plugin, hook = last
        return f"{text}, last by {hook} of plugin {plugin}; the log has its place"

    def _watch_problem(self) -> str:
        broken = {name: _seconds_since(since) for name, since in self._broken_since.items()}
        dead = {name: seconds for name, seconds in broken.items() if seconds >= WATCH_DEAD_SECONDS}
        if not dead or not self._server_responds(len(broken)):
            return ""
        return ", ".join(f"the watch of {name} has been broken for {seconds:.0f} s" for name, seconds in dead.items())

    def _server_responds(self, broken: int) -> bool:
        """Whether the API server seems to be there: a restart of this process would not help if it is away."""
        election = self.assembly.settings.config.leader_election
        renews_lease = election.leader_elect and self.assembly.schedule_one.is_running
        return renews_lease or broken < len(self.assembly.watch_reconnect.reflectors)


def _seconds_since(begin: float | None) -> float:
    return -math.inf if begin is None else trio.current_time() - begin
