"""What pods on nodes want of pods to come: their affinity terms, each distinct one counted once per topology domain.

There are far fewer distinct terms than pods, so a pod to be placed is compared with terms, and the counts do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

import msgspec
from attrs import field, frozen

from trio_sched.objects.affinity import PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.domain_counts import DomainCounts, RowCounts
from trio_sched.snapshot.label_selection import NOTHING, LabelMatcher, SelectorError, compile_selector
from trio_sched.snapshot.pod_index import class_key

if TYPE_CHECKING:
    from trio_sched.snapshot.node_table import NodeTable

_KEEP_PARSED = 4096
_KEEP_MATCHES = 4096


class TermKind(Enum):
    """Where in a pod's affinity a term stands."""

    REQUIRED_AFFINITY = "requiredAffinityTerms"
    REQUIRED_ANTI_AFFINITY = "requiredAntiAffinityTerms"
    PREFERRED_AFFINITY = "preferredAffinityTerms"
    PREFERRED_ANTI_AFFINITY = "preferredAntiAffinityTerms"


@frozen(cache_hash=True)
class AffinityTerm:
    """One term of pod affinity or anti-affinity, compiled."""

    kind: TermKind
    topology_key: str
    labels: LabelMatcher
    namespaces: frozenset[str]
    """The namespaces named; the pod's own if it names and selects none."""
    namespace_selector: LabelMatcher = NOTHING
    weight: int = 0
    """Of preferred terms."""

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod with *labels* in *namespace*, which has *namespace_labels*, is meant."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.labels.matches(labels)


@frozen(eq=False)
class PodTerms:
    """The terms of one pod; a list that does not parse is empty, and *problem* says why."""

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[AffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
    problem: str = ""
    all: tuple[AffinityTerm, ...] = field(init=False)
    """All of them."""

    def __attrs_post_init__(self) -> None:
        every = (
            self.required_affinity + self.required_anti_affinity + self.preferred_affinity
        ) + self.preferred_anti_affinity
        object.__setattr__(self, "all", every)


NO_TERMS = PodTerms()
_parsed: dict[tuple[str, bytes], PodTerms] = {}
_encode = msgspec.json.Encoder().encode


def affinity_terms(pod: Pod) -> PodTerms:
    """The terms of *pod*; pods that want the same in the same namespace share one object."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    key = pod.namespace, _encode((affinity.pod_affinity, affinity.pod_anti_affinity))
    found = _parsed.get(key)
    if found is None:
        if len(_parsed) >= _KEEP_PARSED:
            _parsed.clear()
        found = _parsed[key] = _parse(pod)
    return found


def _parse(pod: Pod) -> PodTerms:
    affinity = pod.spec.affinity
    assert affinity is not None
    near, far = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    problems: list[str] = []

    def parse(
        kind: TermKind, terms: Iterable[PodAffinityTerm | WeightedPodAffinityTerm] | None
    ) -> tuple[AffinityTerm, ...]:
        try:
            return tuple(_compile(kind, term, pod.namespace) for term in terms or ())
        except SelectorError as problem:
            problems.append(f"{kind.value}: {problem}")
            return ()

    required_near = parse(TermKind.REQUIRED_AFFINITY, near.required_during_scheduling_ignored_during_execution)
    required_far = parse(TermKind.REQUIRED_ANTI_AFFINITY, far.required_during_scheduling_ignored_during_execution)
    preferred_near = parse(TermKind.PREFERRED_AFFINITY, near.preferred_during_scheduling_ignored_during_execution)
    preferred_far = parse(TermKind.PREFERRED_ANTI_AFFINITY, far.preferred_during_scheduling_ignored_during_execution)
    problem = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""
    return PodTerms(required_near, required_far, preferred_near, preferred_far, problem)


def _compile(kind: TermKind, given: PodAffinityTerm | WeightedPodAffinityTerm, namespace: str) -> AffinityTerm:
    term = given.pod_affinity_term if isinstance(given, WeightedPodAffinityTerm) else given
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        kind=kind,
        topology_key=term.topology_key,
        labels=compile_selector(term.label_selector),
        namespaces=frozenset((namespace,)) if own else frozenset(term.namespaces or ()),
        namespace_selector=compile_selector(term.namespace_selector),
        weight=given.weight if isinstance(given, WeightedPodAffinityTerm) else 0,
    )


class TermCounts:
    """A term of pods on nodes, and how many pods with it there are."""

    __slots__ = ("counts", "term")

    def __init__(self, term: AffinityTerm, table: NodeTable) -> None:
        self.term = term
        self.counts = RowCounts(table)

    @property
    def by_domain(self) -> DomainCounts:
        """Pods with this term per value of its topology key."""
        return self.counts.by_domain(self.term.topology_key)


@frozen(eq=False)
class MatchingTerms:
    """The terms of pods on nodes that mean a certain pod."""

    anti_affinity: tuple[TermCounts, ...]
    """Required anti-affinity: these pods keep it away."""
    ranking: tuple[TermCounts, ...]
    """All the others: these pods draw it near, or would rather not."""


_NOBODY = MatchingTerms((), ())


class TermIndex:
    """The distinct terms of the pods in one table. Nothing is indexed before somebody asks."""

    __slots__ = ("_anywhere", "_in_namespace", "_is_active", "_matches", "_table", "_terms", "_version")

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._is_active = False
        self._terms: dict[AffinityTerm, TermCounts] = {}
        self._in_namespace: dict[str, dict[AffinityTerm, TermCounts]] = {}
        """Terms that name their namespaces, by each of these."""
        self._anywhere: dict[AffinityTerm, TermCounts] = {}
        """Terms that select namespaces by label."""
        self._version = 0
        """Counts how often a term came or went."""
        self._matches: dict[object, tuple[int, MatchingTerms]] = {}

    def matching(self, pod: Pod, namespace_labels: Callable[[str], Mapping[str, str]]) -> MatchingTerms:
        """The terms that mean *pod*."""
        if not self._is_active:
            self._activate()
        if not self._terms:
            return _NOBODY
        labels = namespace_labels(pod.namespace) if self._anywhere else {}
        key = (class_key(pod), tuple(labels.items()))
        found = self._matches.get(key)
        if found is not None and found[0] == self._version:
            return found[1]
        candidates = [*self._in_namespace.get(pod.namespace, {}).values(), *self._anywhere.values()]
        meant = [one for one in dict.fromkeys(candidates) if one.term.matches(pod.namespace, pod.labels, labels)]
        anti = tuple(one for one in meant if one.term.kind is TermKind.REQUIRED_ANTI_AFFINITY)
        ranking = tuple(one for one in meant if one.term.kind is not TermKind.REQUIRED_ANTI_AFFINITY)
        matching = MatchingTerms(anti, ranking) if meant else _NOBODY
        if len(self._matches) >= _KEEP_MATCHES:
            self._matches.clear()
        self._matches[key] = (self._version, matching)
        return matching

    def _activate(self) -> None:
        self._is_active = True
        for row, pods in enumerate(self._table.pods):
            for placed in pods.values():
                self.add(row, placed.pod)

    def add(self, row: int, pod: Pod) -> None:
        """*pod* is on *row* now."""
        if not self._is_active or pod.spec.affinity is None:
            return
        for term in affinity_terms(pod).all:
            found = self._terms.get(term)
            if found is None:
                found = self._terms[term] = TermCounts(term, self._table)
                for terms in self._homes(term):
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
            if not found.counts.rows:
                del self._terms[term]
                for terms in self._homes(term):
                    del terms[term]
                self._version += 1

    def _homes(self, term: AffinityTerm) -> list[dict[AffinityTerm, TermCounts]]:
        homes = [self._in_namespace.setdefault(namespace, {}) for namespace in term.namespaces]
        return homes if term.namespace_selector.is_nothing else [*homes, self._anywhere]
