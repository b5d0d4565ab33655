"""The required anti-affinities of all pods: which other pods they are about, and since when they are known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import define, field

from trio_sched.objects.pod import Pod
from trio_sched.snapshot.labels.affinity_terms import AffinityTerm, affinity_terms
from trio_sched.snapshot.labels.label_selection import NOTHING

_MAX_ANSWERS: Final = 1 << 14
"""Pods of a workload have equal labels, so few answers are asked for again and again."""

_Labels = tuple[str, frozenset[tuple[str, str]]]
"""The namespace and the labels of a pod."""


@define(eq=False)
class RepellingTerms:
    """The terms of required anti-affinity of the pods that were seen, each once."""

    since: dict[AffinityTerm, int] = field(factory=dict, init=False)
    """Each of them → the revision at which it was seen first, without a gap since."""
    agreed: set[AffinityTerm] = field(factory=set, init=False)
    """Those that every holder of a shard has seen; only the holder of the lane finds out."""
    _of_pod: dict[str, tuple[AffinityTerm, ...]] = field(factory=dict, init=False)
    """By UID: pods that have such terms."""
    _pods: dict[AffinityTerm, int] = field(factory=dict, init=False)
    """How many pods have each of them."""
    _by_namespace: dict[str, dict[AffinityTerm, None]] = field(factory=dict, init=False)
    _everywhere: dict[AffinityTerm, None] = field(factory=dict, init=False)
    """Those that select namespaces by labels: taken to be about pods of all namespaces."""
    _answers: dict[_Labels, bool] = field(factory=dict, init=False)

    def add(self, pod: Pod, revision: int) -> bool:
        """*pod* was seen at *revision*; returns whether it has a term that no other pod had."""
        terms = affinity_terms(pod).required_anti_affinity
        if self._of_pod.get(pod.uid, ()) == terms:
            return False
        self.remove(pod)
        self._of_pod[pod.uid] = terms
        new = [term for term in dict.fromkeys(terms) if term not in self._pods]
        for term in terms:
            self._pods[term] = self._pods.get(term, 0) + 1
        for term in new:
            self.since[term] = revision
            for place in self._places(term):
                place[term] = None
        if new:
            self._answers.clear()
        return bool(new)

    def remove(self, pod: Pod) -> bool:
        """*pod* is gone; returns whether a term is gone with it."""
        gone = False
        for term in self._of_pod.pop(pod.uid, ()):
            self._pods[term] -= 1
            if not self._pods[term]:
                gone = True
                del self._pods[term], self.since[term]
                self.agreed.discard(term)
                for place in self._places(term):
                    del place[term]
        if gone:
            self._answers.clear()
            self._by_namespace = {name: terms for name, terms in self._by_namespace.items() if terms}
        return gone

    def selects(self, pod: Pod) -> bool:
        """Whether some pod must not be where *pod* is."""
        if not self.since:
            return False
        labels = pod.metadata.labels or {}
        key = pod.namespace, frozenset(labels.items())
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers.clear()
            terms = (*self._by_namespace.get(pod.namespace, ()), *self._everywhere)
            found = self._answers[key] = any(term.labels.matches(labels) for term in terms)
        return found

    def are_agreed(self, pod: Pod) -> bool:
        """Whether every holder of a shard knows what *pod* must not be beside."""
        terms = affinity_terms(pod).required_anti_affinity
        return not terms or all(term in self.agreed for term in terms)

    def open(self) -> dict[AffinityTerm, int]:
        """Those that are not agreed on."""
        return {term: since for term, since in self.since.items() if term not in self.agreed}

    def agree(self, terms: Iterable[tuple[AffinityTerm, int]]) -> bool:
        """Every holder has seen *terms*, which are known since these revisions; returns whether that is news."""
        before = len(self.agreed)
        self.agreed.update(term for term, since in terms if self.since.get(term) == since)
        return len(self.agreed) > before

    def _places(self, term: AffinityTerm) -> list[dict[AffinityTerm, None]]:
        if term.namespace_selector != NOTHING:
            return [self._everywhere]
        return [self._by_namespace.setdefault(name, {}) for name in term.namespaces]
