"""Answers of a per-node hook, cached for each row until the row changes."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from trio_sched.engine.evaluation.domain_rows import newest_in_domain
from trio_sched.engine.evaluation.filtering import filter_one_node
from trio_sched.engine.hooks.bound_hooks import FilterHook, ScoreHook
from trio_sched.engine.hooks.plugin_calls import call_score
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.snapshot.arrays import BoolArray, Int64Array
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable


def _empty() -> Int64Array:
    return np.zeros(0, dtype=np.int64)


@define(eq=False)
class PerNodeCache:
    """One plugin's results for one signature: it is called only for rows that matter and have changed since."""

    hook: FilterHook | ScoreHook
    depends_on_pods: bool
    """Whether the result also depends on the pods of the row."""
    domain_keys: tuple[str, ...] = ()
    """The labels of the domains whose nodes and pods the result depends on."""
    _generation_seen: Int64Array = field(factory=_empty)
    _values: Int64Array = field(factory=_empty)

    def clear(self, count: int) -> None:
        """Rows have been given to other nodes; there are *count* now."""
        self._generation_seen = np.full(count, -1, dtype=np.int64)
        self._values = np.zeros(count, dtype=np.int64)

    def filter(self, pod: Pod, table: NodeTable, candidates: BoolArray, state: CycleState) -> BoolArray:
        """Shape (nodes,): which of *candidates* pass.

        Raises:
            HookFailed: the plugin failed.
        """
        assert isinstance(self.hook, FilterHook)
        generations = self._generations(table)
        for row in np.flatnonzero(candidates & (self._generation_seen != generations)).tolist():
            self._values[row] = filter_one_node([self.hook], pod, NodeColumns(table), row, state) is None
        self._generation_seen = np.where(candidates, generations, self._generation_seen)
        passes: BoolArray = candidates & (self._values != 0)
        return passes

    def score(self, pod: Pod, table: NodeTable, positions: Int64Array, state: CycleState) -> Int64Array:
        """Shape (positions,): the raw scores of these rows.

        Raises:
            HookFailed: the plugin failed.
        """
        assert isinstance(self.hook, ScoreHook)
        generations = self._generations(table)
        stale = positions[self._generation_seen[positions] != generations[positions]]
        if len(stale):
            self._values[stale] = call_score(self.hook, pod, NodeColumns(table, stale), state)
            self._generation_seen[stale] = generations[stale]
        return self._values[positions]

    def _generations(self, table: NodeTable) -> Int64Array:
        if self.domain_keys:
            return newest_in_domain(table, self.domain_keys)
        views = table.views
        return views.node_generation + views.pods_generation if self.depends_on_pods else views.node_generation
