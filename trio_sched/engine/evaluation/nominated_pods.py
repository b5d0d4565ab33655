"""The pass with nominated pods: a pod must also fit on a node once the pods nominated to it run there."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from trio_sched.engine.evaluation.filtering import FilterOutcome, NominatedPods
from trio_sched.engine.evaluation.node_result_cache import NodeResultCache
from trio_sched.engine.evaluation.what_if_filters import WhatIfFilters, WhatIfNode
from trio_sched.engine.hooks.plugin_calls import clone_state
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable

_Seen = tuple[int, int, tuple[int, ...]]

NominatedStatuses = NodeResultCache[Status | None]
"""Statuses on nodes with nominated pods; for pods whose filters judge a node from the signature and what is on it."""


@define(eq=False)
class NominatedRows:
    """Copies of rows with the pods added that are nominated to them; only what has changed is copied again.

    While many pods wait for their victims to leave, every attempt of any of them looks at all these nodes.
    """

    table: NodeTable
    _copy: NodeTable | None = field(default=None, init=False)
    _membership: int = -1
    _position_of: dict[str, int] = field(factory=dict)
    _seen: dict[str, _Seen] = field(factory=dict)

    def clear(self) -> None:
        """Start over."""
        self._copy = None
        self._position_of.clear()
        self._seen.clear()
        self._membership = self.table.membership_generation

    def with_pods(self, nominated: NominatedPods, names: Sequence[str]) -> tuple[NodeColumns, list[int]]:
        """Columns in which the nodes *names* have their nominated pods too, and where they stand there."""
        table, views = self.table, self.table.views
        if self._membership != table.membership_generation or len(self._position_of) > 2 * len(nominated) + 64:
            self.clear()
        if self._copy is None:
            self._copy = table.copy_of_rows([])
        positions: list[int] = []
        pods_seen, node_seen = views.pods_generation, views.node_generation
        for name in names:
            row, pods = table.row_of[name], nominated[name]
            seen = (int(pods_seen[row]), int(node_seen[row]), tuple([id(pod_info.pod) for pod_info in pods]))
            if self._seen.get(name) != seen:
                self._position_of[name] = self._copy.copy_row(table, row, self._position_of.get(name))
                for pod_info in pods:
                    self._copy.add_pod(self._position_of[name], pod_info)
                self._seen[name] = seen
            positions.append(self._position_of[name])
        return NodeColumns(self._copy), positions


def run_filters_with_nominated_pods(
    profile: Profile,
    pod: Pod,
    outcome: FilterOutcome,
    state: CycleState,
    nominated: NominatedPods,
    rows: NominatedRows,
    kept: NominatedStatuses | None = None,
) -> None:
    """Fail the nodes on which *pod* would take the place of pods nominated there.

    The plain pass has been made; here the nodes concerned are filtered again as if those pods ran there. Nodes that
    have failed already too: the status that counts and is shown is the one with those pods, if that is a failure.

    Raises:
        HookFailed: a plugin failed.
    """
    names, positions = [], []
    for name in nominated:
        position = outcome.nodes.position(name)
        if position is not None and (not outcome.unexamined or outcome.is_examined(position)):
            names.append(name)
            positions.append(position)
    if not names:
        return
    for position, status in zip(
        positions, statuses_with_nominated(profile, pod, state, nominated, names, rows, kept), strict=True
    ):
        if status is not None:
            outcome.passes[position] = False
            outcome.node_statuses[position] = status


def statuses_with_nominated(
    profile: Profile,
    pod: Pod,
    state: CycleState,
    nominated: NominatedPods,
    names: Sequence[str],
    rows: NominatedRows,
    kept: NominatedStatuses | None = None,
) -> list[Status | None]:
    """For each of the nodes *names*, why *pod* would not fit there together with the pods nominated there.

    Raises:
        HookFailed: a plugin failed.
    """
    if kept is None:
        return _evaluate(profile, pod, state, nominated, names, rows)
    table = rows.table
    of_nodes = [table.row_of[name] for name in names]
    missing = kept.missing(table, of_nodes, table.views.pods_generation, nominated, most=len(nominated))
    if missing:
        unknown = [table.names[row] for row in missing]
        statuses = _evaluate(profile, pod, state, nominated, unknown, rows)
        for name, version, status in zip(unknown, missing.values(), statuses, strict=True):
            kept.keep(name, version, status)
    return [kept.value(name) for name in names]


def _evaluate(
    profile: Profile, pod: Pod, state: CycleState, nominated: NominatedPods, names: Sequence[str], rows: NominatedRows
) -> list[Status | None]:
    filters = WhatIfFilters(profile, pod, state)
    columns, where = rows.with_pods(nominated, names)
    nodes = [WhatIfNode(position, name) for position, name in zip(where, names, strict=True)]
    if filters.plugins_with_extensions:
        for node in nodes:
            node.state = clone_state(state)
            for pod_info in nominated[node.name]:
                filters.add_pod(columns, node, pod_info.pod)
    filters.run(columns, nodes)
    return [node.status for node in nodes]
