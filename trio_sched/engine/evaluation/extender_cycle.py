"""A decision in two steps, for pods about which extenders are asked in between: find feasible nodes, then choose one.

Between the steps time passes. So the second one evaluates the nodes that extenders left once more, as they are then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

import numpy as np
from attrs import evolve, frozen

from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure, fit_failure
from trio_sched.engine.evaluation.nodes_to_find import num_feasible_nodes_to_find
from trio_sched.engine.evaluation.scheduling_cycle import FeasibleNodes, SchedulingCycle, diagnose
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.queue.queueing_hints import EXTENDER_NAME
from trio_sched.objects.node import Node
from trio_sched.plugin_api.status import Status
from trio_sched.plugin_api.verdicts import Diagnosis, NodeStatuses


@frozen(eq=False, kw_only=True)
class NodesForExtenders:
    """The nodes that passed every plugin, as they were then, in the order in which extenders are sent them."""

    nodes: Mapping[str, Node]
    diagnosis: Diagnosis
    """Why the other nodes are not feasible."""
    evaluated: int
    only_nominated: bool = False
    """The pod's nominated node is the only one that was evaluated."""


@frozen(kw_only=True)
class ExtenderResult:
    """What extenders returned for feasible nodes."""

    names: tuple[str, ...]
    """The nodes that no extender filtered out."""
    statuses: Mapping[str, Status]
    """Why they filtered out others, as far as they said."""
    scores: Mapping[str, int]
    """What they add to the total of each node."""


@frozen(kw_only=True)
class ExtenderVerdict:
    """What one extender says of the nodes that are left to it, for the explanation of a pod."""

    name: str
    """Its address."""
    refused: Mapping[str, str]
    """The nodes that it left out, and why."""
    problem: str = ""
    """Why there is no answer."""
    is_ignorable: bool = False
    """Whether the scheduler goes on without an answer."""


ExtendersAnswer = tuple[NodesForExtenders, ExtenderResult] | SchedulingFailure
"""What extenders have left of which nodes, or why the pod has no place."""


def find_feasible_nodes(
    cycle: SchedulingCycle, *, nominated_first: bool = True
) -> NodesForExtenders | SchedulingFailure:
    """Find the nodes to ask extenders about; not all that fit, if there are many: each costs an extender time."""
    try:
        found = cycle.find_feasible(nominated_first=nominated_first)
        if isinstance(found, SchedulingFailure):
            return evolve(found, state=cycle.state)
        diagnosis = diagnose(found.outcome, found.narrowed_by, cycle.table.count)
    except HookFailed as failed:
        return SchedulingFailure(failed.status)
    chosen, evaluated = _sample(found, cycle.start, cycle.profile.percentage_of_nodes_to_score)
    views = (found.nodes.node(position) for position in chosen)
    return NodesForExtenders(
        nodes={view.name: view.node for view in views},
        diagnosis=diagnosis,
        evaluated=evaluated,
        only_nominated=found.only_nominated,
    )


def select_host_among(
    cycle: SchedulingCycle, feasible: NodesForExtenders, result: ExtenderResult, rng: Random
) -> Decision:
    """Choose one of the nodes that extenders left, if they still fit."""
    before = _diagnosis_with(feasible, result)
    try:
        found = cycle.find_feasible(only=frozenset(result.names), nominated_first=feasible.only_nominated)
        if isinstance(found, SchedulingFailure):
            return evolve(_unplaced_with(before, found), state=cycle.state)
        position = cycle.choose(found.nodes, rng, result.scores)
    except HookFailed as failed:
        return SchedulingFailure(failed.status)
    name = found.nodes.name(position)
    return ScheduleResult(name, cycle.state, feasible.evaluated, len(found.nodes), cycle.profile)


def _sample(found: FeasibleNodes, start: int, percentage: int) -> tuple[Iterable[int], int]:
    """Which positions of ``found.nodes`` to ask about, and how many nodes were evaluated to find these."""
    total, count = len(found.outcome.nodes), len(found.nodes)
    enough = num_feasible_nodes_to_find(total, percentage)
    if count <= enough:
        return range(count), found.evaluated
    passed, first = np.flatnonzero(found.outcome.passes), start % total
    chosen = np.roll(np.arange(count), -int(np.searchsorted(passed, first)))[:enough]
    return chosen.tolist(), (int(passed[chosen[-1]]) - first) % total + 1


def _diagnosis_with(feasible: NodesForExtenders, result: ExtenderResult) -> Diagnosis:
    """The diagnosis of the first step, with what the extenders added to it."""
    diagnosis = feasible.diagnosis
    rejected_by = {EXTENDER_NAME} if len(result.names) < len(feasible.nodes) else set()
    return evolve(
        diagnosis,
        statuses=_with_statuses(diagnosis.statuses, result.statuses),
        unschedulable_plugins=diagnosis.unschedulable_plugins | rejected_by,
    )


def _unplaced_with(before: Diagnosis, found: SchedulingFailure) -> SchedulingFailure:
    """The outcome of the second step; nodes that it did not evaluate keep their statuses from *before*."""
    now = found.diagnosis
    if now is None or now.pre_filter_message:
        return found
    return fit_failure(
        evolve(
            before,
            statuses=_with_statuses(before.statuses, now.statuses.by_node()),
            unschedulable_plugins=before.unschedulable_plugins | now.unschedulable_plugins,
            pending_plugins=before.pending_plugins | now.pending_plugins,
        )
    )


def _with_statuses(statuses: NodeStatuses, newer: Mapping[str, Status]) -> NodeStatuses:
    """*statuses*, with the *newer* ones in place of those of the same nodes."""
    if not newer:
        return statuses
    old_names, names = statuses.names, list(statuses.names)
    groups: list[tuple[Status, Sequence[int]]] = []
    for status, positions in statuses.groups:
        kept = [position for position in positions if old_names[position] not in newer]
        if kept:
            groups.append((status, kept))
    by_status: dict[Status, list[int]] = {}
    for name, status in newer.items():
        by_status.setdefault(status, []).append(len(names))
        names.append(name)
    return NodeStatuses((*groups, *by_status.items()), names, statuses.absent)
