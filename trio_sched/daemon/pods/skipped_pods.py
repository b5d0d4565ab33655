"""Pods that the queue returns and that are not tried: being deleted (event FailedScheduling), or assumed already."""

from __future__ import annotations

import logging

from attrs import define

from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.scheduler_events import skipped_deleting
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class SkipPodSchedule:
    """Finds out whether a pod is skipped."""

    scheduler: Scheduler
    recorder: EventRecorder

    def __call__(self, info: QueuedPodInfo) -> bool:
        """Whether there is no point in scheduling the pod: it is being deleted, or is assumed already."""
        pod = self.scheduler.cache.unassigned.get(info.key) or info.pod
        if pod.metadata.deletion_timestamp:
            log_line(log, V3, "Skip schedule deleting pod", {"pod": info.key})
            self.recorder.record(skipped_deleting(pod))
            return True
        return self.scheduler.cache.is_assumed(info.uid)
