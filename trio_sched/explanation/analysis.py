"""Which requirements of a pod are not met on which nodes, and what that leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
from attrs import define, field

from trio_sched.engine.evaluation.filtering import FilterOutcome, NominatedPods
from trio_sched.engine.evaluation.nominated_pods import NominatedRows, run_filters_with_nominated_pods
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_clauses, call_of_clause
from trio_sched.engine.registry.profile import Profile
from trio_sched.explanation.plugin_answers import PluginAnswer, ask_plugins
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, Clause
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable

T = TypeVar("T")

_MAX_CHANGES: Final = 50
"""Changes of one clause that are looked at."""
_MAX_TITLE: Final = 80


@define(eq=False, kw_only=True)
class FailingClause:
    """A requirement that is not met on some nodes."""

    plugin: str
    clause: Clause
    hook: BoundHook
    """The hook that the clause is from, for its failures."""
    fails: BoolArray
    """Shape (nodes,): where it is not met, and the plugin rejects the node."""
    alone: int = 0
    """How many more nodes would pass without it."""
    problems: list[str] = field(factory=list)
    """Failures of the plugin in explaining it."""

    @property
    def title(self) -> str:
        """What is asked for."""
        return self.clause.title

    @property
    def is_of_pod(self) -> bool:
        """Whether it is not met whatever the node."""
        return self.clause.fails is None

    def cause(self, otherwise: BoolArray) -> str:
        """The evidence; *otherwise*, shape (nodes,), says where everything else is met."""
        cause = self.clause.cause
        return cause if isinstance(cause, str) else self._ask("", lambda: str(cause(otherwise)))

    def details(self) -> list[str]:
        """More of the evidence, a line each."""
        return self._ask([], lambda: [str(line) for line in self.clause.details()])

    def changes(self, nodes: BoolArray) -> list[Change]:
        """What would meet it on one of *nodes*, shape (nodes,)."""
        found: list[Any] = self._ask([], lambda: list(islice(self.clause.changes(nodes), _MAX_CHANGES)))
        return [one for one in found if isinstance(one, Change)]

    def is_met_by(self, pod: Pod) -> bool:
        """Whether it would be met beside *pod*, which is pending, once that runs."""
        met_by = self.clause.met_by
        return met_by is not None and self._ask(False, lambda: bool(met_by(pod)))

    def _ask(self, otherwise: T, function: Callable[[], T]) -> T:
        try:
            return call_of_clause(self.hook, function)
        except HookFailed as failed:
            self.problems.append(str(failed))
            return otherwise


@define(eq=False, kw_only=True)
class Analysis:
    """What keeps a pod from which nodes."""

    profile: Profile
    pod: Pod
    nodes: NodeColumns
    clauses: list[FailingClause]
    """The one without which most nodes would pass first."""
    passes: BoolArray
    """Shape (nodes,): where everything is met."""
    answers: list[PluginAnswer]
    """What the plugins said."""
    state: CycleState
    """What their pre_filters have left."""

    def passes_without(self, clauses: Iterable[FailingClause]) -> BoolArray:
        """Shape (nodes,): where nothing but *clauses* is not met."""
        left_out = {id(one) for one in clauses}
        passes = np.ones(len(self.nodes), dtype=np.bool_)
        for one in self.clauses:
            if id(one) not in left_out:
                passes &= ~one.fails
        return passes

    def failing_sets(self) -> list[tuple[tuple[FailingClause, ...], int]]:
        """The sets of clauses that nodes fail together, each with the number of nodes; the smallest sets first.

        Sets with clauses that are given come after all others.
        """
        if not self.clauses or not len(self.nodes):
            return [(tuple(self.clauses), 0)] if self.clauses else []
        matrix = np.array([one.fails for one in self.clauses])
        packed = np.packbits(matrix, axis=0)
        columns, counts = np.unique(packed, axis=1, return_counts=True)
        unpacked = np.unpackbits(columns, axis=0, count=len(self.clauses)).astype(bool)
        found = [
            (tuple(one for one, fails in zip(self.clauses, unpacked[:, i], strict=True) if fails), int(count))
            for i, count in enumerate(counts.tolist())
        ]
        return sorted(found, key=lambda one: (any(c.clause.is_given for c in one[0]), len(one[0]), -one[1]))

    def names(self, where: BoolArray) -> list[str]:
        """The names of the nodes where that is so."""
        return [self.nodes.name(position) for position in np.flatnonzero(where).tolist()]


def analyse(profile: Profile, table: NodeTable, pod: Pod, nominated: NominatedPods) -> Analysis:
    """Find out what keeps *pod* from which nodes.

    Args:
        profile: the plugins that are asked.
        table: the nodes; the pod is on none of them.
        pod: the pod.
        nominated: pods that are nominated to nodes and come before it, by node.
    """
    nodes = NodeColumns(table)
    answers = ask_plugins(profile, pod, nodes)
    clauses: list[FailingClause] = []
    for plugin, of_plugin in _by_plugin(_not_repeated(answers.rejecting)).items():
        _merge(clauses, _clauses_of(profile, plugin, of_plugin, pod, nodes, answers.state))
    passes = np.ones(len(nodes), dtype=np.bool_)
    for answer in answers.rejecting:
        passes &= ~answer.fails
    if nominated and passes.any():
        kept = _kept_for_nominated(profile, table, pod, nominated, passes, answers.state)
        if kept is not None:
            clauses.append(kept)
            passes &= ~kept.fails
    found = Analysis(
        profile=profile,
        pod=pod,
        nodes=nodes,
        clauses=clauses,
        passes=passes,
        answers=answers.rejecting,
        state=answers.state,
    )
    for one in clauses:
        one.alone = int(np.count_nonzero(found.passes_without([one]) & one.fails))
    clauses.sort(
        key=lambda one: (not one.is_of_pod, one.clause.is_given, -one.alone, -int(np.count_nonzero(one.fails)))
    )
    return found


def awaited_clauses(profile: Profile, pod: Pod, nodes: NodeColumns, state: CycleState) -> list[FailingClause]:
    """What a pod that fits waits for before it is bound.

    Args:
        profile: of its plugins those are asked that have permit or pre_bind, which is where a pod waits.
        pod: the pod.
        nodes: all nodes.
        state: what the pre_filters have left.
    """
    everywhere, found = np.ones(len(nodes), dtype=np.bool_), list[FailingClause]()
    waiting = {one.plugin for one in (*profile.permit, *profile.pre_bind)}
    for plugin, hook in profile.clauses.items():
        if plugin not in waiting:
            continue
        try:
            clauses = [one for one in call_clauses(hook, pod, nodes, state) if one.is_awaited]
        except HookFailed:  # it may have had nothing to say of this pod
            continue
        _merge(found, [FailingClause(plugin=plugin, clause=one, hook=hook, fails=everywhere) for one in clauses])
    return found


def _merge(clauses: list[FailingClause], more: Iterable[FailingClause]) -> None:
    """Add *more* to *clauses*; what several plugins say of the same is one clause."""
    known = {(one.clause.reason, one.title): one for one in clauses}
    for one in more:
        same = known.get((one.clause.reason, one.title))
        if same is None:
            known[one.clause.reason, one.title] = one
            clauses.append(one)
        else:
            same.fails = same.fails | one.fails
            same.problems += one.problems


def _not_repeated(answers: Sequence[PluginAnswer]) -> list[PluginAnswer]:
    """*answers* without failures of what another plugin rejects the pod for, which come second if at all."""
    rejections = [status for one in answers for status, _nodes in one.statuses if status.code != Code.ERROR]
    reasons = tuple(status.message for status in rejections if status.message)
    return [
        one
        for one in answers
        if not all(status.code == Code.ERROR and status.message.endswith(reasons) for status, _nodes in one.statuses)
    ]


def _by_plugin(answers: Iterable[PluginAnswer]) -> Mapping[str, list[PluginAnswer]]:
    found: dict[str, list[PluginAnswer]] = {}
    for one in answers:
        found.setdefault(one.plugin, []).append(one)
    return found


def _clauses_of(
    profile: Profile,
    plugin: str,
    answers: Sequence[PluginAnswer],
    pod: Pod,
    nodes: NodeColumns,
    state: CycleState,
) -> list[FailingClause]:
    """The clauses of one plugin: its own, and for the nodes that these do not explain those of its statuses."""
    rejected = np.zeros(len(nodes), dtype=np.bool_)
    for answer in answers:
        rejected |= answer.fails
    unexplained = rejected.copy()
    found: list[FailingClause] = []
    hook = profile.clauses.get(plugin)
    problem = ""
    if hook is not None and not any(_is_fault(status) for one in answers for status, _ in one.statuses):
        try:
            for clause in call_clauses(hook, pod, nodes, state):
                if clause.is_awaited:
                    continue
                fails = rejected if clause.fails is None else clause.fails & rejected
                if fails.any() or (clause.fails is None and not len(nodes)):
                    found.append(FailingClause(plugin=plugin, clause=clause, hook=hook, fails=fails))
                    unexplained &= ~fails
        except HookFailed as failed:
            problem = str(failed)
    if unexplained.any() or not found:
        for answer in answers:
            for status, positions in answer.statuses:
                fails = np.zeros(len(nodes), dtype=np.bool_)
                fails[list(positions)] = True
                fails &= unexplained
                if fails.any() or not found:
                    one = _of_status(plugin, answer, status, fails)
                    one.problems += [problem] if problem else []
                    found.append(one)
    return found


def _is_fault(status: Status) -> bool:
    """Whether something is wrong with the plugin itself: one that returns Error may well say what of the pod is."""
    failure = status.error
    return status.code == Code.ERROR and not (isinstance(failure, HookFailed) and failure.returned_error)


def _of_status(plugin: str, answer: PluginAnswer, status: Status, fails: BoolArray) -> FailingClause:
    """A clause that says no more than *status*."""
    text = status.message or f"{status.code.label} of {plugin}"
    remedies = [] if status.remedy is None else [status.remedy]
    clause = Clause(
        reason=f"PluginFailed{plugin}" if status.code == Code.ERROR else f"RejectedBy{plugin}",
        title=status.clause or (text if len(text) <= _MAX_TITLE else f"{text[:_MAX_TITLE]}…"),
        fails=None if answer.point != "Filter" and bool(fails.all()) else fails,
        cause=f"{plugin} says: {text}",
        changes=lambda _nodes: remedies,
    )
    return clause_without_hook(clause, fails, plugin=plugin)


def clause_without_hook(clause: Clause, fails: BoolArray, *, plugin: str = "", alone: int = 0) -> FailingClause:
    """A requirement that no hook ``clauses`` has named: of a plugin without one, or of the scheduler itself."""
    hook = BoundHook(plugin, "clauses", lambda: None)
    return FailingClause(plugin=plugin, clause=clause, hook=hook, fails=fails, alone=alone)


def _kept_for_nominated(
    profile: Profile, table: NodeTable, pod: Pod, nominated: NominatedPods, passes: BoolArray, state: CycleState
) -> FailingClause | None:
    """Nodes where the pod fits, but not besides the pods that are nominated there."""
    outcome = FilterOutcome(NodeColumns(table), passes.copy())
    try:
        run_filters_with_nominated_pods(profile, pod, outcome, state, nominated, NominatedRows(table), None)
    except HookFailed:
        return None  # the decision shows it
    kept = passes & ~outcome.passes
    if not kept.any():
        return None
    names = [outcome.nodes.name(position) for position in np.flatnonzero(kept).tolist()]
    pods = Counter(one.pod.key for name in names for one in nominated[name])
    cause = f"place on {len(names)} of the nodes is kept for pods that are nominated there: {', '.join(list(pods)[:3])}"
    clause = Clause(reason="KeptForNominatedPods", title="place besides nominated pods", fails=kept, cause=cause)
    return clause_without_hook(clause, kept)
