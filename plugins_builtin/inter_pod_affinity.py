"""InterPodAffinity: pods near to some pods and away from others, as they and the others wish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
from attrs import define, frozen

from plugins_builtin._tally import Tally
from trio_sched.plugin_api import (
    SKIP,
    Action,
    AffinityTerm,
    BoolArray,
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

NAME = "InterPodAffinity"
REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
MAX_SCORE = 100
_MOST_SELECTORS = 4096

_AFFINITY, _ANTI_AFFINITY, _EXISTING = 3, 2, 1
"""What counts where several say no is the highest."""
_STATUSES = {
    _AFFINITY: unresolvable(REASON_AFFINITY),
    _ANTI_AFFINITY: unschedulable(REASON_ANTI_AFFINITY),
    _EXISTING: unschedulable(REASON_EXISTING),
}
_FILTER_KEY, _SCORE_KEY = (NAME, "filter"), (NAME, "score")


@define(eq=False)
class _Counted:
    """What decides where a pod can go: pods per domain, for each term concerned."""

    terms: PodTerms
    namespace_labels: Mapping[str, str]
    wanted: PodSelector | None
    """The pods that every required affinity term means."""
    near: list[Tally]
    """Those pods, per required affinity term."""
    far: list[tuple[PodSelector, Tally]]
    """Per required anti-affinity term the pods that it means."""
    unwelcome: dict[str, tuple[list[Tally], dict[int, int]]]
    """Per topology key the pods that do not want this one near, by their terms; and changes being tried out."""
    is_first: bool
    """The pod meets its own affinity, so that it may be the first of its kind."""

    def clone(self) -> _Counted:
        return _Counted(
            self.terms,
            self.namespace_labels,
            self.wanted,
            [tally.clone() for tally in self.near],
            [(selector, tally.clone()) for selector, tally in self.far],
            {key: (tallies, changes.copy()) for key, (tallies, changes) in self.unwelcome.items()},
            self.is_first,
        )

    def count(self, other: Pod, node: NodeView, delta: int, incoming: Pod) -> None:
        """*other* is (*delta* 1) or is not (-1) on *node*."""
        labels = node.labels
        for term in affinity_terms(other).required_anti_affinity:
            if term.topology_key in labels and term.matches(incoming.namespace, incoming.labels, self.namespace_labels):
                _tallies, changes = self.unwelcome.setdefault(term.topology_key, ([], {}))
                domain = node.label_value_id(term.topology_key)
                changes[domain] = changes.get(domain, 0) + delta
        if self.wanted is not None and self.wanted.matches_pod(other):
            for tally in self.near:
                if tally.base.key in labels:
                    tally.change(node.label_value_id(tally.base.key), delta)
        for selector, tally in self.far:
            if tally.base.key in labels and selector.matches_pod(other):
                tally.change(node.label_value_id(tally.base.key), delta)


@frozen(eq=False)
class _Points:
    """Points per topology key and domain."""

    tables: Mapping[str, Int64Array]


class InterPodAffinity:
    """Filters by required terms, of the pod and of those on nodes; ranks by preferred ones."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[InterPodAffinityArgs]] = InterPodAffinityArgs
    watches: ClassVar[tuple[str, ...]] = ("Namespace",)

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._handle = handle
        self._selectors: dict[tuple[tuple[AffinityTerm, ...], int], PodSelector] = {}
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignore_existing = args.ignore_preferred_terms_of_existing_pods

    # --- namespaces -------------------------------------------------------------------------------------------------

    def _labels_of_namespace(self, name: str) -> Mapping[str, str]:
        namespace = self._handle.object("Namespace", name)
        return {} if namespace is None else namespace.metadata.labels or {}

    def _pods_meant(self, terms: tuple[AffinityTerm, ...]) -> PodSelector:
        """The pods that all of *terms* mean."""
        version = self._handle.version("Namespace") if any(not t.namespace_selector.is_nothing for t in terms) else 0
        key = (terms, version)
        found = self._selectors.get(key)
        if found is None:
            if len(self._selectors) >= _MOST_SELECTORS:
                self._selectors.clear()
            found = self._selectors[key] = PodSelector(tuple(map(self._meant, terms)))
        return found

    def _meant(self, term: AffinityTerm) -> NamespacedMatcher:
        """The pods that a term of the pod to be placed means."""
        selector = term.namespace_selector
        if selector.is_nothing:
            return NamespacedMatcher(term.namespaces, term.labels)
        # Source: kube-scheduler 1.36 replaces the selector by the names it selects, but goes on asking it with no
        # labels: one that only says what labels must not be there means the pods of every namespace.
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
        """Count the pods that matter per domain; nothing to do if nobody requires anything."""
        terms = affinity_terms(pod)
        if terms.problem:
            return unresolvable(f"parsing pod: {terms.problem}")
        against = nodes.terms_about(pod, self._labels_of_namespace).anti_affinity
        unwelcome = _tallies_by_key(against)
        if not unwelcome and not terms.required_affinity and not terms.required_anti_affinity:
            return SKIP
        near: list[Tally] = []
        wanted = None
        if terms.required_affinity:
            wanted = self._pods_meant(terms.required_affinity)
            near = [Tally(nodes.domain_counts(wanted, term.topology_key)) for term in terms.required_affinity]
        far = []
        for term in terms.required_anti_affinity:
            selector = self._pods_meant((term,))
            far.append((selector, Tally(nodes.domain_counts(selector, term.topology_key))))
        is_first = wanted is not None and wanted.matches_pod(pod)
        namespace_labels = self._labels_of_namespace(pod.namespace)
        state.write(_FILTER_KEY, _Counted(terms, namespace_labels, wanted, near, far, unwelcome, is_first))
        return None

    @hookimpl
    def add_pod(self, pod: Pod, added: Pod, node: NodeView, state: CycleState) -> None:
        """One more in the node's domains."""
        state.read(_FILTER_KEY).count(added, node, 1, pod)

    @hookimpl
    def remove_pod(self, pod: Pod, removed: Pod, node: NodeView, state: CycleState) -> None:
        """One fewer in the node's domains."""
        state.read(_FILTER_KEY).count(removed, node, -1, pod)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """First what the pod wants near, then what it wants far, then who does not want it near."""
        counted: _Counted = state.read(_FILTER_KEY)
        by_key: dict[str, CodeArray] = {}
        for key, (tallies, changes) in counted.unwelcome.items():
            _raise(by_key, key, _where(_sum(tallies, changes, key, nodes) > 0, _EXISTING))
        for _selector, tally in counted.far:
            _raise(by_key, tally.base.key, _where(tally.counts(nodes) > 0, _ANTI_AFFINITY))
        is_first = counted.is_first and not any(tally.total for tally in counted.near)
        for tally in counted.near:
            if is_first:
                fails = np.zeros(len(nodes.label_vocabulary(tally.base.key)), dtype=np.int8)
            else:
                fails = _where(tally.counts(nodes) <= 0, _AFFINITY)
            fails[0] = _AFFINITY
            _raise(by_key, tally.base.key, fails)
        codes: CodeArray | None = None
        for key, table in by_key.items():
            found = table[nodes.label_values(key)]
            codes = found if codes is None else np.maximum(codes, found)
        return Verdicts(np.zeros(len(nodes), dtype=np.int8) if codes is None else codes, _STATUSES.__getitem__)

    # --- score ------------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Add up the points per domain; nothing to do if nobody prefers anything."""
        terms = affinity_terms(pod)
        preferred = terms.preferred_affinity + terms.preferred_anti_affinity
        if self._ignore_existing and not preferred:
            return SKIP
        tables: dict[str, Int64Array] = {}
        has_any = False
        for term in preferred:
            pods = nodes.domain_counts(self._pods_meant((term,)), term.topology_key)
            if pods.total:
                has_any = True
                sign = 1 if term.kind is TermKind.PREFERRED_AFFINITY else -1
                _add(tables, term.topology_key, pods.counts * (sign * term.weight))
        for existing in nodes.terms_about(pod, self._labels_of_namespace).ranking:
            weight = self._weight(existing.term)
            pods = existing.by_domain
            if weight is not None and pods.total:
                has_any = True
                _add(tables, existing.term.topology_key, pods.counts * weight)
        if not has_any:
            return SKIP
        state.write(_SCORE_KEY, _Points(tables))
        return None

    def _weight(self, term: AffinityTerm) -> int | None:
        """What each pod on a node with *term* is worth; None if it does not count."""
        if term.kind is TermKind.REQUIRED_AFFINITY:
            return self._hard_weight or None
        return term.weight if term.kind is TermKind.PREFERRED_AFFINITY else -term.weight

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """The points of the node's domains; may be negative."""
        points: _Points = state.read(_SCORE_KEY)
        scores = np.zeros(len(nodes), dtype=np.int64)
        for key, table in points.tables.items():
            scores += table[nodes.label_values(key)]
        return scores

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """The best node becomes 100, the worst 0; if all are the same, all become 0."""
        if len(scores) == 0:
            return scores
        least = int(scores.min())
        span = int(scores.max()) - least
        if span == 0:
            return np.zeros_like(scores)
        if span < len(scores):  # each possible score once is less than every node
            table = (MAX_SCORE * (np.arange(span + 1) / float(span))).astype(np.int64)
            return table[scores - least]
        return (MAX_SCORE * ((scores - least) / float(span))).astype(np.int64)

    # --- what may free a pod ----------------------------------------------------------------------------------------

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Pods that are meant come, go or change their labels; nodes come or change theirs."""
        return [
            on(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, _pods_changed),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, _domains_changed),
        ]


def _tallies_by_key(found: Iterable[TermCounts]) -> dict[str, tuple[list[Tally], dict[int, int]]]:
    by_key: dict[str, tuple[list[Tally], dict[int, int]]] = {}
    for existing in found:
        pods = existing.by_domain
        if pods.total:
            by_key.setdefault(existing.term.topology_key, ([], {}))[0].append(Tally(pods))
    return by_key


def _where(fails: BoolArray, code: int) -> CodeArray:
    """*code* where it fails, else 0; bytes, because nearly all the time goes into moving them."""
    return fails.view(np.int8) * np.int8(code)


def _raise(by_key: dict[str, CodeArray], key: str, codes: CodeArray) -> None:
    """Let *codes*, one per domain of *key*, count where they are higher than what is known."""
    known = by_key.get(key)
    by_key[key] = codes if known is None else np.maximum(known, codes)


def _sum(tallies: list[Tally], changes: Mapping[int, int], key: str, nodes: NodeColumns) -> Int64Array:
    if len(tallies) == 1 and not changes:
        return tallies[0].counts(nodes)
    pods = np.zeros(len(nodes.label_vocabulary(key)), dtype=np.int64)
    for tally in tallies:
        pods += tally.counts(nodes)
    for domain, delta in changes.items():
        pods[domain] += delta
    return pods


def _add(tables: dict[str, Int64Array], key: str, points: Int64Array) -> None:
    known = tables.get(key)
    tables[key] = points if known is None else known + points


def _terms_or_raise(pod: Pod) -> PodTerms:
    terms = affinity_terms(pod)
    if terms.problem:
        raise SelectorError(terms.problem)
    return terms


def _all_match(terms: tuple[AffinityTerm, ...], other: Pod) -> bool:
    # Hints know no namespace labels: a selector of namespaces that wants some finds none.
    return bool(terms) and all(term.matches(other.namespace, other.labels, {}) for term in terms)


def _queue_if(worthwhile: bool) -> Hint:
    return Hint.QUEUE if worthwhile else Hint.SKIP


def _pods_changed(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    other = new if new is not None else old
    assert other is not None
    if old is not None and new is not None and other.uid == pod.uid:
        return Hint.QUEUE
    if not (other.node_name or other.nominated_node_name):
        return Hint.SKIP
    terms = _terms_or_raise(pod)
    near, far = terms.required_affinity, terms.required_anti_affinity
    if old is not None and new is not None:
        if _all_match(near, new) and not _all_match(near, old):
            return Hint.QUEUE
        return _queue_if(_all_match(far, old) and not _all_match(far, new))
    if new is not None:
        return _queue_if(_all_match(near, new))
    assert old is not None
    return _queue_if(_all_match(far, old) or _all_match(affinity_terms(old).required_anti_affinity, pod))


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
