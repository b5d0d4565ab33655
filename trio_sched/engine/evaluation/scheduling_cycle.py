"""From a pod to a node: find feasible nodes, prioritize them, select one. Plain evaluation; nothing here waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np
from attrs import define, evolve, frozen

from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure, fit_failure, no_nodes
from trio_sched.engine.evaluation.filtering import (
    FilterOutcome,
    NominatedPods,
    node_statuses,
    run_filters,
    run_pre_filters,
)
from trio_sched.engine.evaluation.host_selection import select_host
from trio_sched.engine.evaluation.incremental_evaluation import IncrementalEvaluation
from trio_sched.engine.evaluation.nodes_to_find import MIN_FEASIBLE_NODES_TO_FIND, num_feasible_nodes_to_find
from trio_sched.engine.evaluation.nominated_pods import NominatedRows, run_filters_with_nominated_pods
from trio_sched.engine.evaluation.scoring import Scores, run_pre_scores, run_scores
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.measurements import Measurements
from trio_sched.engine.hooks.status_labels import status_label
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status
from trio_sched.plugin_api.verdicts import Diagnosis, NodeStatuses
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable

OnScores = Callable[[Pod, NodeColumns, Scores], None]
"""Takes the scores of the nodes that passed, before one of them is chosen for the pod."""


@frozen(eq=False)
class FeasibleNodes:
    """Nodes that passed everything."""

    nodes: NodeColumns
    evaluated: int
    outcome: FilterOutcome
    narrowed_by: tuple[str, ...] = ()
    """Plugins whose pre_filter left nodes out."""
    only_nominated: bool = False
    """The pod's nominated node passed, so no other was looked at."""

    @property
    def statuses(self) -> NodeStatuses:
        """Why each of the other nodes was rejected; built on demand."""
        return node_statuses(self.outcome, self.narrowed_by)


@define(eq=False)
class SchedulingCycle:
    """The steps of one cycle, for one profile and one pod, which has a cycle of its own."""

    profile: Profile
    table: NodeTable
    pod: Pod
    nominated: NominatedPods
    state: CycleState
    start: int = 0
    """Where the search for enough nodes begins, if not all are looked at."""
    nominated_node: str | None = None
    """The node that the pod is nominated to; None means what its status says."""
    nominated_rows: NominatedRows | None = None
    """Shared by all cycles; without it rows are copied for this one."""
    evaluation: IncrementalEvaluation | None = None
    """The evaluation of pods with the same signature: it keeps statuses on nodes with nominated pods."""
    on_scores: OnScores | None = None
    """Told of the scores."""
    placement: frozenset[str] | None = None
    """The names of the only nodes that the pod may run on, because its group is tried there; None: all."""

    @property
    def nominated_node_name(self) -> str:
        """The node that the pod is nominated to; "" if there is none."""
        return self.pod.nominated_node_name if self.nominated_node is None else self.nominated_node

    def find_feasible(
        self, *, only: frozenset[str] | None = None, nominated_first: bool = True
    ) -> FeasibleNodes | SchedulingFailure:
        """Run pre_filter and filter.

        Args:
            only: names of the only nodes to look at; those that do not exist are left out.
            nominated_first: whether to look at the pod's nominated node first, and at no other if it passes.

        Raises:
            HookFailed: a plugin failed.
        """
        nodes = NodeColumns(self.table)
        total = len(nodes) if self.placement is None else len(self.placement & self.table.row_of.keys())
        if total == 0:
            return no_nodes()
        # A second search of the same attempt, after extenders were called, is not another attempt.
        measured = self.profile.measured if only is None and nominated_first else Measurements().add_profile("")
        with measured.point("PreFilter") as timer:
            narrowed = run_pre_filters(self.profile.pre_filter, self.pod, nodes, self.state)
            timer.status = status_label(narrowed.rejected)
        if narrowed.rejected is not None:
            measured.rejected_by_pre_filter(narrowed.rejected)
            return fit_failure(_rejected_by_pre_filter(narrowed.rejected, narrowed.narrowed_by, total))
        names = narrowed.node_names
        for limit in (only, self.placement):
            if limit is not None:
                names = limit if names is None else limit & names
        measured.filtered(self.state.skip_filter)
        with measured.point("Filter"):
            limits = [limit for limit in (only, self.placement) if limit is not None]
            if nominated_first and all(self.nominated_node_name in limit for limit in limits):
                nominated = self._try_nominated_node()
                if nominated is not None:
                    return nominated
            outcome = self._filter(nodes, names)
        positions = np.flatnonzero(outcome.passes)
        if len(positions) == 0:
            return fit_failure(diagnose(outcome, narrowed.narrowed_by, total))
        nodes = outcome.nodes
        return FeasibleNodes(nodes.take(positions), len(nodes) - outcome.unexamined, outcome, narrowed.narrowed_by)

    def _filter(self, nodes: NodeColumns, names: frozenset[str] | None) -> FilterOutcome:
        """Run the filters on *nodes*, or on those of them that have one of *names*."""
        if names is not None:
            rows = sorted(self.table.row_of[name] for name in names if name in self.table.row_of)
            nodes = nodes.take(np.array(rows, dtype=np.intp))
        outcome = run_filters(
            self.profile.filter,
            self.pod,
            nodes,
            self.state,
            num_nodes_to_find=self._num_nodes_to_find(len(nodes)),
            start=self.start,
        )
        self._apply_nominated(outcome)
        return outcome

    def _try_nominated_node(self) -> FeasibleNodes | None:
        """The node that the pod is nominated to, if it still fits there; a failure means looking at others."""
        name = self.nominated_node_name
        row = self.table.row_of.get(name) if name else None
        if row is None:
            return None
        node = NodeColumns(self.table).take(slice(row, row + 1))
        try:
            outcome = run_filters(self.profile.filter, self.pod, node, self.state)
            self._apply_nominated(outcome)
        except HookFailed:
            return None
        return FeasibleNodes(node, 1, outcome, only_nominated=True) if outcome.passes[0] else None

    def _apply_nominated(self, outcome: FilterOutcome) -> None:
        if self.nominated:
            rows = NominatedRows(self.table) if self.nominated_rows is None else self.nominated_rows
            kept = None if self.evaluation is None else self.evaluation.nominated_statuses_for(self.state)
            run_filters_with_nominated_pods(self.profile, self.pod, outcome, self.state, self.nominated, rows, kept)

    def _num_nodes_to_find(self, count: int) -> int | None:
        percentage = self.profile.percentage_of_nodes_to_score
        if not percentage or count < MIN_FEASIBLE_NODES_TO_FIND or not any(f.per_node for f in self.profile.filter):
            return None
        return num_feasible_nodes_to_find(count, percentage)

    def choose(self, nodes: NodeColumns, rng: Random, bonus: Mapping[str, int] | None = None) -> int:
        """The position of one of the best of *nodes*.

        Args:
            nodes: those that passed; a single one is not scored.
            rng: decides between equals.
            bonus: what extenders add to the total of each node, by name.

        Raises:
            HookFailed: a plugin failed.
        """
        if len(nodes) == 1:
            return 0
        scores = self.prioritize(nodes)
        if self.on_scores is not None:
            self.on_scores(self.pod, nodes, scores)
        totals = scores.totals
        if bonus:
            totals = totals + np.array([bonus.get(name, 0) for name in nodes.names], dtype=np.int64)
        return select_host(totals, rng)

    def prioritize(self, feasible: NodeColumns) -> Scores:
        """Run pre_score, score and normalize_score.

        Raises:
            HookFailed: a plugin failed.
        """
        if self.profile.score:
            with self.profile.measured.point("PreScore"):
                run_pre_scores(self.profile.pre_score, self.pod, feasible, self.state)
        self.profile.measured.scored(self.state.skip_score)
        with self.profile.measured.point("Score"):
            return run_scores(self.profile.score, self.pod, feasible, self.state)

    def decide(self, rng: Random) -> Decision:
        """Find feasible nodes, prioritize them, and select one of the best."""
        try:
            feasible = self.find_feasible()
            if isinstance(feasible, SchedulingFailure):
                return evolve(feasible, state=self.state)
            position = self.choose(feasible.nodes, rng)
        except HookFailed as failed:
            return SchedulingFailure(failed.status)
        name = feasible.nodes.name(position)
        return ScheduleResult(name, self.state, feasible.evaluated, len(feasible.nodes), self.profile)


def _rejected_by_pre_filter(status: Status, narrowed_by: tuple[str, ...], total: int) -> Diagnosis:
    plugins = {status.plugin} if status.plugin else set()
    return Diagnosis(
        NodeStatuses((), (), status),
        unschedulable_plugins=frozenset(plugins | set(narrowed_by)),
        pending_plugins=frozenset(plugins) if status.code == Code.PENDING else frozenset(),
        pre_filter_message=status.message,
        total_nodes=total,
    )


def diagnose(outcome: FilterOutcome, narrowed_by: tuple[str, ...], total: int) -> Diagnosis:
    """Why the nodes that did not pass were rejected, and by which plugins.

    Raises:
        HookFailed: a filter cannot explain its codes.
    """
    statuses = node_statuses(outcome, narrowed_by)
    plugins = {status.plugin for status, _nodes in statuses.groups if status.plugin}
    pending = {status.plugin for status, _nodes in statuses.groups if status.code == Code.PENDING and status.plugin}
    return Diagnosis(
        statuses,
        unschedulable_plugins=frozenset(plugins | set(narrowed_by)),
        pending_plugins=frozenset(pending),
        total_nodes=total,
    )
