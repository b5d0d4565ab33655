"""InterPodAffinity: required and preferred affinity and anti-affinity between pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, TypeAlias

import numpy as np
from attrs import define, frozen

from plugins_builtin.spreading.match_counts import MatchCounts
from plugins_builtin.spreading.pod_affinity_clauses import (
    affinity_clause,
    anti_affinity_clause,
    existing_clause,
    stated_terms,
)
from trio_sched.plugin_api import (
    MAX_SCORE,
    SKIP,
    Action,
    AffinityTerm,
    BoolArray,
    Clause,
    CodeArray,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Int64Array,
    InterPodAffinityArgs,
    NamespacedMatcher,
    Node,
    NodeColumns,
    NodeView,
    Pod,
    PodSelector,
    PodTerms,
    Resource,
    SelectorError,
    SizedCache,
    Status,
    TermCounts,
    TermKind,
    Verdicts,
    affinity_terms,
    hookimpl,
    on,
    unresolvable,
    unschedulable,
)
from trio_sched.plugin_api.behaviour import Behaviour

NAME = "InterPodAffinity"
REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
_MAX_SELECTORS = 4096

_AFFINITY, _ANTI_AFFINITY, _EXISTING = 3, 2, 1
"""The codes of filter; where several apply to a node, the highest is its code."""
_STATUSES = {
    _AFFINITY: unresolvable(REASON_AFFINITY),
    _ANTI_AFFINITY: unschedulable(REASON_ANTI_AFFINITY),
    _EXISTING: unschedulable(REASON_EXISTING),
}
_FILTER_KEY, _SCORE_KEY = (NAME, "filter"), (NAME, "score")

_MatchesTerms: TypeAlias = Callable[[tuple[AffinityTerm, ...], Pod], bool]


@define(eq=False)
class _PreFilterState:
    """Matching pods per topology domain, for every required term of the pod and of existing pods.

    Source: preFilterState of kube-scheduler's InterPodAffinity.
    """

    namespace_labels: Mapping[str, str]
    affinity_selector: PodSelector | None
    """Matches the pods that match every required affinity term; None if there is no such term."""
    affinity_counts: list[MatchCounts]
    """The pods that *affinity_selector* matches, per required affinity term."""
    anti_affinity_counts: list[tuple[PodSelector, MatchCounts]]
    """Per required anti-affinity term its selector and the pods that it matches."""
    existing_anti_affinity_counts: dict[str, tuple[list[MatchCounts], dict[int, int]]]
    """Per topology key the existing pods with a required anti-affinity term that matches this pod, a count for each
    distinct term; and assumed changes of the sum of these counts."""
    matches_own_affinity: bool
    """The pod matches its own required affinity terms, so that it can be the first pod of a series."""

    def clone(self) -> _PreFilterState:
        return _PreFilterState(
            self.namespace_labels,
            self.affinity_selector,
            [counts.clone() for counts in self.affinity_counts],
            [(selector, counts.clone()) for selector, counts in self.anti_affinity_counts],
            {key: (counts, changes.copy()) for key, (counts, changes) in self.existing_anti_affinity_counts.items()},
            self.matches_own_affinity,
        )

    def update(self, incoming: Pod, other: Pod, node: NodeView, delta: int) -> None:
        """Assume that *other* is (*delta* 1) or is not (-1) on *node*."""
        labels = node.labels
        for term in affinity_terms(other).required_anti_affinity:
            if term.topology_key in labels and term.matches(incoming.namespace, incoming.labels, self.namespace_labels):
                _counts, changes = self.existing_anti_affinity_counts.setdefault(term.topology_key, ([], {}))
                domain = node.label_value_id(term.topology_key)
                changes[domain] = changes.get(domain, 0) + delta
        if self.affinity_selector is not None and self.affinity_selector.matches_pod(other):
            for counts in self.affinity_counts:
                if counts.base.key in labels:
                    counts.change(node.label_value_id(counts.base.key), delta)
        for selector, counts in self.anti_affinity_counts:
            if counts.base.key in labels and selector.matches_pod(other):
                counts.change(node.label_value_id(counts.base.key), delta)


@frozen(eq=False)
class _PreScoreState:
    """Source: preScoreState of kube-scheduler's InterPodAffinity."""

    topology_score: Mapping[str, Int64Array]
    """Topology key → the score of each domain, shape (domains,)."""


class InterPodAffinity:
    """Filters by the required terms of the pod and of existing pods, scores by the preferred ones."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[InterPodAffinityArgs]] = InterPodAffinityArgs
    watches: ClassVar[tuple[str, ...]] = ("Namespace",)

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._handle = handle
        self._selectors: SizedCache[tuple[tuple[AffinityTerm, ...], int], PodSelector] = SizedCache()
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignore_existing = args.ignore_preferred_terms_of_existing_pods
        wakes_by_any = Behaviour.of(handle).any_anti_affinity_term_wakes
        self._is_separated_from: _MatchesTerms = _any_matches if wakes_by_any else _all_match

    # --- namespaces -------------------------------------------------------------------------------------------------

    def _labels_of_namespace(self, name: str) -> Mapping[str, str]:
        namespace = self._handle.object("Namespace", name)
        return {} if namespace is None else namespace.metadata.labels or {}

    def _selector(self, terms: tuple[AffinityTerm, ...]) -> PodSelector:
        """Selects the pods that match all of *terms* of the incoming pod."""
        version = self._handle.version("Namespace") if any(not t.namespace_selector.is_nothing for t in terms) else 0
        key = (terms, version)
        found = self._selectors.get(key)
        if found is None:
            found = PodSelector(tuple(map(self._matcher, terms)))
            self._selectors.keep(key, found, texts=found.texts, max_entries=_MAX_SELECTORS)
        return found

    def _matcher(self, term: AffinityTerm) -> NamespacedMatcher:
        """Matches the pods that match *term* of the incoming pod."""
        selector = term.namespace_selector
        if selector.is_nothing:
            return NamespacedMatcher(term.namespaces, term.labels)
        # Source: kube-scheduler 1.36 replaces the selector by the names it selects, but still matches it against empty
        # labels: one whose requirements are all negative matches the pods of every namespace.
        if selector.matches({}):
            return NamespacedMatcher(None, term.labels)
        selected = {
            namespace.metadata.name
            for namespace in self._handle.objects("Namespace")
            if selector.matches(namespace.metadata.labels or {})
        }
        return NamespacedMatcher(term.namespaces | selected, term.labels)

    # --- filter -----------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Count matching pods per domain; Skip if neither the pod nor an existing pod has a required term about it."""
        terms = affinity_terms(pod)
        if terms.problem:
            return unresolvable(f"parsing pod: {terms.problem}")
        existing = nodes.terms_about(pod, self._labels_of_namespace).anti_affinity
        existing_anti_affinity_counts = _counts_by_key(existing)
        if not existing_anti_affinity_counts and not terms.required_affinity and not terms.required_anti_affinity:
            return SKIP
        affinity_selector = None
        affinity_counts: list[MatchCounts] = []
        if terms.required_affinity:
            affinity_selector = self._selector(terms.required_affinity)
            affinity_counts = [
                MatchCounts(nodes.domain_counts(affinity_selector, term.topology_key))
                for term in terms.required_affinity
            ]
        anti_affinity_counts = []
        for term in terms.required_anti_affinity:
            selector = self._selector((term,))
            anti_affinity_counts.append((selector, MatchCounts(nodes.domain_counts(selector, term.topology_key))))
        found = _PreFilterState(
            self._labels_of_namespace(pod.namespace),
            affinity_selector,
            affinity_counts,
            anti_affinity_counts,
            existing_anti_affinity_counts,
            affinity_selector is not None and affinity_selector.matches_pod(pod),
        )
        state.write(_FILTER_KEY, found)
        return None

    @hookimpl
    def add_pod(self, pod: Pod, added: Pod, node: NodeView, state: CycleState) -> None:
        """Count *added* in the node's domains."""
        state.read(_FILTER_KEY).update(pod, added, node, 1)

    @hookimpl
    def remove_pod(self, pod: Pod, removed: Pod, node: NodeView, state: CycleState) -> None:
        """Do not count *removed* in the node's domains."""
        state.read(_FILTER_KEY).update(pod, removed, node, -1)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """The reason of a node is, in this order: affinity, anti-affinity, anti-affinity of existing pods."""
        pre_filtered: _PreFilterState = state.read(_FILTER_KEY)
        by_key: dict[str, CodeArray] = {}
        for key, (existing, changes) in pre_filtered.existing_anti_affinity_counts.items():
            _keep_highest(by_key, key, _codes_where(_sum(existing, changes, key, nodes) > 0, _EXISTING))
        for _selector, counts in pre_filtered.anti_affinity_counts:
            _keep_highest(by_key, counts.base.key, _codes_where(counts.counts(nodes) > 0, _ANTI_AFFINITY))
        is_first = pre_filtered.matches_own_affinity and not any(c.total for c in pre_filtered.affinity_counts)
        for counts in pre_filtered.affinity_counts:
            if is_first:
                codes_of_domains = np.zeros(len(nodes.label_vocabulary(counts.base.key)), dtype=np.int8)
            else:
                codes_of_domains = _codes_where(counts.counts(nodes) <= 0, _AFFINITY)
            codes_of_domains[0] = _AFFINITY
            _keep_highest(by_key, counts.base.key, codes_of_domains)
        codes: CodeArray | None = None
        for key, table in by_key.items():
            found = table[nodes.label_values(key)]
            codes = found if codes is None else np.maximum(codes, found)
        return Verdicts(np.zeros(len(nodes), dtype=np.int8) if codes is None else codes, _STATUSES.__getitem__)

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each required term of the pod, and the anti-affinity of running pods."""
        pre_filtered: _PreFilterState | None = state.get(_FILTER_KEY)
        if pre_filtered is None:
            return
        is_first = pre_filtered.matches_own_affinity and not any(c.total for c in pre_filtered.affinity_counts)
        stated, selector = stated_terms(pod, "pod_affinity"), pre_filtered.affinity_selector
        if selector is not None:
            for term, counts in zip(stated, pre_filtered.affinity_counts, strict=True):
                yield affinity_clause(pod, nodes, term, selector, counts, is_first=is_first, is_only=len(stated) == 1)
        for term, (matching, counts) in zip(
            stated_terms(pod, "pod_anti_affinity"), pre_filtered.anti_affinity_counts, strict=True
        ):
            yield anti_affinity_clause(pod, nodes, term, matching, counts)
        for key, (existing, assumed) in pre_filtered.existing_anti_affinity_counts.items():
            of_domain = _sum(existing, assumed, key, nodes)
            yield existing_clause(pod, nodes, key, of_domain, pre_filtered.namespace_labels)

    # --- score ------------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Add up the scores per domain; Skip if no pod matches a preferred term, or has one that matches this pod."""
        terms = affinity_terms(pod)
        preferred = terms.preferred_affinity + terms.preferred_anti_affinity
        if self._ignore_existing and not preferred:
            return SKIP
        topology_score: dict[str, Int64Array] = {}
        has_any = False
        for term in preferred:
            pods = nodes.domain_counts(self._selector((term,)), term.topology_key)
            if pods.total:
                has_any = True
                sign = 1 if term.kind is TermKind.PREFERRED_AFFINITY else -1
                _add(topology_score, term.topology_key, pods.counts * (sign * term.weight))
        for existing in nodes.terms_about(pod, self._labels_of_namespace).ranking:
            weight = self._weight(existing.term)
            pods = existing.by_domain
            if weight is not None and pods.total:
                has_any = True
                _add(topology_score, existing.term.topology_key, pods.counts * weight)
        if not has_any:
            return SKIP
        state.write(_SCORE_KEY, _PreScoreState(topology_score))
        return None

    def _weight(self, term: AffinityTerm) -> int | None:
        """The weight of each existing pod with *term*; None if such pods do not count."""
        if term.kind is TermKind.REQUIRED_AFFINITY:
            return self._hard_weight or None
        return term.weight if term.kind is TermKind.PREFERRED_AFFINITY else -term.weight

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """The sum of the scores of the node's domains; may be negative."""
        pre_scored: _PreScoreState = state.read(_SCORE_KEY)
        scores = np.zeros(len(nodes), dtype=np.int64)
        for key, table in pre_scored.topology_score.items():
            scores += table[nodes.label_values(key)]
        return scores

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """Map the lowest score to 0 and the highest to 100; equal scores become 0."""
        if len(scores) == 0:
            return scores
        least = int(scores.min())
        span = int(scores.max()) - least
        if span == 0:
            return np.zeros_like(scores)
        if span < len(scores):  # fewer divisions: one for each possible score instead of one for each node
            table = (MAX_SCORE * (np.arange(span + 1) / float(span))).astype(np.int64)
            return table[scores - least]
        return (MAX_SCORE * ((scores - least) / float(span))).astype(np.int64)

    # --- events -----------------------------------------------------------------------------------------------------

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Pods are added, deleted or change labels; nodes are added or change labels."""
        return [
            on(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, self._pods_changed),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, _domains_changed),
        ]

    def _pods_changed(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        return _pods_changed(self._is_separated_from, pod, old, new)


def _counts_by_key(found: Iterable[TermCounts]) -> dict[str, tuple[list[MatchCounts], dict[int, int]]]:
    by_key: dict[str, tuple[list[MatchCounts], dict[int, int]]] = {}
    for existing in found:
        pods = existing.by_domain
        if pods.total:
            by_key.setdefault(existing.term.topology_key, ([], {}))[0].append(MatchCounts(pods))
    return by_key


def _codes_where(fails: BoolArray, code: int) -> CodeArray:
    """*code* where it fails, else 0; int8, because nearly all the time goes into copying them."""
    return fails.view(np.int8) * np.int8(code)


def _keep_highest(by_key: dict[str, CodeArray], key: str, codes: CodeArray) -> None:
    """Merge *codes*, shape (domains,), into those of *key*: the higher code of each domain is kept."""
    known = by_key.get(key)
    by_key[key] = codes if known is None else np.maximum(known, codes)


def _sum(match_counts: list[MatchCounts], changes: Mapping[int, int], key: str, nodes: NodeColumns) -> Int64Array:
    if len(match_counts) == 1 and not changes:
        return match_counts[0].counts(nodes)
    pods = np.zeros(len(nodes.label_vocabulary(key)), dtype=np.int64)
    for counts in match_counts:
        pods += counts.counts(nodes)
    for domain, delta in changes.items():
        pods[domain] += delta
    return pods


def _add(topology_score: dict[str, Int64Array], key: str, scores: Int64Array) -> None:
    known = topology_score.get(key)
    topology_score[key] = scores if known is None else known + scores


def _terms_or_raise(pod: Pod) -> PodTerms:
    terms = affinity_terms(pod)
    if terms.problem:
        raise SelectorError(terms.problem)
    return terms


def _all_match(terms: tuple[AffinityTerm, ...], other: Pod) -> bool:
    # Hints do not look up namespaces: a namespace selector is matched against empty labels.
    return bool(terms) and all(term.matches(other.namespace, other.labels, {}) for term in terms)


def _queue_if(worthwhile: bool) -> Hint:
    return Hint.QUEUE if worthwhile else Hint.SKIP


def _any_matches(terms: tuple[AffinityTerm, ...], other: Pod) -> bool:
    return any(term.matches(other.namespace, other.labels, {}) for term in terms)


def _pods_changed(separated: _MatchesTerms, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    """Whether a change of another pod helps *pod*; *separated* says whether its anti-affinity is about that pod."""
    other = new if new is not None else old
    assert other is not None
    if old is not None and new is not None and other.uid == pod.uid:
        return Hint.QUEUE
    if not (other.node_name or other.nominated_node_name):
        return Hint.SKIP
    terms = _terms_or_raise(pod)
    affinity, anti_affinity = terms.required_affinity, terms.required_anti_affinity
    if old is not None and new is not None:
        if _all_match(affinity, new) and not _all_match(affinity, old):
            return Hint.QUEUE
        return _queue_if(separated(anti_affinity, old) and not separated(anti_affinity, new))
    if new is not None:
        return _queue_if(_all_match(affinity, new))
    assert old is not None
    return _queue_if(separated(anti_affinity, old) or separated(affinity_terms(old).required_anti_affinity, pod))


def _domains_changed(pod: Pod, old: Node | None, new: Node) -> Hint:
    terms = _terms_or_raise(pod)
    for term in terms.required_affinity:
        value = new.labels.get(term.topology_key)
        if value is not None and (old is None or old.labels.get(term.topology_key) != value):
            return Hint.QUEUE
    for term in terms.required_anti_affinity:
        if old is None:
            return Hint.QUEUE
        before = old.labels.get(term.topology_key)
        if before is not None and before != new.labels.get(term.topology_key):
            return Hint.QUEUE
    return Hint.SKIP
