"""Masks and scores cached per pod signature, caught up from the log of changed rows.

Pods that a profile cannot tell apart get the same results, so these are evaluated once and afterwards only for the rows
that changed. The decision always equals that of the plain evaluation in `scheduling_cycle` (a property test holds them
together); whatever is out of the ordinary (narrowed or rejected by pre_filter, a nominated node, nothing feasible, a
plugin that fails) is left to the plain evaluation.

The contract that makes this possible: a plugin with ``depends_on`` and ``sign`` judges a node from the pod's
signature and the named inputs alone, and its normalize_score from which scores occur, not from how often.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from random import Random
from typing import Generic, TypeVar

import numpy as np
from attrs import Factory, define, evolve, field

from trio_sched.documents.json_values import encode
from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.filtering import NominatedPods, PreFilterOutcome, run_pre_filters
from trio_sched.engine.evaluation.host_selection import select_host
from trio_sched.engine.evaluation.incremental_evaluation import IncrementalEvaluation, NormalizedScores
from trio_sched.engine.evaluation.kind_dependencies import KindDependencies
from trio_sched.engine.evaluation.nominated_pods import NominatedRows, statuses_with_nominated
from trio_sched.engine.evaluation.per_node_cache import PerNodeCache
from trio_sched.engine.evaluation.scoring import run_pre_scores, run_scores
from trio_sched.engine.hooks.bound_hooks import FilterHook, ScoreHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_filter, call_normalize_score, check_nodes
from trio_sched.engine.hooks.return_values import check_score_range
from trio_sched.engine.registry.profile import Profile
from trio_sched.interrupts import raise_interrupt
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.verdicts import Domain, Input
from trio_sched.snapshot.arrays import BoolArray, Int64Array
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable

MAX_SIGNATURES = 200
"""Signatures in the cache; the least recently used one goes first."""

MAX_BYTES = 4 * 1024 * 1024
"""The most that pods whose signatures are cached may take as JSON: 200 usual ones have a megabyte, one may, too."""

_AMOUNTS_ONLY = frozenset({Input.AMOUNTS})
Signature = tuple[Hashable, ...]

# Why results are dropped, in kube-scheduler's words for why it drops the results of a batch.
_EXPIRED = "expired"
"""Something else has changed that they depend on."""
_POD_INCOMPATIBLE = "pod_incompatible"
"""Pods with other signatures came, and there was no more room."""
_POD_NOT_BATCHABLE = "pod_not_batchable"
"""Pods of the signature can no longer be decided from the cache."""
_POD_FAILED = "pod_failed"
"""A plugin failed for a pod of the signature."""
_FAILED_AT = {
    "pre_score": "prescore_error",
    "score": "rescore_error",
    "score_node": "rescore_error",
    "normalize_score": "normalize_error",
}
"""Hooks whose failure has a reason of its own since 1.37."""
V = TypeVar("V")


class NotCached(Exception):
    """This signature is left to the plain evaluation."""


@define(eq=False)
class _RecentlyUsed(Generic[V]):
    """A value per signature, for those that were used last; bounded by number, and by the size of their pods."""

    _entries: OrderedDict[Signature, tuple[V, int]] = field(factory=OrderedDict)
    _bytes: int = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, signature: Signature) -> bool:
        return signature in self._entries

    def __iter__(self) -> Iterator[V]:
        return (value for value, _size in self._entries.values())

    def get(self, signature: Signature) -> V | None:
        found = self._entries.get(signature)
        return None if found is None else found[0]

    def touch(self, signature: Signature) -> None:
        self._entries.move_to_end(signature)

    def put(self, signature: Signature, value: V, pod: Pod, max_entries: int) -> int:
        """Returns how many others were dropped for it."""
        self.drop(signature)
        before = len(self._entries)
        size = len(encode(pod))
        self._entries[signature] = value, size
        self._bytes += size
        while len(self._entries) > max_entries or (self._bytes > MAX_BYTES and len(self._entries) > 1):
            self.drop(next(iter(self._entries)))
        return before + 1 - len(self._entries)

    def drop(self, signature: Signature) -> bool:
        """Returns whether there was a value."""
        found = self._entries.pop(signature, None)
        self._bytes -= 0 if found is None else found[1]
        return found is not None

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0


@define(eq=False)
class SignatureCache:
    """The cached evaluations of one profile."""

    profile: Profile
    table: NodeTable
    dependencies: KindDependencies = field(factory=KindDependencies)
    nominated_rows: NominatedRows = field(default=Factory(lambda self: NominatedRows(self.table), takes_self=True))
    max_signatures: int = MAX_SIGNATURES
    is_trial: bool = False
    """Whether the pods that are decided on are members of a group that is being tried."""
    _evaluations: _RecentlyUsed[IncrementalEvaluation] = field(factory=_RecentlyUsed)
    _uncached: _RecentlyUsed[None] = field(factory=_RecentlyUsed)
    """Signatures left to the plain evaluation; apart, so that the pods of a DaemonSet do not push the others out."""

    def forget_nominated(self) -> None:
        """Forget what was found out about nodes with nominated pods, and these pods."""
        for evaluation in self._evaluations:
            evaluation.nominated_statuses.clear()

    def decide(self, pod: Pod, signature: Signature, nominated: NominatedPods, rng: Random) -> Decision | None:
        """Decide on *pod* if that can be done from the cache.

        Returns:
            The decision, or None if the plain evaluation has to decide.
        """
        try:
            with self.dependencies.recording():
                evaluation = self._evaluation(pod, signature)
                if evaluation is None or self.table.count == 0 or pod.nominated_node_name:
                    return None
                self._catch_up(evaluation)
            return self._decide(evaluation, pod, nominated, rng)
        except NotCached:
            return None
        except HookFailed as error:
            # Not reported: scores are cached for nodes too that no filter lets pass, and there a plugin may raise
            # or return nothing valid. If it is a failure, the plain evaluation finds it again.
            self._drop(signature, self._reason(error))
            return None

    def decide_on_nominated_node(
        self, pod: Pod, signature: Signature, nominated: NominatedPods, node_name: str
    ) -> ScheduleResult | None:
        """Decide on *pod*, which is nominated to *node_name*, if it fits there and that is known from the cache."""
        row = self.table.row_of.get(node_name)
        if row is None:
            return None
        try:
            with self.dependencies.recording():
                evaluation = self._evaluation(pod, signature)
                if evaluation is None or evaluation.per_node:
                    return None
                evaluation.catch_up()
            if not evaluation.passes[row]:
                return None
            state = evaluation.state.fork(without=evaluation.keys_per_pod)
            state.is_trial = self.is_trial
            if _restricts(run_pre_filters(evaluation.uncached_pre_filters, pod, NodeColumns(self.table), state)):
                return None
            if any(hook.plugin not in state.skip_filter for hook in evaluation.uncached_filters):
                return None
            if not self._fits_beside_nominated(evaluation, pod, nominated, state, node_name):
                return None
        except HookFailed as error:
            self._drop(signature, self._reason(error))
            return None
        return ScheduleResult(node_name, state, 1, 1, self.profile)

    def evaluation(self, signature: Signature) -> IncrementalEvaluation | None:
        """The cached evaluation of pods of this signature, if there is one."""
        found, _is_uncached = self._look_up(signature)
        return found

    def __len__(self) -> int:
        return len(self._evaluations)

    def clear(self) -> None:
        """Start over: plugins may return other values now, for reasons that neither pods nor nodes show."""
        self._count_flushed(_EXPIRED, len(self._evaluations))
        self._evaluations.clear()
        self._uncached.clear()

    def remember_fit_error(self, signature: Signature, outcome: SchedulingFailure) -> None:
        """The plain evaluation has found that pods of this signature fit nowhere; the next one need not run it."""
        evaluation = self._evaluations.get(signature)
        if evaluation is None or evaluation.per_node or outcome.state is None:
            return
        if not {hook.plugin for hook in evaluation.uncached_filters} <= outcome.state.skip_filter:
            return
        # What is left of plugins that are not cached is a pre_filter; whom it rejects says nothing about the next pod.
        rejectors = frozenset() if outcome.diagnosis is None else outcome.diagnosis.unschedulable_plugins
        if all(evaluation.profile.part_of_signature(plugin, signature) is not None for plugin in rejectors):
            evaluation.remember_fit_error(outcome)

    def _decide(
        self, evaluation: IncrementalEvaluation, pod: Pod, nominated: NominatedPods, rng: Random
    ) -> Decision | None:
        """Combine the cached results with plugins that are not cached, and with pods nominated to some of the nodes.

        Raises:
            NotCached: a pre_filter narrows or rejects.
            HookFailed: a plugin failed.
        """
        table, state = self.table, evaluation.state.fork(without=evaluation.keys_per_pod)
        state.is_trial = self.is_trial
        nodes = NodeColumns(table)
        narrowed = run_pre_filters(evaluation.uncached_pre_filters, pod, nodes, state)
        if narrowed.rejected is not None:
            raise NotCached
        if narrowed.node_names is not None:
            return self._decide_on_one(evaluation, pod, nominated, state, narrowed.node_names)
        passes = _passes(evaluation, pod, nominated, state, self.nominated_rows)
        is_cached = passes is evaluation.passes
        positions = evaluation.feasible if is_cached else np.flatnonzero(passes)
        if len(positions) == 0:
            fit_error = evaluation.fit_error if is_cached else None
            return None if fit_error is None else evolve(fit_error, state=state)
        if len(positions) == 1:
            return ScheduleResult(table.names[int(positions[0])], state, table.count, 1, self.profile)
        if len(positions) < table.count:
            nodes = nodes.take(positions)
        run_pre_scores(evaluation.uncached_pre_scores, pod, nodes, state)
        uncached = [scorer for scorer in evaluation.uncached_scores if scorer.plugin not in state.skip_score]
        evaluation.normalize_again()
        if is_cached and not uncached and not evaluation.per_node:
            row = select_host(evaluation.totals, rng)
            return ScheduleResult(table.names[row], state, table.count, len(positions), self.profile)
        totals = _totals(evaluation, pod, positions, state, is_cached)
        totals = totals + run_scores(uncached, pod, nodes, state).totals
        row = int(positions[select_host(totals, rng)])
        return ScheduleResult(table.names[row], state, table.count, len(positions), self.profile)

    def _decide_on_one(
        self,
        evaluation: IncrementalEvaluation,
        pod: Pod,
        nominated: NominatedPods,
        state: CycleState,
        names: frozenset[str],
    ) -> ScheduleResult:
        """Decide on *pod* if a pre_filter has left one node, as for every pod of a DaemonSet, and it fits there.

        Raises:
            NotCached: there are more nodes, or it does not fit: the texts come from the plain evaluation.
            HookFailed: a plugin failed.
        """
        (name, *others) = names
        row = self.table.row_of.get(name)
        if others or row is None or evaluation.per_node or not evaluation.passes[row]:
            raise NotCached
        node = NodeColumns(self.table).take(slice(row, row + 1))
        for hook in evaluation.uncached_filters:
            if hook.plugin in state.skip_filter:
                continue
            verdicts = call_filter(hook, pod, node, state)
            if verdicts.may_fail:
                check_nodes(hook, verdicts, verdicts.passes)
            if not verdicts.passes[0]:
                raise NotCached
        if not self._fits_beside_nominated(evaluation, pod, nominated, state, name):
            raise NotCached
        return ScheduleResult(name, state, 1, 1, self.profile)

    def _fits_beside_nominated(
        self, evaluation: IncrementalEvaluation, pod: Pod, nominated: NominatedPods, state: CycleState, name: str
    ) -> bool:
        """Whether *pod*, which fits on the node *name*, fits there beside the pods nominated to it as well.

        Raises:
            HookFailed: a plugin failed.
        """
        if name not in nominated:
            return True
        kept = evaluation.nominated_statuses_for(state)
        rows = self.nominated_rows
        (status,) = statuses_with_nominated(self.profile, pod, state, nominated, [name], rows, kept)
        return status is None

    def _look_up(self, signature: Signature) -> tuple[IncrementalEvaluation | None, bool]:
        """The valid evaluation, if there is one; and whether there is to be none."""
        try:
            found = self._evaluations.get(signature)
            if found is not None and not found.is_outdated:
                return found, False
            return None, signature in self._uncached
        except BaseException as error:  # the parts are objects of plugins, whose __eq__ can raise anything
            raise_interrupt(error)
            return None, True

    def _evaluation(self, pod: Pod, signature: Signature) -> IncrementalEvaluation | None:
        evaluations = self._evaluations
        found, is_uncached = self._look_up(signature)
        if found is not None:
            evaluations.touch(signature)
            return found
        if is_uncached:
            return None
        try:
            evaluation = _new_evaluation(self.profile, self.table, pod, signature)
        except (NotCached, HookFailed) as error:
            self._drop(signature, self._reason(error) if isinstance(error, HookFailed) else _POD_NOT_BATCHABLE)
            self._uncached.put(signature, None, pod, self.max_signatures)
            return None
        self._drop(signature, _EXPIRED)
        measured = self.profile.measured
        began = measured.clock()
        others = evaluations.put(signature, evaluation, pod, self.max_signatures)
        measured.store_seconds.observe(measured.clock() - began)
        self._count_flushed(_POD_INCOMPATIBLE, others)
        return evaluation

    def _catch_up(self, evaluation: IncrementalEvaluation) -> None:
        """Evaluate the rows again that changed, and measure it where the emulated version does.

        Raises:
            HookFailed: a plugin failed.
        """
        measured = self.profile.measured
        rescored = measured.rescored
        if rescored is None:
            evaluation.catch_up()
            return
        began = measured.clock()
        if evaluation.catch_up():
            rescored.observe(measured.clock() - began)

    def _reason(self, error: HookFailed) -> str:
        return _POD_FAILED if self.profile.measured.rescored is None else _FAILED_AT.get(error.hook.hook, _POD_FAILED)

    def _drop(self, signature: Signature, reason: str) -> None:
        self._count_flushed(reason, int(self._evaluations.drop(signature)))

    def _count_flushed(self, reason: str, count: int) -> None:
        if count:
            self.profile.measured.flushed[reason] += count


def _new_evaluation(profile: Profile, table: NodeTable, pod: Pod, signature: Signature) -> IncrementalEvaluation:
    """Call the pre_filters and pre_scores once and sort the plugins by what their results depend on.

    Raises:
        NotCached: a pre_filter narrows or rejects, or per-node filters have to be called for every pod.
        HookFailed: a plugin failed.
    """
    cached = profile.cached_plugins(signature)
    per_node = [hook for hook in profile.filter if hook.per_node]
    if per_node and (profile.percentage_of_nodes_to_score or any(hook.plugin not in cached for hook in per_node)):
        # Per-node calls cost so much more than everything that could be cached that they must not be made twice.
        raise NotCached
    evaluation = IncrementalEvaluation(profile, table, pod, CycleState())
    nodes, state = NodeColumns(table), evaluation.state
    storing: set[str] = set()
    for hook in profile.pre_filter:
        if hook.plugin in cached:
            before = len(state.keys())
            if _restricts(run_pre_filters([hook], pod, nodes, state)):
                raise NotCached
            _note_what_is_stored(evaluation, hook.plugin, before, storing)
    storing_scores: set[str] = set()
    for hook in profile.pre_score:
        if hook.plugin in cached:
            before = len(state.keys())
            run_pre_scores([hook], pod, nodes, state)
            _note_what_is_stored(evaluation, hook.plugin, before, storing_scores)
    for hook in profile.filter:
        if hook.plugin not in cached:
            evaluation.uncached_filters.append(hook)
        elif hook.plugin in evaluation.state.skip_filter:
            continue
        elif hook.per_node:
            evaluation.per_node.append(PerNodeCache(hook, _depends_on_pods(hook), _domain_keys(hook.depends_on)))
        else:
            (evaluation.pods_filters if _depends_on_pods(hook) else evaluation.node_filters).append(hook)
    for scorer in profile.score:
        if scorer.plugin not in cached:
            evaluation.uncached_scores.append(scorer)
        elif scorer.plugin in evaluation.state.skip_score or scorer.plugin in evaluation.state.zero_scores:
            continue
        elif scorer.per_node:
            keys = _domain_keys(scorer.depends_on)
            evaluation.per_node.append(PerNodeCache(scorer, _depends_on_pods(scorer), keys))
        elif scorer.normalize is not None:
            empty = np.zeros(0, dtype=np.int64)
            evaluation.normalized.append(NormalizedScores(scorer, _depends_on_pods(scorer), empty, empty))
        else:
            (evaluation.pods_scores if _depends_on_pods(scorer) else evaluation.node_scores).append(scorer)
    on_pods: list[FilterHook | ScoreHook] = [*evaluation.pods_filters, *evaluation.pods_scores]
    evaluation.is_by_amounts = bool(on_pods) and not any(scores.depends_on_pods for scores in evaluation.normalized)
    evaluation.is_by_amounts &= all(hook.depends_on == _AMOUNTS_ONLY for hook in on_pods)
    evaluation.depends_on_all_nodes = any(Input.ALL_NODES in profile.depends_on[plugin] for plugin in cached)
    evaluation.domain_keys = _domain_keys(frozenset().union(*(profile.depends_on[plugin] for plugin in cached)))
    evaluation.uncached_pre_filters = tuple(
        h for h in profile.pre_filter if h.plugin not in cached or h.plugin in storing
    )
    evaluation.uncached_pre_scores = tuple(
        h for h in profile.pre_score if h.plugin not in cached or h.plugin in storing_scores
    )
    return evaluation


def _note_what_is_stored(evaluation: IncrementalEvaluation, plugin: str, before: int, storing: set[str]) -> None:
    """Note that *plugin* stored values for its hooks after the scores: these need the values of their own pod."""
    state = evaluation.state
    stored = state.keys()[before:]
    if (stored and plugin in evaluation.profile.plugins_with_later_hooks) or state.pods_to_activate:
        storing.add(plugin)
        evaluation.keys_per_pod += stored
        state.pods_to_activate.clear()


def _restricts(outcome: PreFilterOutcome) -> bool:
    return outcome.rejected is not None or outcome.node_names is not None


def _depends_on_pods(hook: FilterHook | ScoreHook) -> bool:
    return hook.depends_on is not None and not hook.depends_on.isdisjoint({Input.PODS, Input.AMOUNTS})


def _domain_keys(depends_on: frozenset[Input | Domain] | None) -> tuple[str, ...]:
    return tuple(sorted(one.key for one in depends_on or () if isinstance(one, Domain)))


def _passes(
    evaluation: IncrementalEvaluation, pod: Pod, nominated: NominatedPods, state: CycleState, rows: NominatedRows
) -> BoolArray:
    """Shape (nodes,): where *pod* fits; the cached mask itself if no other filter takes part.

    Raises:
        HookFailed: a plugin failed.
    """
    skipped = state.skip_filter
    filters = [hook for hook in evaluation.uncached_filters if hook.plugin not in skipped]
    per_node = [cache for cache in evaluation.per_node if isinstance(cache.hook, FilterHook)]
    if not filters and not per_node and not nominated:
        return evaluation.passes
    table = evaluation.table
    passes = evaluation.passes.copy()
    for hook in filters:
        verdicts = call_filter(hook, pod, NodeColumns(table), state)
        if verdicts.may_fail:
            check_nodes(hook, verdicts, passes)
        passes &= verdicts.passes
    for cache in per_node:
        passes &= cache.filter(pod, table, passes, state)
    names = [name for name in nominated if name in table.row_of and passes[table.row_of[name]]]
    if names:
        kept = evaluation.nominated_statuses_for(state)
        statuses = statuses_with_nominated(evaluation.profile, pod, state, nominated, names, rows, kept)
        for name, status in zip(names, statuses, strict=True):
            passes[table.row_of[name]] = status is None
    return passes


def _totals(
    evaluation: IncrementalEvaluation, pod: Pod, positions: Int64Array, state: CycleState, is_cached: bool
) -> Int64Array:
    """The sums of the cached weighted scores of the nodes at *positions*.

    Raises:
        HookFailed: a plugin failed, or left the range of scores.
    """
    totals: Int64Array
    if is_cached or all(scores.is_same_over(positions) for scores in evaluation.normalized):
        totals = evaluation.totals[positions]
    else:
        totals = evaluation.node_total[positions] + evaluation.pods_total[positions]
        for normalized in evaluation.normalized:
            totals += evaluation.normalized_over(normalized, positions) * normalized.hook.weight
    for cache in evaluation.per_node:
        hook = cache.hook
        if isinstance(hook, ScoreHook):
            raw = cache.score(pod, evaluation.table, positions, state)
            scores = call_normalize_score(hook, pod, raw, state) if hook.normalize is not None else raw
            check_score_range(hook, scores)
            totals += scores * hook.weight
    return totals
