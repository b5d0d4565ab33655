"""The first change that would let a pending pod run, found in a copy of the process."""

from __future__ import annotations

from typing import Final

from trio_sched.daemon.process_copy import run_in_copy
from trio_sched.engine.scheduler import Scheduler
from trio_sched.explanation.explanation import explain
from trio_sched.objects.pod import Pod

_TIMEOUT_SECONDS: Final = 20.0


async def first_remedy(scheduler: Scheduler, pod: Pod) -> str:
    """Its title; empty if none of the changes that are tried lets *pod* run.

    Raises:
        CopyFailed: that could not be found out.
    """

    def find() -> bytes:
        found = explain(scheduler, pod).remedies.found
        return found[0].change.title.encode() if found else b""

    return (await run_in_copy(find, timeout_seconds=_TIMEOUT_SECONDS)).decode()
