"""What PodTopologySpread says of a pending pod: each constraint, the counts of its domains, and what would relax it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from attrs import evolve

from plugins_builtin.spreading.match_counts import MatchCounts
from plugins_builtin.spreading.spread_constraints import HARD, HONOR, IGNORE, SOFT, Constraint
from trio_sched.plugin_api import (
    BoolArray,
    Change,
    Clause,
    NodeColumns,
    Pod,
    TopologySpreadConstraint,
    edit_pod,
    nearest_name,
    replace_fields,
    some_names,
)

_SHOWN_DOMAINS: Final = 6


def short_key(key: str) -> str:
    """``zone`` for ``topology.kubernetes.io/zone``."""
    return key.rpartition("/")[2]


def spread_clause(
    pod: Pod,
    nodes: NodeColumns,
    constraint: Constraint,
    counts: MatchCounts,
    matches_itself: bool,
    stated: TopologySpreadConstraint | None,
) -> Clause:
    """A clause for one hard constraint.

    Args:
        pod: the pod.
        nodes: all nodes.
        constraint: compiled.
        counts: the matching pods of its domains.
        matches_itself: whether its selector matches the pod.
        stated: the constraint as the pod has it; None for one of the profile's defaults.
    """
    key = constraint.key
    domains = nodes.label_values(key)
    of_domain = counts.counts(nodes)
    # The counts follow the nodes, to which changes that are tried add some; what is said is of the nodes as they are.
    size, fewest, present = counts.base.size, counts.minimum, np.flatnonzero(counts.base.present).tolist()
    minimum = 0 if size < constraint.min_domains else fewest
    allowed = constraint.max_skew + minimum - matches_itself
    fails = (domains == 0) | (of_domain > allowed)[domains]
    vocabulary = nodes.label_vocabulary(key)

    def cause(otherwise: BoolArray) -> str:
        if not domains.any():
            near = nearest_name(key, {name for node in nodes for name in node.labels})
            return f"no node has the label {key}" + (f"; did you mean {near}?" if near else "")
        usable = otherwise if otherwise.any() else domains != 0
        there = np.unique(domains[usable & (domains != 0)]).tolist()
        text = f"of the domains that are left, {_counted(there)} have matching pods" if there else ""
        lowest = [d for d in present if d and of_domain[d] == fewest]
        if size < constraint.min_domains:
            few = f"{size} domains, fewer than minDomains {constraint.min_domains}"
            text += f"; there are {few}, so the minimum is 0"
        elif lowest:
            text += f"; the fewest have {some_names([str(vocabulary[d]) for d in lowest])} with {fewest}"
        text += f", and one more may make that {constraint.max_skew} more than the minimum"
        missing = int(np.count_nonzero(usable & (domains == 0)))
        if missing:
            text += f"; {missing} node(s) have no label {key}"
        return text.removeprefix("; ").removeprefix(", ")

    def _counted(which: list[int]) -> str:
        shown = sorted(which, key=lambda d: -int(of_domain[d]))
        return some_names([f"{vocabulary[d]} {of_domain[d]}" for d in shown], _SHOWN_DOMAINS)

    def changes(where: BoolArray) -> Iterator[Change]:
        if stated is None:
            return
        usable = where & (domains != 0)
        near = None if domains.any() else nearest_name(key, {name for node in nodes for name in node.labels})
        if near is not None:
            yield evolve(_relaxed(pod, stated, f"topology key {near}", topology_key=near), corrects=True)
        # Nodes where the pod cannot run may be the domains with the fewest pods.
        if stated.node_taints_policy != HONOR and any(nodes.taint_lists):
            yield _relaxed(pod, stated, f"nodeTaintsPolicy {HONOR} for {short_key(key)}", node_taints_policy=HONOR)
        if stated.node_affinity_policy == IGNORE:
            yield _relaxed(pod, stated, f"nodeAffinityPolicy {HONOR} for {short_key(key)}", node_affinity_policy=HONOR)
        if usable.any():
            needed = int(of_domain[domains[usable]].min()) + int(matches_itself) - minimum
            if needed > constraint.max_skew:
                yield _relaxed(pod, stated, f"maxSkew {needed} for {short_key(key)}", max_skew=needed)
            if 0 < size < constraint.min_domains:
                yield _relaxed(pod, stated, f"minDomains {size} for {short_key(key)}", min_domains=size)
        title = f"{SOFT} for {short_key(key)}"
        # With whenUnsatisfiable ScheduleAnyway minDomains is refused.
        yield _relaxed(pod, stated, title, when_unsatisfiable=SOFT, min_domains=None)

    title = f"spread over {short_key(key)} (maxSkew {constraint.max_skew})"
    reason = "TopologyKeyMissing" if not domains.any() else "TopologySpread"
    return Clause(reason=reason, title=title, fails=fails, cause=cause, changes=changes)


def stated_constraints(pod: Pod) -> list[TopologySpreadConstraint]:
    """The hard constraints that the pod itself has."""
    return [one for one in pod.spec.topology_spread_constraints or () if one.when_unsatisfiable == HARD]


def _relaxed(pod: Pod, stated: TopologySpreadConstraint, title: str, **fields: object) -> Change:
    def changed(one: Pod) -> Pod:
        constraints = tuple(
            replace_fields(entry, **fields) if entry == stated else entry
            for entry in one.spec.topology_spread_constraints or ()
        )
        return replace_fields(one, spec=replace_fields(one.spec, topology_spread_constraints=constraints))

    return Change(title=title, edits=(edit_pod(pod, changed),))
