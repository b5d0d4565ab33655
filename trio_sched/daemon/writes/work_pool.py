"""A few long-lived tasks that run jobs from a queue: a new task for every pod would cost more than its bind."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

import trio
from attrs import define, field, frozen

from trio_sched.daemon.writes.job_times import JobTimes


class CancelCalled(Protocol):
    """A cancel scope."""

    @property
    def cancel_called(self) -> bool:
        """Whether it was cancelled."""
        ...


@frozen
class _NotCancelled:
    """The scope of jobs that are cancelled only with their tasks; a real one would ask for the time before each."""

    cancel_called: bool = False


_NOT_CANCELLED: Final = _NotCancelled()


class Jobs(Protocol):
    """What is counted about jobs."""

    @property
    def submitted(self) -> int:
        """Jobs so far."""
        ...

    @property
    def waiting(self) -> int:
        """How many jobs no task has started."""
        ...

    @property
    def unfinished(self) -> int:
        """How many jobs wait or run."""
        ...

    @property
    def times(self) -> JobTimes:
        """How long jobs wait and run."""
        ...


@define(eq=False)
class WorkPool:
    """Starts jobs in the order in which they are submitted, and runs as many at once as there are tasks.

    A job handles its own failures; an exception that leaves a job ends `run` and leaves that too. A job must not wait
    for a job that is submitted after it: there may be no task left to run that.
    """

    tasks: int
    submitted: int = field(default=0, init=False)
    """Jobs so far."""
    scope: Callable[[], AbstractContextManager[CancelCalled]] = lambda: nullcontext(_NOT_CANCELLED)
    """Opened by every task around its jobs, and again once it is cancelled: that ends the job, not the task."""
    times: JobTimes = field(factory=JobTimes, init=False)
    """How long jobs wait and run."""
    _jobs: deque[tuple[Callable[[], Awaitable[None]], float]] = field(factory=deque)
    """Those that wait, and when each was submitted."""
    _idle: trio.lowlevel.ParkingLot = field(factory=trio.lowlevel.ParkingLot)
    _short: trio.lowlevel.ParkingLot = field(factory=trio.lowlevel.ParkingLot)
    """Where `run` waits until no task is idle for a job."""
    _busy: int = 0
    _emptied: trio.Event | None = None

    def submit(self, job: Callable[[], Awaitable[None]]) -> None:
        """Have *job* run as soon as a task is idle; returns at once."""
        self._jobs.append((job, self.times.now()))
        self.submitted += 1
        for parked in (self._idle, self._short):
            if parked:  # under load no task is idle, and to unpark none costs as much as to unpark one
                parked.unpark()
                return

    def discard_waiting(self) -> None:
        """Drop the jobs that no task has started."""
        self._jobs.clear()
        if not self._busy and self._emptied is not None:
            self._emptied.set()
            self._emptied = None

    @property
    def waiting(self) -> int:
        """How many jobs no task has started."""
        return len(self._jobs)

    @property
    def unfinished(self) -> int:
        """How many jobs wait or run."""
        return len(self._jobs) + self._busy

    async def drained(self) -> None:
        """Wait until no job waits or runs."""
        while self.unfinished:
            if self._emptied is None:
                self._emptied = trio.Event()
            await self._emptied.wait()

    async def run(self) -> None:
        """Run jobs until cancelled; a task is started when there is a job for it, and not by whoever submits that.

        A task inherits the context variables of the one that starts it.
        """
        async with trio.open_nursery() as nursery:
            missing = self.tasks
            while missing:
                started = min(missing, len(self._jobs))
                for _ in range(started):
                    nursery.start_soon(self._work)
                missing -= started
                await self._short.park()

    async def _work(self) -> None:
        me = object()
        while True:
            with self.scope() as scope:
                await self._work_until_cancelled(scope, me)

    async def _work_until_cancelled(self, scope: CancelCalled, me: object) -> None:
        jobs, times = self._jobs, self.times
        while not scope.cancel_called:
            if not jobs:
                await self._idle.park()
                continue
            self._busy += 1
            times.started(me, jobs[0][1])
            try:
                await jobs.popleft()[0]()  # without a name for the job: an idle task would keep it, and the pod in it
            finally:
                times.ended(me)
                self._busy -= 1
                if not jobs and not self._busy and self._emptied is not None:
                    self._emptied.set()
                    self._emptied = None
