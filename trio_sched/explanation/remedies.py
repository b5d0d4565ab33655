"""Looks for changes that let a pod run; each was made on a copy of the cluster, and the engine decided.

Single changes come first, then those that meet several requirements together, the smallest sets of requirements first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, product
from typing import Final

from attrs import define, field, frozen

from trio_sched.explanation.analysis import Analysis, FailingClause
from trio_sched.explanation.evictions import evictions
from trio_sched.explanation.limit_ranges import KIND as LIMIT_RANGE
from trio_sched.explanation.limit_ranges import as_allowed, limit_ranges, refusals
from trio_sched.explanation.new_nodes import new_nodes, nodes_with_labels
from trio_sched.explanation.other_pods.beside_rivals import beside_nominated, beside_rivals
from trio_sched.explanation.other_pods.fewer_pods import fewer_of_its_own, none_of_others
from trio_sched.explanation.other_pods.first_for_other import FirstForOther
from trio_sched.explanation.other_pods.smaller_for_all import smaller_for_all
from trio_sched.explanation.owners import controller_of, is_of
from trio_sched.explanation.patches import pod_patch
from trio_sched.explanation.pod_groups import TooManyDecisions
from trio_sched.explanation.priorities import higher_priorities
from trio_sched.explanation.rollouts import left_pending
from trio_sched.explanation.runtime_classes import other_runtime_classes
from trio_sched.explanation.side_effects import replacements_come_first, rivals_of, side_effects
from trio_sched.explanation.touches import Touch, is_of_changed_template, touched_by
from trio_sched.explanation.trial import CannotApply, EditedObject, Outcome, Trial
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, some_names

MAX_TRIALS: Final = 80
"""Changes that are tried for one pod."""
MAX_REMEDIES: Final = 8
_MAX_SETS: Final = 6
"""Sets of requirements of one size that are looked at."""
_MAX_TOGETHER: Final = 4
"""Requirements that are met together; of more than these only the first change of each is tried."""
_MAX_FIRST: Final = 3
"""Changes with which another pending pod runs first."""
_MAX_BESIDE: Final = 6
"""Changes with which the pod and those that could come first run."""
_PER_CLAUSE: Final = 3
"""Changes of each of several clauses that are combined."""


@frozen(kw_only=True)
class Remedy:
    """A change that was tried, and that lets the pod run."""

    change: Change
    clauses: tuple[FailingClause, ...]
    """What it meets; empty for changes that are not about one requirement."""
    edited: tuple[EditedObject, ...]
    outcome: Outcome
    touches: Touch
    notes: tuple[str, ...] = ()
    rivals: tuple[Pod, ...] = ()
    """Pending pods of others that could take the place first."""
    is_partial: bool = False
    """Whether another pending pod could take the place first, or some of the workload would be pending all the same."""


@define(eq=False, kw_only=True)
class Remedies:
    """What was found, and what was tried."""

    found: list[Remedy] = field(factory=list)
    """The one that touches least first."""
    tried: list[str] = field(factory=list)
    """Titles of what was tried and does not help."""
    refused: list[str] = field(factory=list)
    """What admission refuses of a change that would help, with nothing like it that it allows."""
    is_complete: bool = True
    """Whether everything that was thought of was tried."""


@define(eq=False)
class _Search:
    analysis: Analysis
    trial: Trial
    first: Iterable[FirstForOther] = ()
    """What lets other pending pods run, beside one of which the pod in question could run."""
    remedies: Remedies = field(factory=Remedies)
    _seen: set[str] = field(factory=set)
    _ended: set[str] = field(factory=set)
    """The series of which a change was found that helps."""
    _deleted: set[frozenset[tuple[str, str]]] = field(factory=set)
    """Pods whose deletion helps; their order in a title does not matter."""
    _beside: list[tuple[Change, tuple[FailingClause, ...]]] = field(factory=list)
    """Changes that are tried if other pending pods could take the places of all others, and what they meet."""
    _combined: set[str] = field(factory=set)
    """Their titles."""

    def run(self) -> Remedies:
        sets = self.analysis.failing_sets()
        of_pod = [one for one in self.analysis.clauses if one.is_of_pod]
        if of_pod and not any(clauses for clauses, _count in sets):
            sets = [(tuple(of_pod), 0)]
        for other in islice(self.first, _MAX_FIRST):
            self._try(other.change(), (other.clause,), subject=other.pod)
        singles = [one for one in sets if len(one[0]) == 1]
        for single, _count in singles:
            self._try_set(single, most=None)
        for one in self.analysis.clauses:
            for change in beside_nominated(self.trial) if one.clause.reason == "KeptForNominatedPods" else ():
                self._try(change, (one,))
        if self.remedies.found:
            self._try_corrections([clauses for clauses, _count in sets if len(clauses) == 2])
        for size in range(2, _MAX_TOGETHER + 1):
            if self.remedies.found:
                break
            for clauses, _count in islice((one for one in sets if len(one[0]) == size), _MAX_SETS):
                self._try_set(clauses, most=_PER_CLAUSE)
        if not self.remedies.found:
            for clauses, _count in islice((one for one in sets if len(one[0]) > _MAX_TOGETHER), _MAX_SETS):
                self._try_set(clauses, most=1)
        for make in (higher_priorities, other_runtime_classes, evictions, new_nodes):
            for change in make(self.analysis, self.trial):
                self._try(change, (), preempt=make is higher_priorities)
        if not any(one.touches < Touch.NEW_NODE and not one.is_partial for one in self.remedies.found):
            for change, clauses in islice(self._beside, _MAX_BESIDE):
                self._try(change, clauses)
        for change in nodes_with_labels(self.analysis, self.trial):
            self._try(change, (), touches=Touch.NEW_ZONE)
        if self.trial.group.is_exhausted:
            self.remedies.is_complete = False
        self.remedies.found.sort(key=_order)
        del self.remedies.found[MAX_REMEDIES:]
        return self.remedies

    def _try_corrections(self, pairs: Sequence[tuple[FailingClause, ...]]) -> None:
        """A name that is put right may lead to nodes with a taint or a cordon: what was meant comes before detours."""
        for clauses in pairs[:_MAX_SETS]:
            nodes = self.analysis.passes_without(clauses)
            firsts = [next(iter(one.changes(nodes)), None) for one in clauses]
            is_of_node = any(one.clause.reason in ("NodeCordoned", "UntoleratedTaint") for one in clauses)
            if is_of_node and any(one is not None and one.corrects for one in firsts):
                first, second = firsts
                if first is not None and second is not None:
                    self._try(first & second, clauses)

    def _try_set(self, clauses: Sequence[FailingClause], most: int | None) -> None:
        nodes = self.analysis.passes_without(clauses)
        if not nodes.any() and len(nodes):
            return
        choices = [one.changes(nodes)[:most] for one in clauses]
        if len(clauses) > 1 and len({one.plugin for one in clauses}) == 1:  # one may depend on the other
            for changes, clause in zip(choices, clauses, strict=True):
                for change in changes:
                    self._try(change, (clause,))
            if self.remedies.found:
                return
        for combination in product(*choices):
            change = combination[0]
            for other in combination[1:]:
                if other.title != change.title:
                    change = change & other
            self._try(change, tuple(clauses))

    def _try(
        self,
        change: Change,
        clauses: tuple[FailingClause, ...],
        *,
        preempt: bool = False,
        base: Change | None = None,
        subject: Pod | None = None,
        touches: Touch = Touch.POD_IN_PLACE,
    ) -> None:
        """Try one change.

        Args:
            change: is made, and undone.
            clauses: what it meets.
            preempt: whether other pods may be evicted.
            base: what it was before it was made so that LimitRanges allow it.
            subject: whom it is about, if not the pod in question.
            touches: what it touches at least.
        """
        if change.title in self._seen or (change.series and change.series in self._ended):
            return
        self._seen.add(change.title)
        if self.trial.count >= MAX_TRIALS:
            self.remedies.is_complete = False
            return
        allowed, owner = list[Change](), controller_of(self.trial.pod)
        try:
            with self.trial.made(change) as edited:
                outcome = self.trial.decide_made(edited, preempt=preempt)
                refused = self._refusals(edited) if outcome.node_name and base is None else []
                if refused:
                    pod, ranges = self.trial.subject(edited), limit_ranges(self.trial)
                    allowed = list(as_allowed(change, self.trial.pod, pod, ranges))
                notes = [change.note] if change.note else []
                notes += [f"{name} is evicted as a whole" for name in outcome.evicted_groups]
                if any(is_of_changed_template(one, self.trial.pod) for one in edited):
                    notes.append("its StatefulSet is made again, around the pods that it has")
                rivals, others, left, comes_back = list[Pod](), list[Pod](), "", False
                if outcome.node_name and not outcome.victims:
                    pod = self.trial.subject(edited)
                    rivals = rivals_of(self.trial, pod, outcome.node_name)
                    left = left_pending(self.trial, edited, pod, outcome.node_name)
                    if left:
                        rivals = [one for one in rivals if not is_of(owner, one)]
                    others = [one for one in rivals if not is_of(owner, one)]
                    is_done = change.title in self._combined or _has_new_node(edited)
                    if others and not is_done and not self.trial.group.is_scheduled:
                        found = beside_rivals(self.trial, change, pod, others)
                        self._combined.update(one.title for one in found)
                        self._beside += [(one, clauses) for one in found]
                    comes_back = replacements_come_first(self.trial, edited, pod)
                    notes += side_effects(self.trial, edited, pod, outcome.node_name, rivals, comes_back=comes_back)
                    notes += [left] if left else []
        except TooManyDecisions:
            return
        except CannotApply as problem:
            self.remedies.tried.append(f"{change.title} ({problem})")
            return
        if not outcome.node_name:
            self.remedies.tried.append(change.title)
            return
        held = [one.key for one in outcome.victims if one.metadata.deletion_timestamp and one.metadata.finalizers]
        if held:
            self.remedies.tried.append(f"{change.title} ({some_names(held)} would not end: finalizers hold it)")
            return
        if refused:
            if all(edit.kind == LIMIT_RANGE for one in allowed for edit in one.edits[:1]):
                self.remedies.tried.append(f"{change.title} ({refused[0]})")
                self.remedies.refused += [text for text in refused if text not in self.remedies.refused]
            self._seen.discard(change.title)
            for one in allowed:
                self._try(one, clauses, preempt=preempt, base=change)
            return
        if all(map(_is_deletion, edited)):
            deleted = frozenset((one.namespace, one.name) for one in edited)
            if deleted in self._deleted:
                return
            self._deleted.add(deleted)
        gone = [*(one.old for one in edited if _is_deletion(one)), *outcome.victims]
        if owner is not None and any(is_of(owner, one) for one in gone):
            self.remedies.tried.append(f"{change.title} ({owner.kind} {owner.name} makes a new one, then pending)")
            if not outcome.victims:
                self._offer_fewer(clauses)
            return
        if comes_back:
            for other in none_of_others(self.trial, change, gone):
                self._try(other, clauses)
        less = smaller_for_all(base or change, self.trial, self.trial.subject(edited)) if left else None
        if less is not None:
            self._try(less, clauses)
        if change.series:
            self._ended.add(change.series)
        self.remedies.found.append(
            Remedy(
                change=change,
                clauses=clauses,
                edited=tuple(edited),
                outcome=outcome,
                touches=max(
                    touches, touched_by(edited, clauses, subject or self.trial.pod, is_correction=change.corrects)
                ),
                notes=tuple(notes),
                rivals=tuple(others),
                is_partial=bool(left or comes_back or others),
            )
        )

    def _offer_fewer(self, clauses: tuple[FailingClause, ...]) -> None:
        """Add the change that the workload of the pod has no more pods than can run."""
        fewer = fewer_of_its_own(self.trial)
        if fewer is None or fewer[0].title in self._seen:
            return
        change, edited, running = fewer
        self._seen.add(change.title)
        outcome = Outcome(node_name=running.node_name)
        self.remedies.found.append(
            Remedy(
                change=change,
                clauses=clauses,
                edited=(edited,),
                outcome=outcome,
                touches=Touch.POD_GIVEN_UP,
                notes=(change.note,),
            )
        )

    def _refusals(self, edited: Sequence[EditedObject]) -> list[str]:
        """What LimitRanges refuse of the pod in question, if admission is asked about it at all."""
        pod = self.trial.subject(edited)
        patch = pod_patch(self.trial.pod, pod)
        if not patch.whole.keys() - {"status"} or (patch.is_in_place and not patch.resize):
            return []
        return refusals(pod, limit_ranges(self.trial))


def find_remedies(analysis: Analysis, trial: Trial, first: Iterable[FirstForOther] = ()) -> Remedies:
    """Look for changes that let the pod of *analysis* run.

    Args:
        analysis: what keeps it from which nodes.
        trial: makes changes, and undoes them.
        first: what lets other pending pods run that it has to be near to.
    """
    return _Search(analysis, trial, first).run()


def _order(one: Remedy) -> tuple[bool, bool, bool, Touch, int, int]:
    """Sorts the one to be shown first to the front."""
    is_last_resort = one.touches >= Touch.VOLUME
    is_correction = one.change.corrects and one.touches < Touch.NEW_NODE and one.touches != Touch.WORKLOAD_RECREATED
    return (
        not is_correction,
        is_last_resort,
        one.is_partial,
        one.touches,
        sum(not edit.is_consequence for edit in one.edited),
        len(one.edited),
    )


def _has_new_node(edited: Sequence[EditedObject]) -> bool:
    return any(one.kind == "Node" and one.old is None for one in edited)


def _is_deletion(one: EditedObject) -> bool:
    """Whether a pod that would have stayed is deleted."""
    return one.kind == "Pod" and one.new is None and one.old.metadata.deletion_timestamp is None
