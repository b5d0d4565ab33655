"""Classes what another scheduler decides, preemptions too: the same, the same in an older view, or different."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator
from typing import Final

from attrs import define, evolve, field

from trio_sched.engine.evaluation.decision import UNSCHEDULABLE
from trio_sched.engine.evaluation.nodes_to_find import num_feasible_nodes_to_find
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.scheduler import Scheduler
from trio_sched.engine.shadow.crossed_changes import CrossedChanges, Distance
from trio_sched.engine.shadow.evaluation import Evaluation, evaluate
from trio_sched.engine.shadow.judgement import DecisionKind, Judgement, JudgementClass, OtherDecision
from trio_sched.engine.shadow.preemption import PreemptionEvaluation, evaluate_preemption, is_order_undefined
from trio_sched.engine.shadow.window import Window
from trio_sched.objects.changes import Change
from trio_sched.objects.pod import Pod, PodCondition

_SCHEDULED: Final = "PodScheduled"

Judging = Generator[None, None, Judgement]
"""Yields where others may run: the cache is as it was."""


def decision_in(change: Change[Pod]) -> OtherDecision | None:
    """The decision that *change* shows, if it shows one."""
    old, new = change.old, change.new
    if change.type != "MODIFIED" or old is None or new is None or old.node_name:
        return None
    if new.node_name:
        return OtherDecision(kind=DecisionKind.BINDING, pod=old, node_name=new.node_name)
    condition = _scheduled(new)
    is_refused = condition is not None and condition.status == "False" and condition.reason == UNSCHEDULABLE
    is_told = is_refused and condition != _scheduled(old)
    nominated = new.nominated_node_name
    is_nominated = bool(nominated) and nominated != old.nominated_node_name
    if is_nominated and not is_told:  # its volumes or devices are being prepared there, or it has preempted again
        return OtherDecision(kind=DecisionKind.BINDING, pod=old, node_name=nominated, is_expected=True)
    if not is_told:
        return None
    assert condition is not None
    kind = DecisionKind.PREEMPTION if is_nominated else DecisionKind.REFUSAL
    node_name = nominated if is_nominated else ""
    return OtherDecision(kind=kind, pod=old, node_name=node_name, message=condition.message)


def _scheduled(pod: Pod) -> PodCondition | None:
    return next((one for one in pod.status.conditions or () if one.type == _SCHEDULED), None)


@define(eq=False, kw_only=True)
class Judge:
    """Evaluates pods at the state that is in the cache, which is the one before the decision was shown."""

    scheduler: Scheduler
    window: Window
    schedulers: Collection[str]
    """The schedulerNames of the other scheduler."""
    _percentage: int = field(default=0, init=False)

    def judge(self, decision: OtherDecision) -> Judging:
        """Compare *decision*, which the first change ahead in the window shows."""
        self._percentage = self.scheduler.profiles[decision.pod.scheduler_name].percentage_of_nodes_to_score
        try:
            if decision.kind is DecisionKind.BINDING:
                return (yield from self._binding(decision))
            return (yield from self._without_room(decision))
        except HookFailed as failed:
            return Judgement(decision=decision, judged=JudgementClass.UNJUDGED, detail=str(failed))

    # --- a node was found ---------------------------------------------------------------------------------------

    def _binding(self, decision: OtherDecision) -> Judging:
        pod, node_name = decision.pod, decision.node_name
        found = evaluate(self.scheduler, pod, node_name)
        if found.is_best:
            judged = JudgementClass.SAME if found.ties == 1 else JudgementClass.TIE
            return _with_scores(Judgement(decision=decision, judged=judged), found)
        is_retried = _scheduled(pod) is not None
        if decision.is_expected and (found.unplaced is not None or is_retried):  # it has preempted again
            return (yield from self._without_room(evolve(decision, kind=DecisionKind.PREEMPTION)))
        if self._may_be_sampled(found):
            detail = f"{found.better} of {found.feasible} nodes that fit have a higher score"
            return _with_scores(Judgement(decision=decision, judged=JudgementClass.SAMPLING, detail=detail), found)

        def distance() -> Distance:
            view = evaluate(self.scheduler, pod, node_name)
            return Distance(0 if self._may_be_sampled(view) else view.gap, view.best)

        judgement = yield from self._stale_or_different(decision, distance, Distance(found.gap, found.best))
        judgement = _with_scores(judgement, found)
        if judgement.judged is JudgementClass.DIFFERS and found.total is None:
            reason = "" if found.rejection is None else found.rejection.message
            judgement = evolve(judgement, detail=f"the pod does not fit on {node_name}: {reason}".rstrip(": "))
        return judgement

    def _may_be_sampled(self, found: Evaluation) -> bool:
        """Whether kube-scheduler may not have looked at any of the better nodes."""
        if found.total is None:
            return False
        looked_at = num_feasible_nodes_to_find(found.candidates, self._percentage)
        return found.feasible - found.better >= looked_at

    # --- none was found -----------------------------------------------------------------------------------------

    def _without_room(self, decision: OtherDecision) -> Judging:
        found, preemption = self._evaluate_preemption(decision)
        nodes = _own_nodes(found, preemption)
        chance = None if preemption is None else self._chance(decision, preemption)
        if chance is not None:
            return Judgement(decision=decision, judged=chance[0], own_nodes=nodes, detail=chance[1])
        now = self._distance_without_room(decision, found, preemption)
        if now.gap == 0:
            is_tie = preemption is not None and bool(decision.node_name) and len(preemption.best) > 1
            judged = JudgementClass.TIE if is_tie else JudgementClass.SAME
            return Judgement(decision=decision, judged=judged, own_nodes=nodes)

        def distance() -> Distance:
            return self._distance_without_room(decision, *self._evaluate_preemption(decision))

        judgement = evolve((yield from self._stale_or_different(decision, distance, now)), detail="")
        detail = "the pod fits" if preemption is None else preemption.describe(decision.node_name)
        return evolve(judgement, own_nodes=nodes, own_total=found.own_total, detail=detail)

    def _chance(self, decision: OtherDecision, preemption: PreemptionEvaluation) -> tuple[JudgementClass, str] | None:
        """Why the node can have been the best for kube-scheduler although it is not; None if it cannot."""
        name = decision.node_name
        if name in preemption.best or name not in preemption.candidates:
            return None
        if preemption.may_be_sampled(name):
            detail = f"{len(preemption.candidates)} nodes are candidates, of which not all are tried"
            return JudgementClass.SAMPLING, detail
        if is_order_undefined(self.scheduler, decision.pod, name):
            return JudgementClass.TIE, "pods there have not started, and kube-scheduler evicts any of these"
        return None

    def _evaluate_preemption(self, decision: OtherDecision) -> tuple[Evaluation, PreemptionEvaluation | None]:
        found = evaluate(self.scheduler, decision.pod, "")
        if found.unplaced is None:
            return found, None
        return found, evaluate_preemption(self.scheduler, decision.pod, found.unplaced)

    def _distance_without_room(
        self, decision: OtherDecision, found: Evaluation, preemption: PreemptionEvaluation | None
    ) -> Distance:
        if found.best:
            return Distance(float(found.feasible or 1), found.best)
        if preemption is None:
            return Distance(0)
        if decision.node_name:
            is_chosen = decision.node_name in preemption.best or self._chance(decision, preemption) is not None
            return Distance(0 if is_chosen else 1, preemption.best)
        # A pod that is nominated does not preempt again while its victims are leaving.
        is_eligible = not self.scheduler.queue.nominator.node_name(decision.pod)
        return Distance(float(len(preemption.candidates)) if is_eligible else 0, preemption.best)

    # --- why ----------------------------------------------------------------------------------------------------

    def _stale_or_different(self, decision: OtherDecision, distance: Callable[[], Distance], now: Distance) -> Judging:
        search = CrossedChanges(
            self.scheduler,
            self.window,
            self.schedulers,
            decision.pod,
            decision.node_name,
            distance,
            with_starts=decision.kind is DecisionKind.PREEMPTION,
        )
        crossed = yield from search.search(now)
        if not crossed:
            nearest = (
                "" if math.isinf(search.nearest) else f"in the nearest view the scores are {search.nearest:g} apart"
            )
            return Judgement(decision=decision, judged=JudgementClass.DIFFERS, detail=nearest)
        views = {"shadow" if one.is_ahead else "other" for one in crossed}
        return Judgement(
            decision=decision,
            judged=JudgementClass.STALE,
            crossed=tuple(map(str, crossed)),
            stale_views=tuple(sorted(views)),
        )


def _with_scores(judgement: Judgement, found: Evaluation) -> Judgement:
    return evolve(
        judgement,
        own_nodes=found.best,
        total=found.total,
        own_total=found.own_total,
        scores=found.scores,
        own_scores=found.own_scores,
        plugin="" if found.is_best else found.plugin,
    )


def _own_nodes(found: Evaluation, preemption: PreemptionEvaluation | None) -> tuple[str, ...]:
    return found.best if preemption is None else preemption.best
