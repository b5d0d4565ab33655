"""A queue of which is recorded what moves pods besides changes and attempts: timers, and whoever activates pods."""

from __future__ import annotations

from collections.abc import Iterable

import trio
from attrs import define

from trio_sched.daemon.recording.decision_recorder import DecisionRecorder
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.objects.pod import Pod
from trio_sched.recording.records import BACKOFF, RETRIES, UNSCHEDULABLE, Activated, Flushed


@define(eq=False, kw_only=True)
class RecordedQueue(SchedulingQueue):
    """Queues pods as `SchedulingQueue` does, and notes what cannot be told from other records."""

    decisions: DecisionRecorder

    def flush_backoff(self, *, now: float) -> None:
        """Move on every pod whose backoff is over."""
        before = len(self.backing_off)
        super().flush_backoff(now=now)
        if len(self.backing_off) != before:
            self.decisions.note_of_queue(Flushed(now, BACKOFF))

    def flush_retries(self, *, now: float) -> None:
        """Move on every pod that a plugin wanted to be tried again by now."""
        is_due = self.retries.next_due <= now
        super().flush_retries(now=now)
        if is_due:
            self.decisions.note_of_queue(Flushed(now, RETRIES))

    def flush_unschedulable(self, *, now: float) -> None:
        """Move on every pod that has waited for an event too long."""
        before = self.counters.flushed
        super().flush_unschedulable(now=now)
        if self.counters.flushed != before:
            self.decisions.note_of_queue(Flushed(now, UNSCHEDULABLE))

    def activate(self, pods: Iterable[Pod], *, now: float) -> None:
        """Try these pods next, whatever they wait for."""
        chosen = list(pods)
        if chosen:
            self.decisions.note_of_queue(Activated(trio.current_time(), [pod.uid for pod in chosen]))
        super().activate(chosen, now=now)
