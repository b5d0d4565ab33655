"""The first change that would let a pending pod run, found in a copy of the process."""

from __future__ import annotations

from typing import Final

from attrs import define, field

from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.process_copy import ProcessCopy
from trio_sched.engine.scheduler import Scheduler
from trio_sched.explanation.explanation import explain
from trio_sched.objects.pod import Pod

_TIMEOUT_SECONDS: Final = 20.0


@define(eq=False)
class FirstRemedy:
    """Finds it; while many pods are scheduled, for the cluster of up to five seconds ago."""

    scheduler: Scheduler
    metrics: MetricRecorder
    _copy: ProcessCopy = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._copy = ProcessCopy(self._answer, self.metrics.count_attempts)

    async def __call__(self, pod: Pod) -> str:
        """Its title; empty if none of the changes that are tried lets *pod* run.

        Raises:
            CopyFailed: that could not be found out.
        """
        key = pod.key.encode()
        found = await self._copy.ask(key, timeout_seconds=_TIMEOUT_SECONDS)
        if found == _NOT_THERE:
            found = await self._copy.ask(key, timeout_seconds=_TIMEOUT_SECONDS, is_new=True)
        return "" if found == _NOT_THERE else found.decode()

    def _answer(self, question: bytes) -> bytes:
        """Runs in the copy."""
        pod = self.scheduler.cache.unassigned.get(question.decode())
        if pod is None:
            return _NOT_THERE
        found = explain(self.scheduler, pod).remedies.found
        return found[0].change.title.encode() if found else b""


_NOT_THERE: Final = b"\0"
