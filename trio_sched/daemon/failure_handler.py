"""What happens to a pod that was not scheduled: back to the queue, an event, a condition."""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio
from attrs import define

from trio_sched.daemon.cluster_mirror import PendingPods
from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.pod_status import PodStatusWriter
from trio_sched.daemon.scheduler_events import failed_scheduling
from trio_sched.engine.decision import Unplaced
from trio_sched.engine.queue import AlreadyQueued, SchedulingQueue
from trio_sched.engine.queued_pod import QueuedPodInfo

log = logging.getLogger(__name__)


@define(eq=False)
class FailureHandler:
    """Deals with pods that were popped and not bound."""

    queue: SchedulingQueue
    pending: PendingPods
    recorder: EventRecorder
    status_writer: PodStatusWriter
    requeued: Callable[[], None]
    """Called when a pod is back in the queue, for the timers."""

    def handle(self, info: QueuedPodInfo, outcome: Unplaced) -> None:
        """Requeue the pod (if it still exists), and say why it was not scheduled."""
        diagnosis = outcome.diagnosis
        info.unschedulable_plugins = set(diagnosis.unschedulable_plugins) if diagnosis is not None else set()
        info.pending_plugins = set(diagnosis.pending_plugins) if diagnosis is not None else set()
        info.gating_plugin = ""
        known = self.pending.get(info.key)
        try:
            if known is not None:
                if known.uid != info.uid:
                    return  # deleted and created anew: the new one is in the queue on its own account
                if known is not info.pod:
                    info.replace_pod(known)
                self._requeue(info)
                nominator, promised = self.queue.nominator, outcome.nominated_node_name
                if promised is None:  # a promise that stands, even if the pod's status has not heard of it yet
                    promised = nominator.node_of(info.uid) or None
                nominator.add(info.pod, promised)
        finally:
            self.queue.done(info.uid)
            self.requeued()
        message = outcome.message
        self._log(info, outcome, message)
        self.recorder.record(failed_scheduling(info.pod, message))
        self.status_writer.write(
            info.pod, reason=outcome.reason, message=message, nominated_node_name=outcome.nominated_node_name
        )

    def _requeue(self, info: QueuedPodInfo) -> None:
        try:
            self.queue.add_unschedulable(info, now=trio.current_time())
        except AlreadyQueued as problem:
            log.error("Error occurred: %s", problem)

    def _log(self, info: QueuedPodInfo, outcome: Unplaced, message: str) -> None:
        if outcome.status.is_rejected:
            log.info("Unable to schedule pod; no fit; waiting", extra={"pod": info.key, "err": message})
        else:
            log.error("Error scheduling pod; retrying", extra={"pod": info.key, "err": message})
