"""Masks and scores of one profile for the pods of one signature, kept up to date row by row from the change log."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from attrs import define, field

from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.evaluation.domain_rows import DomainRows
from trio_sched.engine.evaluation.nominated_pods import NominatedStatuses
from trio_sched.engine.evaluation.per_node_cache import PerNodeCache
from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook, ScoreHook
from trio_sched.engine.hooks.plugin_calls import call_filter, call_normalize_score, call_score, check_nodes
from trio_sched.engine.hooks.return_values import check_score_range
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.snapshot.arrays import BoolArray, Int64Array, RowIndex
from trio_sched.snapshot.change_log import as_index
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable

_FAILED = b"\0"
"""How a node that did not pass looks in the bytes of a mask."""

MAX_ROWS_BY_AMOUNTS = 24
"""More rows than these are judged together: with numpy that takes less time than looking them up one by one."""
MAX_KEPT_AMOUNTS = 2048
"""Amounts of rows whose results are kept, per signature."""

INFEASIBLE = -1
"""The total of nodes that did not pass; totals of others are never negative."""


@define(eq=False)
class NormalizedScores:
    """Raw scores of a plugin that normalises, and the weighted normalised scores over the feasible nodes."""

    hook: ScoreHook
    depends_on_pods: bool
    raw: Int64Array
    weighted: Int64Array
    span: tuple[int, int] | None = None
    """The lowest and the highest raw score of feasible nodes, if there are no others."""

    def is_same_over(self, positions: Int64Array) -> bool:
        """Whether *weighted* holds for the nodes at *positions* alone too: the same scores occur among them."""
        if self.span is None:
            return False
        raw = self.raw[positions]
        return (int(raw.min()), int(raw.max())) == self.span


@define(eq=False)
class IncrementalEvaluation:
    """The results of one profile's plugins for the pods of one signature, row by row.

    Filters and scores come in two groups: those that depend on node objects only, and those that also depend on the
    pods on the node and so change with every placement.
    """

    profile: Profile
    table: NodeTable
    pod: Pod
    state: CycleState
    node_filters: list[FilterHook] = field(factory=list)
    pods_filters: list[FilterHook] = field(factory=list)
    node_scores: list[ScoreHook] = field(factory=list)
    pods_scores: list[ScoreHook] = field(factory=list)
    normalized: list[NormalizedScores] = field(factory=list)
    per_node: list[PerNodeCache] = field(factory=list)
    uncached_filters: list[FilterHook] = field(factory=list)
    uncached_scores: list[ScoreHook] = field(factory=list)
    uncached_pre_filters: tuple[BoundHook, ...] = ()
    """Called for every pod: those of plugins that are not cached, or that store values for their later hooks."""
    uncached_pre_scores: tuple[BoundHook, ...] = ()
    keys_per_pod: list[Hashable] = field(factory=list)
    """The keys in *state* of values for later hooks: other pods do not get these."""
    depends_on_all_nodes: bool = False
    domain_keys: tuple[str, ...] = ()
    """The labels of the domains that a plugin's results depend on."""
    is_by_amounts: bool = False
    """Everything that depends on the pods of a node depends on their amounts alone: rows with the same ones are judged
    once."""
    nominated_statuses: NominatedStatuses = field(factory=NominatedStatuses)
    node_passes: BoolArray = field(init=False)
    pods_pass: BoolArray = field(init=False)
    passes: BoolArray = field(init=False)
    node_total: Int64Array = field(init=False)
    pods_total: Int64Array = field(init=False)
    totals: Int64Array = field(init=False)
    _node_log_position: int = -1
    _pods_log_position: int = -1
    _membership: int = -1
    _nodes_generation: int = -1
    _normalized_is_stale: bool = True
    _feasible: Int64Array | None = None
    _by_usage: dict[int, tuple[bool, int]] = field(factory=dict)
    """Id of the amounts of a row → whether the filters on them pass, and the sum of the scores on them."""
    _usage_epoch: int = -1
    _domains: DomainRows | None = None
    _fit_error: tuple[tuple[int, int, int], SchedulingFailure] | None = None

    @property
    def _version(self) -> tuple[int, int, int]:
        """Differs whenever any row has changed."""
        return self._membership, self._node_log_position, self._pods_log_position

    @property
    def fit_error(self) -> SchedulingFailure | None:
        """Why pods of this signature fit nowhere, if that was found out at this very state of the cluster."""
        return self._fit_error[1] if self._fit_error is not None and self._fit_error[0] == self._version else None

    def remember_fit_error(self, outcome: SchedulingFailure) -> None:
        """Pods of this signature fit nowhere, as long as no row changes."""
        self._fit_error = (self._version, outcome)

    def nominated_statuses_for(self, state: CycleState) -> NominatedStatuses | None:
        """The kept statuses, if they hold for a pod of this signature whose pre_filters have left *state*."""
        skipped, profile = state.skip_filter, self.profile
        if self.domain_keys:
            return None  # they are kept for as long as one node is unchanged
        if any(hook.plugin not in skipped for hook in self.uncached_filters):
            return None
        if not (profile.add_pod.keys() <= skipped and profile.remove_pod.keys() <= skipped):
            return None
        return self.nominated_statuses

    @property
    def feasible(self) -> Int64Array:
        """The rows that pass."""
        if self._feasible is None:
            self._feasible = np.flatnonzero(self.passes)
        return self._feasible

    @property
    def is_outdated(self) -> bool:
        """Whether pre_filter and pre_score must run again, because a plugin depends on all node objects."""
        return self.depends_on_all_nodes and self._nodes_generation not in (-1, self.table.nodes_generation)

    # --- catching up ------------------------------------------------------------------------------------------------

    def catch_up(self) -> bool:
        """Evaluate the rows again that changed; returns whether there were any, and fewer than all.

        Raises:
            HookFailed: a plugin failed.
        """
        table = self.table
        if self._membership != table.membership_generation:
            self._start_over()
            return False
        node_rows = table.node_log.since(self._node_log_position)
        pods_rows = table.pods_log.since(self._pods_log_position)
        if node_rows is None or pods_rows is None or len(node_rows) + len(pods_rows) > table.count // 2:
            self._start_over()
            return False
        if self._domains is not None and (node_rows or pods_rows):
            if node_rows and self._domains.have_moved():
                self._start_over()
                return False
            pods_rows = self._domains.sharing_with(node_rows + pods_rows)
        self._node_log_position = table.node_log.position
        self._pods_log_position = table.pods_log.position
        has_changed = bool(node_rows or pods_rows)
        if node_rows:
            self._evaluate(as_index(node_rows), node_changed=True)
            if pods_rows:
                seen = set(node_rows)
                pods_rows = [row for row in pods_rows if row not in seen]
        by_amounts = self.is_by_amounts and len(pods_rows) <= MAX_ROWS_BY_AMOUNTS
        if by_amounts:
            pods_rows = self._apply_known(pods_rows)
        if pods_rows:
            self._evaluate(as_index(pods_rows), node_changed=False)
            if by_amounts:
                self._keep_results(pods_rows)
        return has_changed

    def _apply_known(self, rows: Sequence[int]) -> list[int]:
        """Judge *rows* like those with the same amounts before; returns those that are the first with theirs."""
        table, known = self.table, self._by_usage
        ids = table.usage_ids_of(rows)
        if self._usage_epoch != table.usage_ids.epoch or len(known) > MAX_KEPT_AMOUNTS:
            self._usage_epoch = table.usage_ids.epoch
            known.clear()
        unknown: list[int] = []
        for row, usage_id in zip(rows, ids, strict=True):
            found = known.get(usage_id)
            if found is None:
                unknown.append(row)
                continue
            fits, pods_total = found
            self.pods_total[row] = pods_total
            passes = fits and bool(self.node_passes[row])
            if passes != self.passes[row]:
                self.passes[row] = passes
                self._feasible = None
                self._normalized_is_stale = True
            if passes:
                total = pods_total + self.node_total[row]
                for scores in self.normalized:
                    total += scores.weighted[row]
                self.totals[row] = total
            else:
                self.totals[row] = INFEASIBLE
        return unknown

    def _keep_results(self, rows: Sequence[int]) -> None:
        """Keep how *rows*, just evaluated, were judged."""
        ids = self.table.usage_ids_of(rows)
        for usage_id, fits, total in zip(
            ids, self.pods_pass[rows].tolist(), self.pods_total[rows].tolist(), strict=True
        ):
            self._by_usage[usage_id] = fits, total

    def _start_over(self) -> None:
        table = self.table
        n = table.count
        self.node_passes = np.zeros(n, dtype=np.bool_)
        self.passes = np.zeros(n, dtype=np.bool_)
        self.pods_pass = np.zeros(n, dtype=np.bool_)
        self.node_total = np.zeros(n, dtype=np.int64)
        self.pods_total = np.zeros(n, dtype=np.int64)
        self.totals = np.full(n, INFEASIBLE, dtype=np.int64)
        for scores in self.normalized:
            scores.raw = np.zeros(n, dtype=np.int64)
            scores.weighted = np.zeros(n, dtype=np.int64)
        for cache in self.per_node:
            cache.clear(n)
        self._membership = table.membership_generation
        self._nodes_generation = table.nodes_generation
        self._node_log_position = table.node_log.position
        self._pods_log_position = table.pods_log.position
        self._feasible = None
        self._domains = DomainRows(table, self.domain_keys) if self.domain_keys else None
        self._evaluate(slice(0, n), node_changed=True)
        self._normalized_is_stale = True

    def _evaluate(self, rows: RowIndex, *, node_changed: bool) -> None:
        nodes = NodeColumns(self.table, rows)
        if node_changed:
            passes = self._filter(self.node_filters, nodes)
            self.node_passes[rows] = True if passes is None else passes
            total = self._score(self.node_scores, nodes)
            self.node_total[rows] = 0 if total is None else total
        passes = self._filter(self.pods_filters, nodes)
        self.pods_pass[rows] = True if passes is None else passes
        node_passes = self.node_passes[rows]
        passes = node_passes if passes is None else passes & node_passes
        total = self._score(self.pods_scores, nodes)
        if total is None:
            total = self.node_total[rows].copy()
        else:
            self.pods_total[rows] = total
            total += self.node_total[rows]
        changed = passes.tobytes() != self.passes[rows].tobytes()  # for one row much faster than comparing arrays
        if changed:
            self._feasible = None
        if self.normalized:
            self._evaluate_normalized(rows, nodes, changed, total, node_changed)
        self.passes[rows] = passes
        if _FAILED in passes.tobytes():
            total[~passes] = INFEASIBLE
        self.totals[rows] = total

    def _evaluate_normalized(
        self, rows: RowIndex, nodes: NodeColumns, stale: bool, total: Int64Array, node_changed: bool
    ) -> None:
        for scores in self.normalized:
            if node_changed or scores.depends_on_pods:
                raw = call_score(scores.hook, self.pod, nodes, self.state)
                stale = stale or bool((raw != scores.raw[rows]).any())
                scores.raw[rows] = raw
            total += scores.weighted[rows]
        if stale:
            self._normalized_is_stale = True

    def _filter(self, filters: Sequence[FilterHook], nodes: NodeColumns) -> BoolArray | None:
        passes: BoolArray | None = None
        for hook in filters:
            verdicts = call_filter(hook, self.pod, nodes, self.state)
            mask = verdicts.passes
            if verdicts.may_fail and _FAILED in mask.tobytes():
                # Only filters of this group are known to come before: what fails here need not fail a cycle, but then
                # the plain evaluation has to say so.
                check_nodes(hook, verdicts, np.ones(len(mask), dtype=np.bool_) if passes is None else passes)
            passes = mask if passes is None else passes & mask
        return passes

    def _score(self, scorers: Sequence[ScoreHook], nodes: NodeColumns) -> Int64Array | None:
        total: Int64Array | None = None
        for hook in scorers:
            scores = call_score(hook, self.pod, nodes, self.state)
            check_score_range(hook, scores)
            weighted = scores * hook.weight
            total = weighted if total is None else total + weighted
        return total

    def normalize_again(self) -> None:
        """Bring the normalised scores up to date with the feasible nodes.

        Raises:
            HookFailed: a plugin failed, or left the range of scores.
        """
        if not self._normalized_is_stale:
            return
        self._normalized_is_stale = False
        if not self.normalized:
            return
        positions = self.feasible
        if len(positions) == 0:
            return
        everywhere = len(positions) == len(self.passes)
        total = self.node_total + self.pods_total
        for scores in self.normalized:
            raw = scores.raw if everywhere else scores.raw[positions]
            lowest, highest = int(raw.min()), int(raw.max())
            scores.span = (lowest, highest) if highest - lowest <= 1 else None
            weighted = self.normalized_over(scores, slice(None) if everywhere else positions) * scores.hook.weight
            if everywhere:
                scores.weighted = weighted
            else:
                scores.weighted[:] = 0
                scores.weighted[positions] = weighted
            total += scores.weighted
        self.totals = total if everywhere else np.where(self.passes, total, INFEASIBLE)

    def normalized_over(self, scores: NormalizedScores, positions: RowIndex) -> Int64Array:
        """The normalised scores of one plugin over the nodes at *positions*.

        Raises:
            HookFailed: the plugin failed, or left the range of scores.
        """
        normalized = call_normalize_score(scores.hook, self.pod, scores.raw[positions].copy(), self.state)
        check_score_range(scores.hook, normalized)
        return normalized
