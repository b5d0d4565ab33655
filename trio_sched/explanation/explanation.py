"""Why one pod is pending, or where it is: cause, evidence, and changes that were tried."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from attrs import define, evolve, field, frozen
from msgspec import structs

from trio_sched.engine.evaluation.pod_explanation import PodExplanation
from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import nearest_name
from trio_sched.explanation.analysis import Analysis, FailingClause, analyse, awaited_clauses, clause_without_hook
from trio_sched.explanation.limit_ranges import KIND as LIMIT_RANGE
from trio_sched.explanation.other_pods.first_for_other import FirstForOther
from trio_sched.explanation.pod_groups import TooManyDecisions
from trio_sched.explanation.remedies import Remedies, find_remedies
from trio_sched.explanation.side_effects import without_node
from trio_sched.explanation.touches import Touch
from trio_sched.explanation.trial import CannotApply, Outcome, Trial
from trio_sched.explanation.wake_events import wake_events
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, Clause, Edit, edit_pod, some_names

_MAX_PENDING: Final = 10_000
"""Pending pods that are looked at for one that has to run first."""


@frozen(kw_only=True)
class Waiting:
    """What is known of a pending pod's way through the queue; from a running scheduler only."""

    state: str
    """``Active``, ``Backoff``, ``Gated``, ``InFlight``, ``Unschedulable``, or ``Permit``."""
    attempts: int = 0
    since_seconds: float | None = None
    """How long it has been pending."""
    again_in_seconds: float | None = None
    """When it is tried again at the latest."""
    ahead: int = 0
    """Pods in the active queue that come before it."""
    turn_in_seconds: float | None = None
    """When these will have been tried, as fast as others were lately; None without such a basis."""
    details: tuple[str, ...] = ()
    """Whom it waits for: plugins on permit, victims that are ending."""
    history: tuple[str, ...] = ()
    """The last attempts: when, what woke it, how it ended."""


@frozen(eq=False, kw_only=True)
class NodeAnswer:
    """Why the pod is not, or could not be, on one node."""

    node: str
    exists: bool
    clauses: tuple[FailingClause, ...] = ()
    score: int | None = None
    """Its weighted sum, if the pod fits there."""
    scores: tuple[tuple[str, int, int], ...] = ()
    """Plugin, score, weight."""
    nearest: str = ""
    """A node that may have been meant."""


@frozen(eq=False, kw_only=True)
class Awaited:
    """Pending pods beside one of which a pod could run."""

    clause: FailingClause
    pods: Sequence[Pod]
    first: Explanation
    """Why the first of them is pending."""

    def changes(self) -> Iterator[FirstForOther]:
        """What lets the first of them run."""
        for one in self.first.remedies.found:
            node_name = one.outcome.node_name
            if node_name and not one.outcome.victims and one.touches < Touch.FEWER_PODS:
                made = evolve(one.change, note="; ".join(one.notes))
                yield FirstForOther(clause=self.clause, pod=self.first.pod, made=made, node_name=node_name)


@define(eq=False, kw_only=True)
class Explanation:
    """Everything that is said of one pod."""

    pod: Pod
    """As it is, with its node if it has one."""
    analysis: Analysis
    plugins: PodExplanation
    """What every plugin says, with scores."""
    outcome: Outcome = field(factory=Outcome)
    """What the engine would decide now, if it is pending."""
    if_preempting: Outcome = field(factory=Outcome)
    """What it would decide of a pod whose preemption policy is Never, if that were not so."""
    remedies: Remedies = field(factory=Remedies)
    awaited: Awaited | None = None
    """The pending pods that have to run first, if that is so."""
    events: Sequence[str] = ()
    """What has to happen so that it is tried again."""
    waiting: Waiting | None = None
    on_nodes: Sequence[NodeAnswer] = ()
    """Answers about the nodes that were asked for."""
    notes: list[str] = field(factory=list)
    """What could not be looked at, and what that may hide."""
    is_on_no_node: bool = False
    """Whether its node does not exist: then it stays pending, though no scheduler has anything to do with it."""

    @property
    def is_pending(self) -> bool:
        """Whether it has no node that exists."""
        return not self.pod.node_name or self.is_on_no_node

    @property
    def fits_now(self) -> bool:
        """Whether the engine would place it now."""
        return bool(self.outcome.node_name) and not self.outcome.victims and not self.is_on_no_node

    @property
    def blocking(self) -> tuple[FailingClause, ...]:
        """The requirements that are the cause: those that keep it from most nodes together, as few as possible.

        Of several of these, what the first change is about.
        """
        if not self.is_pending or self.fits_now:
            return ()
        sets = [one for one in self.analysis.failing_sets() if one[0]]
        if not sets:
            return ()

        def rank(clauses: Sequence[FailingClause], count: int) -> tuple[bool, int, int]:
            return any(one.clause.is_given for one in clauses), len(clauses), count

        equal = [clauses for clauses, count in sets if rank(clauses, count) == rank(*sets[0])]
        by_remedy = (remedy.clauses for remedy in self.remedies.found)
        return next((clauses for clauses in by_remedy if clauses in equal), equal[0])


def explain(
    scheduler: Scheduler,
    pod: Pod,
    *,
    scores_of: Collection[str] = (),
    remedies: bool = True,
    follows: bool = True,
    missing: int = 0,
) -> Explanation:
    """Explain *pod* as things stand.

    The state of *scheduler* is changed meanwhile and is afterwards what it was, so nothing else may run.

    Args:
        scheduler: with the cluster's state.
        pod: with its node, if it has one.
        scores_of: the names of nodes to answer for.
        remedies: whether to look for changes that let it run, if it is pending.
        follows: whether to explain a pending pod, too, that has to run first.
        missing: how many more pods like it its controller makes once it runs.
    """
    subject, profile = without_node(pod) if pod.node_name else pod, scheduler.profiles.get(pod.scheduler_name)
    unknown = profile is None
    if profile is None:
        profile = next(iter(scheduler.profiles.values()))
        subject = with_scheduler(subject, profile.name)
    with scheduler.without(pod):
        analysis = analyse(profile, scheduler.cache.table, subject, scheduler.nominated_before(subject))
        if unknown:
            analysis.clauses.insert(0, _unknown_scheduler(scheduler, pod, analysis))
        is_lost = _is_lost(scheduler, pod)
        if is_lost:
            analysis.clauses.insert(0, _no_such_node(scheduler, pod, analysis))
        trial = Trial(scheduler, pod if unknown or is_lost else subject, missing)
        plugins = scheduler.explain(subject, scores_of=scores_of)
        found = Explanation(pod=pod, analysis=analysis, plugins=plugins, is_on_no_node=is_lost)
        if pod.group_key is not None and not scheduler.cache.groups.is_followed:
            group = pod.group_key.partition("/")[2]
            found.notes.append(
                f"pod group {group} is ignored, as the gate GenericWorkload is off here; if the cluster has it, "
                "ask with --feature-gates=GenericWorkload=true,GangScheduling=true"
            )
        found.notes += [] if is_lost else _notes_on_node(scheduler, pod)
        if pod.metadata.deletion_timestamp is not None and found.is_pending:
            analysis.clauses[:] = [_being_deleted(pod, analysis)]
            analysis.passes = np.zeros_like(analysis.passes)
        elif found.is_pending:
            found.outcome = trial.now(preempt=True)
            decided = found.outcome.group
            if decided is not None and not found.fits_now and analysis.passes.any():
                clause = trial.group.clause(decided, len(analysis.nodes))
                clause.alone = int(np.count_nonzero(analysis.passes))
                analysis.clauses.insert(0, clause)
                analysis.passes = np.zeros_like(analysis.passes)
            if found.fits_now and decided is None:
                _look_for_awaited(found, trial)
            if follows and not found.fits_now:
                found.awaited = _awaited(scheduler, analysis, remedies=remedies)
            if subject.spec.preemption_policy == "Never" and not found.fits_now:
                found.if_preempting = _if_preempting(trial, pod)
            if remedies and not found.fits_now:
                first = () if found.awaited is None else found.awaited.changes()
                found.remedies = find_remedies(analysis, trial, first)
                found.notes += _notes_on_requests(found.remedies, trial)
            if not unknown:
                hints = scheduler.queue.profiles[profile.name].hints
                found.events = wake_events(hints, _rejecting(found.blocking, analysis))
        found.on_nodes = [_on_node(found, name) for name in scores_of]
    scheduler.invalidate_signatures()
    return found


def _notes_on_node(scheduler: Scheduler, pod: Pod) -> list[str]:
    """What keeps a pod from running that has its node: nothing that a scheduler can change."""
    if not pod.node_name:
        return []
    if pod.node_name not in scheduler.cache.table.row_of:
        return [f"there is no node {pod.node_name}"]
    if pod.status.phase == "Pending":
        return [f"the kubelet of {pod.node_name} starts it; kubectl describe pod shows how far that is"]
    return []


def _notes_on_requests(remedies: Remedies, trial: Trial) -> list[str]:
    """That LimitRanges are not known here, which may refuse the requests of a change."""
    edited = [one for remedy in remedies.found for one in remedy.edited if one.kind == "Pod" and one.new is not None]
    is_known = LIMIT_RANGE in trial.scheduler.object_cache.kinds
    if is_known or all(one.old is None or one.new.spec.containers == one.old.spec.containers for one in edited):
        return []
    return ["LimitRanges are not known here; they may refuse a smaller request"]


def _awaited(scheduler: Scheduler, analysis: Analysis, *, remedies: bool) -> Awaited | None:
    """The pending pods that a requirement waits for; of several requirements for the first one."""
    for clause in analysis.clauses if any(one.clause.met_by is not None for one in analysis.clauses) else ():
        pending = (one for one in scheduler.cache.unassigned.pods() if one.uid != analysis.pod.uid)
        pods = [one for one in islice(pending, _MAX_PENDING) if clause.is_met_by(one)]
        if pods:
            first = explain(scheduler, pods[0], remedies=remedies, follows=False)
            return Awaited(clause=clause, pods=pods, first=first)
    return None


def _is_lost(scheduler: Scheduler, pod: Pod) -> bool:
    """Whether *pod* waits for a kubelet that does not exist."""
    is_started = pod.status.phase not in ("", "Pending")
    return bool(pod.node_name) and not is_started and pod.node_name not in scheduler.cache.table.row_of


def _no_such_node(scheduler: Scheduler, pod: Pod, analysis: Analysis) -> FailingClause:
    """The clause of a pod whose ``nodeName`` is that of no node."""
    near = nearest_name(pod.node_name, scheduler.cache.table.row_of)
    text = f"its nodeName is {pod.node_name}, and there is no node of that name"
    text += f"; did you mean {near}?" if near else ""

    def on(name: str) -> Edit:
        return edit_pod(pod, lambda one: structs.replace(one, spec=structs.replace(one.spec, node_name=name)))

    changes = [Change(title=f"no nodeName {pod.node_name}", edits=(on(""),), note="a scheduler chooses its node")]
    if near:
        changes.insert(0, Change(title=f"nodeName {near}", edits=(on(near),), corrects=True))
    clause = Clause(
        reason="NodeNotFound", title=f"node {pod.node_name}", cause=text, changes=lambda _nodes: list(changes)
    )
    everywhere = np.ones(len(analysis.nodes), dtype=np.bool_)
    alone = int(np.count_nonzero(analysis.passes))
    analysis.passes = ~everywhere
    return clause_without_hook(clause, everywhere, alone=alone)


def _look_for_awaited(found: Explanation, trial: Trial) -> None:
    """What a pod that fits waits for, if it does, is the cause: until that is there it is not bound."""
    analysis = found.analysis
    awaited = awaited_clauses(analysis.profile, analysis.pod, analysis.nodes, analysis.state)
    if not awaited:
        return
    for one in awaited:
        one.alone = int(np.count_nonzero(analysis.passes))
    analysis.clauses[:0] = awaited
    analysis.passes = np.zeros_like(analysis.passes)
    trial.awaits_something = True
    found.outcome = trial.now()


def _rejecting(blocking: Sequence[FailingClause], analysis: Analysis) -> list[str]:
    """The plugins whose events the pod waits for; that of the cause first."""
    # Until those that gate it let it in, no other plugin is asked.
    gating = {one.plugin for one in analysis.answers if one.point == "PreEnqueue"}
    order = [one.plugin for one in (*blocking, *analysis.clauses)] + [one.plugin for one in analysis.answers]
    return [name for name in dict.fromkeys(order) if name and (not gating or name in gating)]


def with_scheduler(pod: Pod, name: str) -> Pod:
    """*pod* as one of the scheduler *name*."""
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduler_name=name))


def _if_preempting(trial: Trial, pod: Pod) -> Outcome:
    """What would be decided about *pod* if it could evict others."""

    def preempting(one: Pod) -> Pod:
        return structs.replace(one, spec=structs.replace(one.spec, preemption_policy=None))

    try:
        return trial.decide(Change(title="", edits=(edit_pod(pod, preempting),)), preempt=True)
    except (CannotApply, TooManyDecisions):
        return Outcome()


def _unknown_scheduler(scheduler: Scheduler, pod: Pod, analysis: Analysis) -> FailingClause:
    """The clause of a pod whose scheduler does not exist."""
    name, known = pod.scheduler_name, list(scheduler.profiles)
    near = nearest_name(name, known)
    meant = near or known[0]
    text = f"no scheduler that is known here is called {name}; " + (
        f"did you mean {near}?" if near else f"there is {some_names(known)}"
    )
    edit = edit_pod(pod, lambda one: with_scheduler(one, meant))
    change = Change(title=f"scheduler {meant}", edits=(edit,), corrects=near is not None)
    clause = Clause(reason="UnknownScheduler", title=f"scheduler {name}", cause=text, changes=lambda _nodes: [change])
    everywhere = np.ones(len(analysis.nodes), dtype=np.bool_)
    alone = int(np.count_nonzero(analysis.passes))
    analysis.passes = ~everywhere
    return clause_without_hook(clause, everywhere, alone=alone)


def _being_deleted(pod: Pod, analysis: Analysis) -> FailingClause:
    """The clause of a pod that every scheduler skips, whatever else it asks for."""
    held = some_names(pod.metadata.finalizers or ())
    text = "it is being deleted, so it is not scheduled any more"
    text += f"; it is gone once its finalizers are removed: {held}" if held else ""
    clause = Clause(reason="PodIsBeingDeleted", title="pod that stays", cause=text)
    everywhere = np.ones(len(analysis.nodes), dtype=np.bool_)
    return clause_without_hook(clause, everywhere, alone=len(analysis.nodes))


def _on_node(found: Explanation, name: str) -> NodeAnswer:
    analysis = found.analysis
    position = analysis.nodes.position(name)
    if position is None:
        return NodeAnswer(node=name, exists=False, nearest=nearest_name(name, analysis.nodes.names) or "")
    clauses = tuple(one for one in analysis.clauses if one.fails[position])
    scores: tuple[tuple[str, int, int], ...] = ()
    total: int | None = None
    plugins = found.plugins
    for one in (*plugins.others, *plugins.best):
        if one.node == name:
            total = one.total
            scores = tuple((plugin, score, plugins.weights[plugin]) for plugin, score in one.scores.items())
    return NodeAnswer(node=name, exists=True, clauses=clauses, score=total, scores=scores)
