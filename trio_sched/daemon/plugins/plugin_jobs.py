"""What plugins do in the background: of each plugin so much at once, so that none holds up the others."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
from attrs import define, field

from trio_sched.daemon.hooks.hook_calls import run_in_background
from trio_sched.daemon.limits import MAX_PARALLEL_PLUGIN_JOBS, MAX_WAITING_PLUGIN_JOBS
from trio_sched.daemon.logs.failure_log import exception_to_log
from trio_sched.daemon.writes.job_times import JobTimes
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.kube_client.errors import WriteNotPermitted
from trio_sched.plugin_api.handle import NotLeading

log = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]
_MAX_CAUSES: Final = 5


@define(eq=False)
class PluginJobs:
    """Starts the jobs of a plugin in the order in which they are submitted; failures are logged."""

    submitted: int = field(default=0, init=False)
    """Jobs so far."""
    times: JobTimes = field(factory=JobTimes, init=False)
    """How long jobs wait and run."""
    _jobs: dict[str, deque[tuple[str, Job, float]]] = field(factory=dict, init=False)
    """By plugin, those that wait, each with its profile, and when it was submitted."""
    _running: Counter[str] = field(factory=Counter, init=False)
    """By plugin."""
    _nursery: trio.Nursery | None = field(default=None, init=False)
    _emptied: trio.Event = field(factory=trio.Event, init=False)

    def submit(self, plugin: str, profile: str, job: Job) -> None:
        """Have *job* run as soon as *plugin* may start another one; returns at once.

        Raises:
            RuntimeError: too many jobs of the plugin wait.
        """
        jobs = self._jobs.setdefault(plugin, deque())
        if len(jobs) >= MAX_WAITING_PLUGIN_JOBS:
            raise RuntimeError(f"handle.run_in_background: {len(jobs)} jobs of {plugin} wait already")
        jobs.append((profile, job, self.times.now()))
        self.submitted += 1
        self._start(plugin)

    @property
    def waiting(self) -> int:
        """How many jobs have not been started."""
        return sum(map(len, self._jobs.values()))

    @property
    def unfinished(self) -> int:
        """How many jobs wait or run."""
        return self.waiting + self._running.total()

    def is_idle(self, plugin: str) -> bool:
        """Whether no job of *plugin* waits or runs."""
        return not self._running[plugin] and not self._jobs.get(plugin)

    def discard_waiting(self) -> None:
        """Drop the jobs that have not been started."""
        self._jobs.clear()
        self._tell_if_emptied()

    async def drained(self) -> None:
        """Wait until no job waits or runs."""
        while self.unfinished:
            self._emptied = trio.Event()
            await self._emptied.wait()

    async def run(self) -> None:
        """Run jobs until cancelled."""
        while True:  # a job can reach, and cancel, the nursery that it runs in
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                try:
                    for plugin in list(self._jobs):
                        self._start(plugin)
                    await trio.sleep_forever()
                finally:
                    self._nursery = None

    def _start(self, plugin: str) -> None:
        jobs = self._jobs[plugin]
        while self._nursery is not None and jobs and self._running[plugin] < MAX_PARALLEL_PLUGIN_JOBS:
            profile, job, submitted_at = jobs.popleft()
            self._running[plugin] += 1
            name = f"background job of plugin {plugin}"
            self._nursery.start_soon(self._run, plugin, profile, job, submitted_at, name=name)

    async def _run(self, plugin: str, profile: str, job: Job, submitted_at: float) -> None:
        running = object()
        self.times.started(running, submitted_at)
        try:
            error = (await run_in_background(BoundHook(plugin, "run_in_background", job))).error
        finally:
            self.times.ended(running)
            self._running[plugin] -= 1
            if plugin in self._jobs:
                self._start(plugin)
            self._tell_if_emptied()
        if _may_not_write(error):  # whoever leads now does it, or undoes it
            log.info("a background job of plugin %s ended: %s", plugin, error)
        elif error is not None:
            fields: dict[str, Any] = {"plugin": plugin, "profile": profile}
            text = "a background job of plugin %s failed: %s"
            log.error(text, plugin, describe_error(error), extra=fields, exc_info=exception_to_log(error))

    def _tell_if_emptied(self) -> None:
        if not self.unfinished:
            self._emptied.set()


def _may_not_write(error: BaseException | None) -> bool:
    """Whether that is what *error* is about, or its cause."""
    for _ in range(_MAX_CAUSES):  # what plugins raise can be its own cause
        if isinstance(error, NotLeading | WriteNotPermitted):
            return True
        error = error.__cause__ if error is not None else None
    return False
