"""NodeAffinity: filters nodes by node selector and required affinity, scores them by preferred affinity."""

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from plugins_builtin._affinity_clauses import added_clause, affinity_clauses, selector_clauses
from plugins_builtin._node_inclusion import required_matches, required_node_selector
from trio_sched.plugin_api import (
    SKIP,
    Action,
    Clause,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Int64Array,
    Node,
    NodeAffinityArgs,
    NodeColumns,
    NodeSelector,
    Pod,
    PreferredSchedulingTerm,
    PreFilterResult,
    Resource,
    Status,
    Verdicts,
    default_normalize_score,
    failure,
    hookimpl,
    match_labels,
    match_node_selector,
    match_term,
    node_selector_matches,
    on,
    term_is_empty,
    terms_problem,
    unresolvable,
)

REASON_POD = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"

_OK, _ENFORCED, _POD = 0, 1, 2
_STATUSES = {_ENFORCED: unresolvable(REASON_ENFORCED), _POD: unresolvable(REASON_POD)}


class NodeAffinity:
    """Filters and scores nodes by labels; ``addedAffinity`` applies to every pod of the profile."""

    name: ClassVar[str] = "NodeAffinity"
    Args: ClassVar[type[NodeAffinityArgs]] = NodeAffinityArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        added = args.added_affinity
        self._added_required = added.required_during_scheduling_ignored_during_execution if added else None
        self._added_preferred = _effective(
            added.preferred_during_scheduling_ignored_during_execution if added else None
        )
        terms = (*(self._added_required.node_selector_terms or () if self._added_required else ()),)
        if problem := terms_problem((*terms, *(preferred.preference for preferred in self._added_preferred))):
            raise ValueError(f"parsing addedAffinity's selector: {problem}")

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> PreFilterResult | Status | None:
        """Skip without selectors; if every required term names nodes, only these are evaluated."""
        required = required_node_selector(pod)
        if required is None and self._added_required is None and pod.spec.node_selector is None:
            return SKIP
        names = _named_nodes(required)
        if names is None:
            return None
        return PreFilterResult(frozenset(names)) if names else unresolvable(REASON_CONFLICT)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes must match the added affinity of the profile, and the node selector and affinity of the pod."""
        codes = np.full(len(nodes), _OK, dtype=np.int64)
        if pod.spec.node_selector:
            codes[~match_labels(pod.spec.node_selector, nodes)] = _POD
        required = required_node_selector(pod)
        if required is not None:
            codes[~match_node_selector(required, nodes)] = _POD
        if self._added_required is not None:
            codes[~match_node_selector(self._added_required, nodes)] = _ENFORCED
        return Verdicts(codes, _STATUSES.__getitem__)

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each label of the node selector, each requirement of the required affinity, the added affinity."""
        added = [] if self._added_required is None else [added_clause(nodes, self._added_required)]
        return [*selector_clauses(pod, nodes), *affinity_clauses(pod, nodes), *added]

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Skip without preferred terms."""
        preferred = _preferred(pod)
        if preferred is None and not self._added_preferred:
            return SKIP
        problem = terms_problem(term.preference if term.weight else None for term in preferred or ())
        return None if problem is None else failure(problem)

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """The sum of the weights of the preferred terms that the node matches."""
        scores = np.zeros(len(nodes), dtype=np.int64)
        for preferred in (*self._added_preferred, *_effective(_preferred(pod))):
            scores += preferred.weight * match_term(preferred.preference, nodes)
        return scores

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """Map the highest score to 100."""
        return default_normalize_score(scores)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The node selector and the node affinity; none for a pod of a DaemonSet, which no other pod is like."""
        selector, affinity = pod.spec.node_selector, pod.spec.affinity
        if affinity is not None and _named_nodes(required_node_selector(pod)) is not None:
            return None
        return (
            tuple(selector.items()) if selector is not None else None,
            affinity.node_affinity if affinity is not None else None,
        )

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A node is added or its labels change."""
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._node_matches_now)]

    def _node_matches_now(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if self._added_required is not None and not node_selector_matches(self._added_required, new.name, new.labels):
            return Hint.SKIP
        if not required_matches(pod, new.name, new.labels) or (
            old is not None and required_matches(pod, old.name, old.labels)
        ):
            return Hint.SKIP
        return Hint.QUEUE


def _named_nodes(required: NodeSelector | None) -> set[str] | None:
    """The names of the only nodes that can match, if every term names nodes; else None."""
    if required is None or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        named: set[str] | None = None
        for requirement in term.match_fields or ():
            if requirement.key == "metadata.name" and requirement.operator == "In":
                values = set(requirement.values or ())
                named = values if named is None else named & values
        if named is None:
            return None
        names |= named
    return names


def _preferred(pod: Pod) -> tuple[PreferredSchedulingTerm, ...] | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


def _effective(terms: tuple[PreferredSchedulingTerm, ...] | None) -> tuple[PreferredSchedulingTerm, ...]:
    return tuple(term for term in terms or () if term.weight and not term_is_empty(term.preference))
