"""A decision in two halves, for pods about which somebody outside is asked in between.

Between the halves time passes. So the second evaluates again, on the nodes that were left to it, as they are by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final

import numpy as np
from attrs import evolve, frozen

from trio_sched.engine.decision import Decision, Placed, Unplaced, unfit
from trio_sched.engine.filtering import CycleFailed
from trio_sched.engine.queueing_hints import EXTENDER
from trio_sched.engine.scheduling_cycle import MIN_FEASIBLE_NODES, Feasible, SchedulingCycle, diagnose
from trio_sched.objects.node import Node
from trio_sched.plugin_api.status import Status
from trio_sched.plugin_api.verdicts import Diagnosis, NodeStatuses

LEAST_PERCENTAGE: Final = 5
"""Of the nodes of however big a cluster so many are asked about."""


@frozen(eq=False, kw_only=True)
class Shortlist:
    """The nodes that passed every plugin, in the order to ask about them, as they were then."""

    nodes: Mapping[str, Node]
    diagnosis: Diagnosis
    """What became of the other nodes."""
    evaluated: int
    only_nominated: bool = False
    """It holds the pod's nominated node and no other was looked at."""


@frozen(kw_only=True)
class Opinion:
    """What extenders made of a shortlist."""

    names: tuple[str, ...]
    """The nodes they left."""
    statuses: Mapping[str, Status]
    """Why they turned away others, as far as they said."""
    scores: Mapping[str, int]
    """What they add to the total of each node."""


def shortlist(cycle: SchedulingCycle, *, nominated_first: bool = True) -> Shortlist | Unplaced:
    """Find the nodes to ask about; not all that fit, if there are many: everybody who is asked takes time for each."""
    try:
        found = cycle.find_feasible(nominated_first=nominated_first)
    except CycleFailed as failed:
        return Unplaced(failed.status)
    if isinstance(found, Unplaced):
        return evolve(found, state=cycle.state)
    chosen, evaluated = _sample(found, cycle.start, cycle.profile.percentage_of_nodes_to_score)
    views = (found.nodes.node(position) for position in chosen)
    return Shortlist(
        nodes={view.name: view.node for view in views},
        diagnosis=diagnose(found.outcome, found.narrowed_by, cycle.table.count),
        evaluated=evaluated,
        only_nominated=found.only_nominated,
    )


def decide_among(cycle: SchedulingCycle, listed: Shortlist, opinion: Opinion, rng: Random) -> Decision:
    """Choose one of the nodes that were left, if they still fit."""
    before = _told(listed, opinion)
    try:
        found = cycle.find_feasible(only=frozenset(opinion.names), nominated_first=listed.only_nominated)
        if isinstance(found, Unplaced):
            return evolve(_both(before, found), state=cycle.state)
        position = cycle.choose(found.nodes, rng, opinion.scores)
    except CycleFailed as failed:
        return Unplaced(failed.status)
    return Placed(found.nodes.name(position), cycle.state, listed.evaluated, len(found.nodes))


def nodes_to_ask_about(count: int, percentage: int) -> int:
    """Of *count* nodes that are looked at, how many that fit are enough.

    Source: kube-scheduler looks for so many feasible nodes; without a percentage it has fewer the bigger the cluster.
    """
    if count < MIN_FEASIBLE_NODES:
        return count
    percentage = percentage or max(LEAST_PERCENTAGE, 50 - count // 125)
    return max(MIN_FEASIBLE_NODES, count * percentage // 100)


def _sample(found: Feasible, start: int, percentage: int) -> tuple[Iterable[int], int]:
    """Which positions of ``found.nodes`` to ask about, and how many nodes were looked at for that."""
    total, count = len(found.outcome.nodes), len(found.nodes)
    enough = nodes_to_ask_about(total, percentage)
    if count <= enough:
        return range(count), found.evaluated
    passed, first = np.flatnonzero(found.outcome.passes), start % total
    chosen = np.roll(np.arange(count), -int(np.searchsorted(passed, first)))[:enough]
    return chosen.tolist(), (int(passed[chosen[-1]]) - first) % total + 1


def _told(listed: Shortlist, opinion: Opinion) -> Diagnosis:
    """What is known before the second look."""
    diagnosis = listed.diagnosis
    blamed = {EXTENDER} if len(opinion.names) < len(listed.nodes) else set()
    return evolve(
        diagnosis,
        statuses=_with_statuses(diagnosis.statuses, opinion.statuses),
        unschedulable_plugins=diagnosis.unschedulable_plugins | blamed,
    )


def _both(before: Diagnosis, found: Unplaced) -> Unplaced:
    """The outcome of the second look with what was known before; the nodes that it was not about were told of then."""
    now = found.diagnosis
    if now is None or now.pre_filter_message:
        return found
    return unfit(
        evolve(
            before,
            statuses=_with_statuses(before.statuses, now.statuses.by_node()),
            unschedulable_plugins=before.unschedulable_plugins | now.unschedulable_plugins,
            pending_plugins=before.pending_plugins | now.pending_plugins,
        )
    )


def _with_statuses(statuses: NodeStatuses, newer: Mapping[str, Status]) -> NodeStatuses:
    """*statuses*, where *newer* ones replace what was said of the same nodes."""
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
