"""What InterPodAffinity says of a pending pod: each of its required terms, and the running pods that keep it away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from plugins_builtin._affinity_clauses import with_label
from plugins_builtin.spreading.match_counts import MatchCounts
from plugins_builtin.spreading.spread_clauses import short_key
from trio_sched.plugin_api import (
    BoolArray,
    Change,
    Clause,
    Int64Array,
    LabelSelector,
    NodeColumns,
    Pod,
    PodSelector,
    affinity_terms,
    compile_selector,
    delete_pod,
    edit_node,
    edit_pod,
    nearest_name,
    replace_fields,
    some_names,
)

_REQUIRED: Final = "required_during_scheduling_ignored_during_execution"
_MAX_NAMESPACES: Final = 2
_MAX_DELETED: Final = 5
"""Pods that one change deletes at most."""


def selector_text(selector: LabelSelector | None) -> str:
    """``app=web, tier in (a, b)``."""
    if selector is None:
        return "no pods"
    parts = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    for one in selector.match_expressions or ():
        values = f" ({', '.join(one.values or ())})" if one.values else ""
        parts.append(f"{one.key} {one.operator}{values}")
    return ", ".join(parts) or "all pods"


def stated_terms(pod: Pod, attribute: str) -> list[object]:
    """The required terms of the pod, as it has them, in ``pod_affinity`` or ``pod_anti_affinity``."""
    affinity = getattr(pod.spec.affinity, attribute, None) if pod.spec.affinity is not None else None
    return list(getattr(affinity, _REQUIRED, None) or ())


def affinity_clause(
    pod: Pod,
    nodes: NodeColumns,
    stated: object,
    selector: PodSelector,
    counts: MatchCounts,
    *,
    is_first: bool,
    is_only: bool,
) -> Clause:
    """A required affinity term.

    Args:
        pod: the pod.
        nodes: all nodes.
        stated: the term as the pod has it.
        selector: what matches all terms.
        counts: the pods that it matches, per domain.
        is_first: whether the pod may be the first one that its terms match.
        is_only: whether there is no other term.
    """
    key, domains = counts.base.key, nodes.label_values(counts.base.key)
    of_domain = counts.counts(nodes)
    fails = (domains == 0) if is_first else (domains == 0) | (of_domain <= 0)[domains]
    labels: LabelSelector | None = getattr(stated, "label_selector", None)
    text = selector_text(labels)
    outside = [] if counts.total else _outside(nodes, domains == 0, selector)
    meant = _nearest_labels(nodes, labels) if not counts.total and not outside else None
    elsewhere = _namespaces_with(nodes, labels) if is_only and not (is_first or counts.total or outside) else {}
    where_it_looks = _namespaces_text(stated)

    def cause(_otherwise: BoolArray) -> str:
        if not domains.any():
            return f"no node has the label {key}"
        if is_first:
            return f"{np.count_nonzero(domains == 0)} node(s) have no label {key}"
        if outside:
            users = some_names([f"{other.key} ({name})" for other, name in outside])
            return f"of the nodes with pods that match {text} none has the label {key}: {users}"
        if not counts.total:
            near = f"; {meant[1]} have {meant[0][0]}={meant[0][1]}" if meant else ""
            if elsewhere:
                near = "; " + " and ".join(f"namespace {name} has {count}" for name, count in elsewhere.items())
            what = "matches" if is_only else "matches all of its terms, with"
            return f"no running pod in {where_it_looks} {what} {text}{near}"
        vocabulary = nodes.label_vocabulary(key)
        where = [f"{vocabulary[d]} ({of_domain[d]})" for d in np.flatnonzero(of_domain > 0).tolist() if d]
        return f"the pods that match {text} are in {some_names(where)} of {short_key(key)}"

    def changes(where: BoolArray) -> Iterator[Change]:
        usable = domains[where & (domains != 0)].tolist()
        if outside and usable:
            domain, name = str(nodes.label_vocabulary(key)[min(usable)]), outside[0][1]
            labelled = edit_node(name, partial(with_label, key=key, value=domain))
            note = f"if that is the {short_key(key)} of {name}"
            yield Change(title=f"label {name} {key}={domain}", edits=(labelled,), note=note)
        if meant is not None and labels is not None:
            (name, value), _count = meant
            renamed = replace_fields(labels, match_labels={**(labels.match_labels or {}), name: value})
            yield Change(
                title=f"pod affinity to {selector_text(renamed)} instead of {text}",
                edits=(edit_pod(pod, lambda one: _with_term(one, "pod_affinity", stated, label_selector=renamed)),),
                corrects=True,
            )
        for name in elsewhere:
            there = partial(
                _with_term, attribute="pod_affinity", stated=stated, namespaces=(name,), namespace_selector=None
            )
            title = f"pod affinity to {text} in namespace {name} instead of {where_it_looks}"
            yield Change(title=title, edits=(edit_pod(pod, there),), corrects=True)
        yield _without_term(pod, "pod_affinity", stated, f"no required pod affinity to {text}")

    title = f"pod affinity to {text} in {short_key(key)}"
    return Clause(
        reason="PodAffinityMismatch",
        title=title,
        fails=fails,
        cause=cause,
        met_by=None if is_first or counts.total else selector.matches_pod,
        changes=changes,
    )


def _outside(nodes: NodeColumns, where: BoolArray, selector: PodSelector) -> list[tuple[Pod, str]]:
    """The pods that *selector* matches on the nodes that *where* says, with their nodes."""
    there = (nodes.node(position) for position in np.flatnonzero(where).tolist())
    return [(other, node.name) for node in there for other in node.pods if selector.matches_pod(other)]


def anti_affinity_clause(
    pod: Pod, nodes: NodeColumns, stated: object, selector: PodSelector, counts: MatchCounts
) -> Clause:
    """A required anti-affinity term; the arguments are those of `affinity_clause`, *selector* matches this term."""
    key, domains = counts.base.key, nodes.label_values(counts.base.key)
    fails = (counts.counts(nodes) > 0)[domains] & (domains != 0)
    text = selector_text(getattr(stated, "label_selector", None))

    def cause(otherwise: BoolArray) -> str:
        blockers = _in_domains(
            nodes, domains, otherwise & fails if (otherwise & fails).any() else fails, selector.matches_pod
        )
        return f"{_named(nodes, blockers)} match {text}, which it keeps away from in {short_key(key)}"

    def changes(where: BoolArray) -> Iterator[Change]:
        yield _without_term(pod, "pod_anti_affinity", stated, f"no required pod anti-affinity to {text}")
        yield from _deletions(nodes, domains, where & fails, selector.matches_pod)

    title = f"pod anti-affinity to {text} in {short_key(key)}"
    return Clause(reason="PodAntiAffinityMismatch", title=title, fails=fails, cause=cause, changes=changes)


def existing_clause(
    pod: Pod, nodes: NodeColumns, key: str, of_domain: Int64Array, namespace_labels: Mapping[str, str]
) -> Clause:
    """The anti-affinity of running pods.

    Args:
        pod: the pod.
        nodes: all nodes.
        key: the topology key of their terms.
        of_domain: shape (domains,): how many of them there are in each domain.
        namespace_labels: of the pod's namespace.
    """
    domains = nodes.label_values(key)
    fails = (of_domain > 0)[domains] & (domains != 0)

    def keeps_away(other: Pod) -> bool:
        return any(
            term.topology_key == key and term.matches(pod.namespace, pod.labels, namespace_labels)
            for term in affinity_terms(other).required_anti_affinity
        )

    def cause(otherwise: BoolArray) -> str:
        blockers = _in_domains(nodes, domains, otherwise & fails if (otherwise & fails).any() else fails, keeps_away)
        return f"the anti-affinity of {_named(nodes, blockers)} keeps it out of their {short_key(key)}"

    title = f"anti-affinity of running pods in {short_key(key)}"
    return Clause(
        reason="ExistingPodsAntiAffinity",
        title=title,
        fails=fails,
        cause=cause,
        changes=lambda where: _deletions(nodes, domains, where & fails, keeps_away),
    )


# --- the pods that stand in the way ---------------------------------------------------------------------------------

_Blockers = dict[int, list[tuple[Pod, str]]]
"""Domain → pods, each with its node."""


def _in_domains(nodes: NodeColumns, domains: object, where: BoolArray, blocks: Callable[[Pod], bool]) -> _Blockers:
    """The pods that *blocks* says, in the domains of the nodes that *where* says."""
    values = np.asarray(domains)
    wanted = set(values[where].tolist()) - {0}
    found: _Blockers = {}
    for position in np.flatnonzero(np.isin(values, list(wanted))).tolist():
        node = nodes.node(position)
        for other in node.pods:
            if blocks(other):
                found.setdefault(int(values[position]), []).append((other, node.name))
    return found


def _named(nodes: NodeColumns, blockers: _Blockers) -> str:
    pods = [f"{pod.key} ({node})" for found in blockers.values() for pod, node in found]
    return some_names(pods) or "pods"


def _deletions(
    nodes: NodeColumns, domains: object, where: BoolArray, blocks: Callable[[Pod], bool]
) -> Iterable[Change]:
    """The deletion of all that stands in the way in one domain, that with the fewest."""
    blockers = _in_domains(nodes, domains, where, blocks)
    few = min(blockers.values(), key=len, default=[])
    if 0 < len(few) <= _MAX_DELETED:
        pods = [pod for pod, _node in few]
        yield Change(title=f"delete {some_names([pod.key for pod in pods])}", edits=tuple(map(delete_pod, pods)))


def _nearest_labels(nodes: NodeColumns, labels: LabelSelector | None) -> tuple[tuple[str, str], int] | None:
    """The label of running pods that the only label of a selector may have been meant to be, and how many have it."""
    wanted = list(((labels.match_labels if labels is not None else None) or {}).items())
    if len(wanted) != 1:
        return None
    ((key, value),) = wanted
    values = Counter(pod.labels[key] for node in nodes for pod in node.pods if key in pod.labels)
    near = None if value in values else nearest_name(value, values)
    return None if near is None else ((key, near), values[near])


def _namespaces_with(nodes: NodeColumns, labels: LabelSelector | None) -> dict[str, int]:
    """The namespaces that have running pods which match, those with most of them first, and how many."""
    matches = compile_selector(labels).matches
    found = Counter(pod.namespace for node in nodes for pod in node.pods if matches(pod.labels))
    return dict(found.most_common(_MAX_NAMESPACES))


def _namespaces_text(term: object) -> str:
    """Where a term looks for pods."""
    names, selector = getattr(term, "namespaces", None), getattr(term, "namespace_selector", None)
    parts = [f"namespace {some_names(names)}"] if names else []
    if selector is not None:
        by_label = selector_text(selector)
        parts.append("any namespace" if by_label == "all pods" else f"the namespaces with {by_label}")
    return " or ".join(parts) or "its namespace"


# --- the terms of the pod -------------------------------------------------------------------------------------------


def _without_term(pod: Pod, attribute: str, stated: object, title: str) -> Change:
    return Change(title=title, edits=(edit_pod(pod, lambda one: _with_term(one, attribute, stated)),))


def _with_term(pod: Pod, attribute: str, stated: object, **changed: object) -> Pod:
    """*pod* with other fields of the required term *stated*; none: without the term."""
    terms: Sequence[object] = [
        one if one != stated else replace_fields(one, **changed) if changed else None  # type: ignore[type-var]
        for one in stated_terms(pod, attribute)
    ]
    kept = tuple(one for one in terms if one is not None) or None
    affinity = pod.spec.affinity
    assert affinity is not None
    of_pods = replace_fields(getattr(affinity, attribute), **{_REQUIRED: kept})
    spec = replace_fields(pod.spec, affinity=replace_fields(affinity, **{attribute: of_pods}))
    return replace_fields(pod, spec=spec)
