"""The affinity terms of pods on nodes, each distinct one counted once per topology domain.

There are far fewer distinct terms than pods, so an incoming pod is compared with terms, never with pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from trio_sched.objects.pod import Pod
from trio_sched.snapshot.labels.affinity_terms import AffinityTerm, TermKind, affinity_terms
from trio_sched.snapshot.pod_counts.domain_counts import DomainCounts, DomainCountsBudget, RowCounts
from trio_sched.snapshot.pod_counts.pod_classes import class_key
from trio_sched.snapshot.pod_info import PodsByRow, each_pod
from trio_sched.snapshot.sized_cache import SizedCache
from trio_sched.snapshot.topology_columns import Topology

_MAX_MATCHES = 4096


class TermCounts:
    """A term of pods on nodes, and how many pods have it."""

    __slots__ = ("counts", "term")

    def __init__(self, term: AffinityTerm, counts: RowCounts) -> None:
        self.term = term
        self.counts = counts

    @property
    def by_domain(self) -> DomainCounts:
        """Pods with this term per value of its topology key."""
        return self.counts.by_domain(self.term.topology_key)


@frozen(eq=False)
class MatchingTerms:
    """The terms of pods on nodes that match an incoming pod."""

    anti_affinity: tuple[TermCounts, ...]
    """Required anti-affinity: rules out the domains that the pods with these terms are in."""
    ranking: tuple[TermCounts, ...]
    """Required and preferred affinity, preferred anti-affinity: these count for scores only."""


_NO_MATCHING_TERMS = MatchingTerms((), ())


class TermIndex:
    """The distinct terms of the pods on nodes. Pods are indexed from the first `matching` on.

    Args:
        topology: the labels of the nodes, by row.
        budget: bounds the size of the counts per domain.
        pods: the pods of each row; read once, when indexing starts. From then on *add* and *remove* report changes.
    """

    __slots__ = (
        "_budget",
        "_by_namespace",
        "_by_selector",
        "_is_active",
        "_matches",
        "_matches_version",
        "_pods",
        "_terms",
        "_topology",
        "_version",
    )

    def __init__(self, topology: Topology, budget: DomainCountsBudget, pods: PodsByRow) -> None:
        self._topology = topology
        self._budget = budget
        self._pods = pods
        self._is_active = False
        self._terms: dict[AffinityTerm, TermCounts] = {}
        self._by_namespace: dict[str, dict[AffinityTerm, TermCounts]] = {}
        """Terms that name their namespaces, by each of these."""
        self._by_selector: dict[AffinityTerm, TermCounts] = {}
        """Terms that select namespaces by label."""
        self._version = 0
        """Counts changes of the set of distinct terms."""
        self._matches: SizedCache[object, MatchingTerms] = SizedCache()
        self._matches_version = 0

    def matching(self, pod: Pod, namespace_labels: Callable[[str], Mapping[str, str]]) -> MatchingTerms:
        """The terms that match *pod*."""
        if not self._is_active:
            self._is_active = True
            for row, running in each_pod(self._pods):
                self.add(row, running)
        if not self._terms:
            return _NO_MATCHING_TERMS
        labels = namespace_labels(pod.namespace) if self._by_selector else {}
        key = (class_key(pod), tuple(labels.items()))
        if self._matches_version != self._version:
            self._matches.clear()
            self._matches_version = self._version
        found = self._matches.get(key)
        if found is not None:
            return found
        candidates = [*self._by_namespace.get(pod.namespace, {}).values(), *self._by_selector.values()]
        matches = [one for one in dict.fromkeys(candidates) if one.term.matches(pod.namespace, pod.labels, labels)]
        anti = tuple(one for one in matches if one.term.kind is TermKind.REQUIRED_ANTI_AFFINITY)
        ranking = tuple(one for one in matches if one.term.kind is not TermKind.REQUIRED_ANTI_AFFINITY)
        matching = MatchingTerms(anti, ranking) if matches else _NO_MATCHING_TERMS
        texts = 1 + len(pod.labels) + len(labels) + len(matches)
        return self._matches.keep(key, matching, texts=texts, max_entries=_MAX_MATCHES)

    def add(self, row: int, pod: Pod) -> None:
        """*pod* is on *row* now."""
        if not self._is_active or pod.spec.affinity is None:
            return
        for term in affinity_terms(pod).all:
            found = self._terms.get(term)
            if found is None:
                found = self._terms[term] = TermCounts(term, RowCounts(self._topology, self._budget))
                for terms in self._lists_with(term):
                    terms[term] = found
                self._version += 1
            found.counts.change(row, 1)

    def remove(self, row: int, pod: Pod) -> None:
        """*pod* is on *row* no longer."""
        if not self._is_active or pod.spec.affinity is None:
            return
        for term in affinity_terms(pod).all:
            found = self._terms[term]
            found.counts.change(row, -1)
            if found.counts.is_zero:
                del self._terms[term]
                found.counts.close()
                for terms in self._lists_with(term):
                    del terms[term]
                for namespace in term.namespaces:
                    if not self._by_namespace[namespace]:
                        del self._by_namespace[namespace]
                self._version += 1

    def _lists_with(self, term: AffinityTerm) -> list[dict[AffinityTerm, TermCounts]]:
        """Where `matching` looks for *term*."""
        named = [self._by_namespace.setdefault(namespace, {}) for namespace in term.namespaces]
        return named if term.namespace_selector.is_nothing else [*named, self._by_selector]
