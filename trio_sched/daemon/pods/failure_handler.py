"""What happens to a pod that was not scheduled: back to the queue, an event, a condition."""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio
from attrs import define

from trio_sched.daemon.logs.failure_log import log_plugin_failures
from trio_sched.daemon.logs.log_lines import attempt_fields, log_line
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.pods.attempt_history import AttemptHistory
from trio_sched.daemon.pods.condition_remedies import ConditionRemedies
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.scheduler_events import failed_scheduling
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.tracebacks import forget_tracebacks
from trio_sched.verbosity import V2

log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class FailureHandler:
    """Deals with pods that were popped and not bound."""

    scheduler: Scheduler
    recorder: EventRecorder
    status_writer: PodStatusWriter
    requeued: Callable[[], None]
    """Called when a pod is back in the queue, for the timers."""
    metrics: MetricRecorder
    attempts: AttemptHistory
    remedies: ConditionRemedies | None
    """What would help, for conditions; None: these say what kube-scheduler's say."""

    def handle(self, info: QueuedPodInfo, outcome: SchedulingFailure, *, assumed_pod: Pod | None = None) -> None:
        """Requeue the pod (if it still exists), and record why it was not scheduled.

        Args:
            info: the pod of the attempt.
            outcome: why it was not scheduled.
            assumed_pod: the pod as it was assumed on a node, if it was.
        """
        if info.trace is not None:
            info.trace.failed(outcome.status)
        known, now = self.scheduler.cache.unassigned.get(info.key), trio.current_time()
        woken_by = info.moved_by
        self.metrics.not_scheduled(info, now, rejected=outcome.status.is_rejected)
        problem = self.scheduler.requeue(info, outcome, known, now=now, assumed_pod=assumed_pod)
        if problem is not None:
            log.error("Error occurred: %s", problem)
        self.requeued()
        if outcome.status.error is not None:
            log_plugin_failures(self.scheduler.plugin_failures)  # the tracebacks that are in it
            forget_tracebacks(outcome.status.error)
        if known is not None and known.uid != info.uid:
            return  # deleted and created again: the new pod has an entry in the queue of its own
        message = outcome.message
        if known is not None:
            self.attempts.add(info.uid, now, woken_by, message)
        self._log(info, outcome, message)
        self.recorder.record(failed_scheduling(info.pod, message))
        if self.remedies is not None and known is not None and outcome.status.is_rejected:
            message = self.remedies.message_for(known, message)
        self.status_writer.write(
            info.pod, reason=outcome.reason, message=message, nominated_node_name=outcome.nominated_node_name
        )

    def _log(self, info: QueuedPodInfo, outcome: SchedulingFailure, message: str) -> None:
        if outcome.status.is_rejected:
            if log.isEnabledFor(V2):
                fields = {"pod": info.key, "err": message}
                log_line(log, V2, "Unable to schedule pod; no fit; waiting", fields | attempt_fields(info))
        else:
            log.error("Error scheduling pod; retrying", extra={"pod": info.key, "err": message} | attempt_fields(info))
