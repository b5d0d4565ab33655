"""Measures how late the event loop comes round to a task that is due."""

from __future__ import annotations

import time
from typing import Final

import trio

from trio_sched.daemon.metrics.recorder import MetricRecorder

PERIOD_SECONDS: Final = 1.0


async def watch_event_loop(recorder: MetricRecorder) -> None:
    """Measure for ever; by the wall clock, so not on a clock that jumps."""
    while True:
        due = time.perf_counter() + PERIOD_SECONDS
        await trio.sleep(PERIOD_SECONDS)
        recorder.loop_lag.observe(max(0.0, time.perf_counter() - due))
