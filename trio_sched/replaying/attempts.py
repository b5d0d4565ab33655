"""The attempts of a recording, made again at their place among the changes.

What follows from a decision is always what was recorded, so that one difference stays one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import define, evolve, field, frozen

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.hooks.hook_calls import run_steps
from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.extender_cycle import ExtenderResult, NodesForExtenders
from trio_sched.engine.evaluation.pod_explanation import PodExplanation
from trio_sched.engine.evaluation.reservation import PermitWait
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import unschedulable
from trio_sched.plugin_api.verdicts import Diagnosis, NodeStatuses
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
from trio_sched.replaying.queue_order import QueueOrder
from trio_sched.replaying.replayed_random import ReplayedRandom
from trio_sched.replaying.results import Difference, ReplayResult
from trio_sched.simulation.comparison import rejections, score_difference

GROUPS: Final = "pods of pod groups, of whose attempt nothing is recorded"
UNDECIDED: Final = "attempts without a decision: they began before the recording, or extenders had left no node"
UNKNOWN: Final = "pods that the recording does not show"
CHANGED_MEANWHILE: Final = "nominations of pods, while something else happened"
NO_PROFILE: Final = "pods of schedulers that the configuration has not"
AS_RECORDED: Final = "as recorded"
"""Why a pod was not scheduled, where only the plugins are known."""
_EXPLAINED: Final = 200
"""So many differences are explained: each costs as much as some decisions."""


@frozen(eq=False)
class _Attempt:
    """A pod on which was decided, and the decision of the replay if there is one."""

    info: QueuedPodInfo
    decision: Decision | None
    records: int
    """How many records were read by then."""


@define(eq=False, kw_only=True)
class Attempts:
    """Makes recorded attempts again.

    Attributes:
        assembly: the parts of the scheduler.
        find_pod: gives pods by UID.
        result: gets what is found.
        is_same_configuration: whether the same decisions are expected, those left to chance included.
        is_counted: whether a time, in seconds of the recorded clock, is one whose decisions are compared.
        posix: gives the POSIX seconds of such a time.
        order: is told which pods the queue has returned.
        rng: what chance decides.
    """

    assembly: Assembly
    find_pod: Callable[[str], Pod | None]
    result: ReplayResult
    is_same_configuration: bool
    is_counted: Callable[[float], bool]
    posix: Callable[[float], float]
    records: int = 0
    """How many records were read of what decisions depend on."""
    order: QueueOrder
    rng: ReplayedRandom = field(factory=ReplayedRandom, init=False)
    _under_way: dict[str, _Attempt] = field(factory=dict, init=False)
    _placed: dict[str, tuple[QueuedPodInfo, ScheduleResult]] = field(factory=dict, init=False)
    """Assumed pods that the API server has not confirmed."""

    def __attrs_post_init__(self) -> None:
        self.assembly.scheduler.rng = self.rng

    def node_given(self, uid: str) -> None:
        """The pod has a node, or is gone: nothing of its attempt is needed any more."""
        self._placed.pop(uid, None)
        self._under_way.pop(uid, None)

    # --- decisions --------------------------------------------------------------------------------------------------

    def decided(self, record: Decided) -> None:
        """Decide again, and compare."""
        pod, scheduler = self.find_pod(record.uid), self.assembly.scheduler
        if pod is None or pod.scheduler_name not in scheduler.profiles:
            self.skip(UNKNOWN if pod is None else NO_PROFILE, record.now)
            return
        self.order.returned(pod, record.now)
        info = self.info(pod, record.now)
        self.rng.load(record.drawn)
        scheduler.next_start_node_index = record.start
        if record.asked is None:
            decision = scheduler.decide(info)
        else:
            decision = scheduler.select_host_among(info, *_answers(record.asked))
        self.under_way(info, decision)
        if self.is_counted(record.now):
            self._compare(pod, record, decision)

    def _compare(self, pod: Pod, record: Decided, decision: Decision) -> None:
        node = decision.node_name if isinstance(decision, ScheduleResult) else ""
        recorded = in_words(record.node, record.plugins)
        replayed = in_words(node, _plugins(decision))
        self.result.add(pod.key, self.posix(record.now), replayed)
        if recorded == replayed:
            return
        explanation: PodExplanation | None = None
        if self.result.different < _EXPLAINED or (node and record.node and not self.is_same_configuration):
            nodes = [name for name in (record.node, node) if name]
            explanation = self.assembly.scheduler.explain(pod, scores_of=nodes)
            if not self.is_same_configuration and _are_equal(explanation, record.node, node):
                self.result.equally_good += 1
                return
        self.differs(pod.key, record.now, recorded, replayed, _why(explanation, record.node, node))

    def differs(self, subject: str, now: float, recorded: str, replayed: str, why: str = "") -> None:
        """What was decided on *subject*, a pod or a pod group, is not what was recorded."""
        if self.is_counted(now):
            at = self.posix(now)
            self.result.differs(Difference(pod=subject, at=at, recorded=recorded, replayed=replayed, why=why))

    def skip(self, reason: str, now: float) -> None:
        """A decision cannot be compared."""
        if self.is_counted(now):
            self.result.not_compared[reason] += 1

    def info(self, pod: Pod, now: float) -> QueuedPodInfo:
        """The pod as the queue knows it, or as if it had just been added."""
        return self.assembly.scheduler.queue.pop_specific(pod, now=now) or QueuedPodInfo(pod, now)

    def under_way(self, info: QueuedPodInfo, decision: Decision | None) -> None:
        """An attempt on a pod is under way, and *decision* is where it led; None if that is not known."""
        self._under_way[info.uid] = _Attempt(info, decision, self.records)

    # --- what became of them ----------------------------------------------------------------------------------------

    def reserved(self, record: Reserved) -> None:
        """Assume the pod on the node that was recorded, and run reserve and permit."""
        scheduler, pod = self.assembly.scheduler, self.find_pod(record.uid)
        if pod is None or pod.scheduler_name not in scheduler.profiles or scheduler.cache.get(record.uid) is not None:
            return
        attempt = self._under_way.pop(record.uid, None)
        if attempt is None:
            self.skip(GROUPS if pod.group_key else UNDECIDED, record.now)
            attempt = _Attempt(self.info(pod, record.now), None, self.records)
        info, decision = attempt.info, attempt.decision
        if not isinstance(decision, ScheduleResult) or decision.node_name != record.node:
            decision = scheduler.decide_in_placement(info, frozenset({record.node}))
        if not isinstance(decision, ScheduleResult):  # it does not fit there now
            if record.outcome != REFUSED:
                scheduler.cache.assume(pod, record.node)
            scheduler.binding_starts(info)
            return
        outcome = scheduler.assume_and_reserve(pod, decision, now=record.now)
        said = BINDS if outcome is None else WAITS if isinstance(outcome, PermitWait) else REFUSED
        if said != record.outcome:
            why = outcome.message if isinstance(outcome, SchedulingFailure) else ""
            self.differs(pod.key, record.now, f"{record.node}: {record.outcome}", f"{record.node}: {said}", why)
        self._follow_reservation(record, info, decision, outcome)

    def _follow_reservation(
        self,
        record: Reserved,
        info: QueuedPodInfo,
        placed: ScheduleResult,
        outcome: PermitWait | SchedulingFailure | None,
    ) -> None:
        scheduler = self.assembly.scheduler
        if record.outcome == REFUSED:
            if not isinstance(outcome, SchedulingFailure):
                scheduler.unreserve_and_forget(info.pod, placed)
            self.under_way(info, None)
            return
        if isinstance(outcome, SchedulingFailure):
            scheduler.assume(info.pod, placed)
        self._placed[record.uid] = info, placed
        scheduler.plan_pre_bind(info.pod, placed)
        if record.outcome == BINDS:
            scheduler.binding_starts(info)
        elif isinstance(outcome, PermitWait):
            self.assembly.waiting.add(info.pod, outcome.timeout_seconds, outcome.messages)

    def permitted(self, record: Permitted) -> None:
        """The pod waits on permit no longer."""
        self.assembly.waiting.by_uid.pop(record.uid, None)
        if record.uid in self._placed:
            self.assembly.scheduler.binding_starts(self._placed[record.uid][0])

    def forgotten(self, record: Forgotten) -> None:
        """The pod was not bound after all."""
        scheduler = self.assembly.scheduler
        self.assembly.waiting.by_uid.pop(record.uid, None)
        found = self._placed.pop(record.uid, None)
        if not scheduler.cache.is_assumed(record.uid):
            return
        if found is None:
            scheduler.cache.forget(record.uid)
            if (pod := self.find_pod(record.uid)) is not None:
                self._under_way[record.uid] = _Attempt(QueuedPodInfo(pod, record.now), None, self.records)
        else:
            info, placed = found
            scheduler.unreserve_and_forget(info.pod, placed)
            self.under_way(info, None)

    def skipped(self, record: Skipped) -> None:
        """The queue has returned a pod that was not scheduled."""
        pod = self.find_pod(record.uid)
        if self._under_way.pop(record.uid, None) is None and pod is not None:
            self.order.returned(pod, record.now)
            self.assembly.scheduler.queue.pop_specific(pod, now=record.now)
        self.assembly.scheduler.queue.done(record.uid)

    async def requeued(self, record: Requeued) -> None:
        """Find out what post_filter nominates the pod to, compare that, and put the pod back into the queue."""
        scheduler, pod = self.assembly.scheduler, self.find_pod(record.uid)
        attempt = self._under_way.pop(record.uid, None)
        if pod is None or pod.scheduler_name not in scheduler.profiles:
            return
        if attempt is None:
            self.skip(GROUPS if pod.group_key else UNDECIDED, record.now)
            attempt = _Attempt(self.info(pod, record.now), None, self.records)
        elif isinstance(attempt.decision, SchedulingFailure):
            await self._compare_nomination(pod, attempt.info, attempt.decision, record, attempt.records)
        known = scheduler.cache.unassigned.get(pod.key)
        problem = scheduler.requeue(attempt.info, _failure(attempt.decision, record), known, now=record.now)
        if problem is not None:  # it was in the queue although an attempt was under way
            scheduler.queue.done(record.uid)

    async def _compare_nomination(
        self, pod: Pod, info: QueuedPodInfo, decision: SchedulingFailure, record: Requeued, records: int
    ) -> None:
        if set(_plugins(decision)) != set(record.plugins):  # a difference that has been told
            return
        steps = self.assembly.scheduler.post_filter(info, decision)
        if steps is None:
            return
        if self.records != records + 1:
            steps.close()
            if record.nominated:
                self.skip(CHANGED_MEANWHILE, record.now)
            return
        self.rng.load(record.drawn)
        outcome = await run_steps(steps)
        self.leave_victims()
        if (outcome.nominated_node_name or "") != (record.nominated or ""):
            recorded, replayed = (_nomination(name) for name in (record.nominated, outcome.nominated_node_name))
            self.differs(pod.key, record.now, recorded, replayed, outcome.message)

    def leave_victims(self) -> None:
        """Nothing is deleted in a replay: the recording shows when the victims were."""
        executor = self.assembly.preemption_executor
        executor.count_as_requested()
        executor.pool.discard_waiting()
        self.assembly.status_patch_pool.discard_waiting()


def _answers(asked: Asked) -> tuple[NodesForExtenders, ExtenderResult]:
    """What extenders were asked about, as far as it matters, and what they said."""
    rejected = Diagnosis(
        NodeStatuses((), (), unschedulable(AS_RECORDED)), unschedulable_plugins=frozenset(asked.plugins)
    )
    feasible = NodesForExtenders(nodes={}, diagnosis=rejected, evaluated=0, only_nominated=asked.only_nominated)
    return feasible, ExtenderResult(names=tuple(asked.left), statuses={}, scores=asked.scores)


def _plugins(decision: Decision) -> list[str]:
    if isinstance(decision, ScheduleResult) or decision.diagnosis is None:
        return []
    return sorted(decision.diagnosis.unschedulable_plugins)


def in_words(node: str, plugins: list[str]) -> str:
    """A decision on a pod."""
    return node or (f"rejected by {', '.join(plugins)}" if plugins else "failed")


def _nomination(node: str | None) -> str:
    return f"nominated to {node}" if node else "not nominated"


def _failure(decision: Decision | None, record: Requeued) -> SchedulingFailure:
    """What was recorded, with the diagnosis of the replay if it is about the same plugins."""
    if isinstance(decision, SchedulingFailure) and _plugins(decision) == record.plugins:
        return evolve(decision, nominated_node_name=record.nominated)
    diagnosis = None
    if record.plugins or record.pending:
        diagnosis = Diagnosis(
            NodeStatuses((), (), unschedulable(AS_RECORDED)),
            unschedulable_plugins=frozenset(record.plugins),
            pending_plugins=frozenset(record.pending),
        )
    return SchedulingFailure(unschedulable(AS_RECORDED), diagnosis, record.nominated)


def _are_equal(explanation: PodExplanation, recorded: str, replayed: str) -> bool:
    """Whether both nodes have the same score, so that chance decided between them."""
    totals = {score.node: score.total for score in explanation.others}
    return recorded in totals and totals[recorded] == totals.get(replayed)


def _why(explanation: PodExplanation | None, recorded: str, replayed: str) -> str:
    """What plugins say of the node that was recorded, or of that of the replay."""
    if explanation is None:
        return ""
    for node in (recorded, replayed):
        found = "; ".join(rejections(explanation, node)) if node else ""
        if found:
            return f"{node}: {found}"
    return score_difference(explanation, recorded, replayed) if recorded and replayed else ""
