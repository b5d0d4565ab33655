"""Logs the moves of pods between the scheduling queues, from ``-v=5`` on."""

from __future__ import annotations

import logging

from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.verbosity import V5

log = logging.getLogger(__name__)


def log_queue_move(info: QueuedPodInfo, queue: str, event: str) -> None:
    """Log that the pod came into *queue* after the event with the label *event*."""
    if log.isEnabledFor(V5):
        fields = {"pod": info.key, "event": event, "queue": queue.capitalize(), "attempts": info.attempts}
        log_line(log, V5, "Pod moved to an internal scheduling queue", fields)
