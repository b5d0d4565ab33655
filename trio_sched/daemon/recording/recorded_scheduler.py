"""A scheduler whose decisions, and what becomes of them, are recorded."""

from __future__ import annotations

import trio
from attrs import define, field

from trio_sched.daemon.recording.decision_recorder import DecisionRecorder
from trio_sched.daemon.recording.recorded_random import RecordedRandom
from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.extender_cycle import ExtenderResult, NodesForExtenders
from trio_sched.engine.evaluation.reservation import PermitWait
from trio_sched.engine.hooks.attempt_trace import AttemptTrace
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import EXTENDER_NAME
from trio_sched.engine.queue.scheduling_queue import AlreadyQueued
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.recording.records import (
    BINDS,
    REFUSED,
    WAITS,
    Asked,
    Decided,
    Forgotten,
    Permitted,
    Requeued,
    Reserved,
    Skipped,
)


@define(eq=False, kw_only=True)
class RecordedScheduler(Scheduler):
    """Decides as `Scheduler` does, and notes it; trials of pod groups, from which nothing comes, are not noted."""

    rng: RecordedRandom
    decisions: DecisionRecorder
    _on_permit: set[str] = field(factory=set, init=False)
    """The UIDs of the pods that wait on permit."""

    def decide(self, info: QueuedPodInfo) -> Decision:
        """Find a node for a popped pod."""
        if self.is_trial:
            return super().decide(info)
        self.rng.take()
        start = self.next_start_node_index
        decision = super().decide(info)
        self._decided(info, decision, start)
        return decision

    def select_host_among(
        self,
        info: QueuedPodInfo,
        feasible: NodesForExtenders,
        result: ExtenderResult,
        *,
        placement: frozenset[str] | None = None,
    ) -> Decision:
        """Find a node for a popped pod among those that extenders have left."""
        if self.is_trial:
            return super().select_host_among(info, feasible, result, placement=placement)
        self.rng.take()
        start = self.next_start_node_index
        decision = super().select_host_among(info, feasible, result, placement=placement)
        self._decided(info, decision, start, asked_of(feasible, result))
        return decision

    def _decided(self, info: QueuedPodInfo, decision: Decision, start: int, asked: Asked | None = None) -> None:
        node, plugins, feasible = "", [], 0
        if isinstance(decision, ScheduleResult):
            node, feasible = decision.node_name, decision.feasible_nodes
        elif decision.diagnosis is not None:
            plugins = sorted(decision.diagnosis.unschedulable_plugins)
        now, drawn = trio.current_time(), self.rng.take()
        self.decisions.decided(Decided(now, info.uid, node, plugins, feasible, start, drawn, asked, False))

    def assume_and_reserve(
        self, pod: Pod, placed: ScheduleResult, *, now: float, trace: AttemptTrace | None = None
    ) -> PermitWait | SchedulingFailure | None:
        """Assume *pod* on the node that was chosen, run reserve and permit."""
        outcome = super().assume_and_reserve(pod, placed, now=now, trace=trace)
        if outcome is None and self.decisions.reserved(pod.uid, placed.node_name):
            return None
        text = BINDS if outcome is None else REFUSED
        if isinstance(outcome, PermitWait):
            text = WAITS
            self._on_permit.add(pod.uid)
        self.decisions.note(Reserved(now, pod.uid, placed.node_name, text))
        return outcome

    def unreserve_and_forget(self, pod: Pod, placed: ScheduleResult, trace: AttemptTrace | None = None) -> None:
        """The pod will not run there after all: run unreserve and forget it."""
        super().unreserve_and_forget(pod, placed, trace)
        self._on_permit.discard(pod.uid)
        if not placed.state.is_trial:
            self.decisions.note(Forgotten(trio.current_time(), pod.uid))

    def binding_starts(self, info: QueuedPodInfo) -> None:
        """Permit is granted; that is noted of pods that had to wait for it."""
        super().binding_starts(info)
        if info.uid in self._on_permit:
            self._on_permit.discard(info.uid)
            self.decisions.note(Permitted(trio.current_time(), info.uid))

    def skip(self, info: QueuedPodInfo) -> None:
        """There is no point in scheduling the pod."""
        super().skip(info)
        self.decisions.note(Skipped(trio.current_time(), info.uid))

    def requeue(
        self,
        info: QueuedPodInfo,
        outcome: SchedulingFailure,
        known: Pod | None,
        *,
        now: float,
        assumed_pod: Pod | None = None,
    ) -> AlreadyQueued | None:
        """Put a pod that was not scheduled back into the queue."""
        diagnosis = outcome.diagnosis
        plugins = [] if diagnosis is None else sorted(diagnosis.unschedulable_plugins)
        pending = [] if diagnosis is None else sorted(diagnosis.pending_plugins)
        drawn = self.rng.take()
        self.decisions.note(Requeued(now, info.uid, plugins, pending, outcome.nominated_node_name, drawn))
        return super().requeue(info, outcome, known, now=now, assumed_pod=assumed_pod)


def asked_of(feasible: NodesForExtenders, result: ExtenderResult) -> Asked:
    """What extenders that were asked about *feasible* have said, as a record has it."""
    by_extenders = {EXTENDER_NAME} if len(result.names) < len(feasible.nodes) else frozenset()
    plugins = feasible.diagnosis.unschedulable_plugins | by_extenders
    return Asked(list(result.names), dict(result.scores), sorted(plugins), feasible.only_nominated)
