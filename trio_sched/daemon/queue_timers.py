"""The queue's timers: backoffs that end, pods that plugins want to try again, and those that have waited too long."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from trio_sched.daemon.limits import FLUSH_UNSCHEDULABLE_SECONDS, MIN_TIMER_SECONDS
from trio_sched.daemon.logs.failure_log import log_plugin_failures
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue


async def run_queue_timers(queue: SchedulingQueue, backoff_changed: WakeUp, wake: Callable[[], None]) -> None:
    """Flush the queue when it is time, for ever.

    Args:
        queue: the queue.
        backoff_changed: set when a pod was requeued, or is to be tried again at some time, so that the next time is
            worked out again.
        wake: called when the active queue may have got pods.
    """
    next_flush = trio.current_time()
    while True:
        now = trio.current_time()
        if now >= next_flush:
            queue.flush_unschedulable(now=now)
            next_flush = now + FLUSH_UNSCHEDULABLE_SECONDS
            log_plugin_failures(
                queue.plugin_failures
            )  # hints and pre_enqueue are called while another instance leads, too
        queue.flush_backoff(now=now)
        queue.flush_retries(now=now)
        if queue.has_next:
            wake()
        flush = next_flush if queue.unschedulable else math.inf
        next_time = min(queue.next_backoff_check(), queue.retries.next_due, flush)
        with trio.move_on_at(max(next_time, now + MIN_TIMER_SECONDS)):
            await backoff_changed.wait()
