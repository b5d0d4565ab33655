"""Which nodes a pod can run on: pre_filter and filter, on all nodes or on some.

This is the plain evaluation. `incremental_evaluation` gives the same masks faster for pods with equal signatures.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from attrs import define, field, frozen

from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook
from trio_sched.engine.hooks.plugin_calls import call_filter, call_pre_filter, call_status_hook, check_nodes, explain
from trio_sched.engine.hooks.return_values import distinct_codes
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status, unresolvable
from trio_sched.plugin_api.verdicts import NodeStatuses, PreFilterResult, Verdicts
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.pod_info import PodInfo

NominatedPods = Mapping[str, Sequence[PodInfo]]
"""Node name → pods that are nominated there and have at least the priority of the pod in question."""


@frozen
class PreFilterOutcome:
    """What all pre_filters together said."""

    node_names: frozenset[str] | None = None
    """The only nodes that are filtered; None means all."""
    narrowed_by: tuple[str, ...] = ()
    rejected: Status | None = None


_ALL_NODES: Final = PreFilterOutcome()


def run_pre_filters(hooks: Iterable[BoundHook], pod: Pod, nodes: NodeColumns, state: CycleState) -> PreFilterOutcome:
    """Call every pre_filter in order; notes in *state* which plugins' filters are skipped.

    Raises:
        HookFailed: a plugin failed.
    """
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    rejected: Status | None = None
    skipped = set(state.skip_filter)
    try:
        for hook in hooks:
            returned = call_pre_filter(hook, pod, nodes, state)
            if returned is None:
                continue
            if isinstance(returned, PreFilterResult):
                if returned.node_names is None:
                    continue
                names = returned.node_names if names is None else names & returned.node_names
                narrowed_by.append(hook.plugin)
                if not names:
                    return PreFilterOutcome(names, tuple(narrowed_by), _conflict(narrowed_by))
            elif returned.code == Code.SKIP:
                skipped.add(hook.plugin)
            elif returned.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return PreFilterOutcome(None, (), returned)
            else:
                rejected = returned
    finally:
        state.skip_filter = frozenset(skipped)
    return _ALL_NODES if names is None and rejected is None else PreFilterOutcome(names, tuple(narrowed_by), rejected)


def _conflict(plugins: Sequence[str]) -> Status:
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously")


@define(eq=False)
class FilterOutcome:
    """Which of *nodes* a pod can run on, and for the others why not."""

    nodes: NodeColumns
    passes: BoolArray
    verdicts: list[tuple[FilterHook, Verdicts]] = field(factory=list)
    """Array filters, in order."""
    node_statuses: dict[int, Status] = field(factory=dict)
    """Positions that failed for another reason: a per-node filter, or the pass with nominated pods."""
    unexamined: int = 0
    """Nodes that were not evaluated because enough feasible ones were found."""

    def groups(self) -> Iterator[tuple[Status, list[int]]]:
        """Each status with the positions of the nodes that got it: of several failing plugins the first one's.

        Raises:
            HookFailed: a filter cannot explain its codes.
        """
        yield from _grouped(self.node_statuses)
        failed = np.flatnonzero(~self.passes)
        if self.node_statuses:
            failed = failed[~np.isin(failed, list(self.node_statuses))]
        for hook, verdicts in self.verdicts:
            codes = verdicts.codes[failed]
            given = codes != 0
            if not given.any():
                continue
            nodes, codes = failed[given], codes[given]
            for code in distinct_codes(codes):
                yield explain(hook, verdicts, code), nodes[codes == code].tolist()
            failed = failed[~given]

    def statuses(self) -> dict[str, Status]:
        """The status of every node that failed, by name.

        Raises:
            HookFailed: a filter cannot explain its codes.
        """
        return {self.nodes.name(position): status for status, positions in self.groups() for position in positions}

    def is_examined(self, position: int) -> bool:
        """Whether the node at *position* passed or failed, as opposed to having been left out."""
        if self.passes[position] or position in self.node_statuses:
            return True
        return any(verdicts.codes[position] for _hook, verdicts in self.verdicts)

    def status(self, position: int) -> Status | None:
        """Why the node at *position* failed; None if it did not.

        Raises:
            HookFailed: a filter cannot explain its code.
        """
        found = self.node_statuses.get(position)
        if found is not None:
            return found
        for hook, verdicts in self.verdicts:
            code = verdicts.codes[position].item()
            if code:
                return explain(hook, verdicts, code)
        return None


def _grouped(statuses: Mapping[int, Status]) -> Iterator[tuple[Status, list[int]]]:
    """Each status with the positions that have it or an equal one."""
    groups: dict[Hashable, tuple[Status, list[int]]] = {}
    for position, status in statuses.items():
        key = (status.plugin, status.code, status.reasons) if status.error is None else position
        group = groups.get(key)
        if group is None:
            groups[key] = (status, [position])
        else:
            group[1].append(position)
    yield from groups.values()


def run_filters(
    filters: Iterable[FilterHook],
    pod: Pod,
    nodes: NodeColumns,
    state: CycleState,
    *,
    num_nodes_to_find: int | None = None,
    start: int = 0,
) -> FilterOutcome:
    """Call every filter on *nodes*, first those that take all nodes at once.

    Args:
        filters: the profile's filters; those in ``state.skip_filter`` are left out.
        pod: the pod.
        nodes: the nodes to look at.
        state: the cycle's state.
        num_nodes_to_find: stop calling per-node filters once this many nodes have passed; None looks at all.
        start: position at which per-node filters begin, so that small samples do not always hit the same nodes.

    Raises:
        HookFailed: a plugin failed.
    """
    outcome = FilterOutcome(nodes, np.ones(len(nodes), dtype=np.bool_))
    per_node: list[FilterHook] = []
    for hook in filters:
        if hook.plugin in state.skip_filter:
            continue
        if hook.per_node:
            per_node.append(hook)
            continue
        verdicts = call_filter(hook, pod, nodes, state)
        if verdicts.may_fail:
            check_nodes(hook, verdicts, outcome.passes)
        outcome.verdicts.append((hook, verdicts))
        outcome.passes &= verdicts.passes
    if per_node:
        _run_per_node(per_node, pod, outcome, state, num_nodes_to_find, start)
    return outcome


def _run_per_node(
    filters: Sequence[FilterHook],
    pod: Pod,
    outcome: FilterOutcome,
    state: CycleState,
    num_nodes_to_find: int | None,
    start: int,
) -> None:
    candidates = np.flatnonzero(outcome.passes)
    if start:
        candidates = np.roll(candidates, -int(np.searchsorted(candidates, start % max(len(outcome.nodes), 1))))
    found = 0
    for i, position in enumerate(candidates.tolist()):
        if num_nodes_to_find is not None and found >= num_nodes_to_find:
            rest = candidates[i:]
            outcome.passes[rest] = False
            outcome.unexamined = len(rest)
            return
        status = filter_one_node(filters, pod, outcome.nodes, position, state)
        if status is None:
            found += 1
        else:
            outcome.passes[position] = False
            outcome.node_statuses[position] = status


def filter_one_node(
    filters: Iterable[FilterHook], pod: Pod, nodes: NodeColumns, position: int, state: CycleState
) -> Status | None:
    """Call per-node *filters* on one node; the first status that is not success.

    Raises:
        HookFailed: a plugin failed.
    """
    node = nodes.node(position)
    for hook in filters:
        status = call_status_hook(hook, pod, node, state)
        if status is not None:
            return status
    return None


def node_statuses(outcome: FilterOutcome, narrowed_by: Sequence[str]) -> NodeStatuses:
    """The statuses as post_filter and the message need them: of nodes that were looked at, and of all others.

    Raises:
        HookFailed: a filter cannot explain its codes.
    """
    reasons = (f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}]",) if narrowed_by else ()
    # A copy of the names: rows may be given to other nodes while the statuses are still in use.
    return NodeStatuses(tuple(outcome.groups()), list(outcome.nodes.names), unresolvable(*reasons))
