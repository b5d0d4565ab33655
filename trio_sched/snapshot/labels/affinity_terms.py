"""The terms of pod affinity and anti-affinity, compiled once: which pods they match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from attrs import field, frozen

from trio_sched.documents.json_values import encode
from trio_sched.objects.affinity import PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.labels.label_selection import NOTHING, LabelMatcher, SelectorError, compile_selector
from trio_sched.snapshot.sized_cache import SizedCache

_MAX_PARSED = 4096


class TermKind(Enum):
    """The list of a pod's affinity that a term is in."""

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
    """The namespaces it names; the namespace of its pod if it names and selects none."""
    namespace_selector: LabelMatcher = NOTHING
    weight: int = 0
    """The weight of a preferred term, 1..100; 0 for required ones."""

    @property
    def texts(self) -> int:
        """How many keys, values and names it has: its size in a `SizedCache`."""
        return 1 + self.labels.texts + len(self.namespaces) + self.namespace_selector.texts

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether it matches a pod with *labels* in *namespace*, which has *namespace_labels*."""
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
    """All terms, the required ones first."""

    def __attrs_post_init__(self) -> None:
        every = (
            self.required_affinity + self.required_anti_affinity + self.preferred_affinity
        ) + self.preferred_anti_affinity
        object.__setattr__(self, "all", every)


_NO_TERMS = PodTerms()
_parsed: SizedCache[tuple[str, bytes], PodTerms] = SizedCache()


def affinity_terms(pod: Pod) -> PodTerms:
    """The terms of *pod*; pods with equal affinity in the same namespace share one object."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return _NO_TERMS
    key = pod.namespace, encode((affinity.pod_affinity, affinity.pod_anti_affinity))
    found = _parsed.get(key)
    if found is None:
        found = _parse(pod)
        _parsed.keep(key, found, texts=sum(term.texts for term in found.all), max_entries=_MAX_PARSED)
    return found


def _parse(pod: Pod) -> PodTerms:
    affinity = pod.spec.affinity
    assert affinity is not None
    pod_affinity = affinity.pod_affinity or PodAffinity()
    anti_affinity = affinity.pod_anti_affinity or PodAffinity()
    problems: list[str] = []

    def parse(
        kind: TermKind, terms: Iterable[PodAffinityTerm | WeightedPodAffinityTerm] | None
    ) -> tuple[AffinityTerm, ...]:
        try:
            return tuple(_compile(kind, term, pod.namespace) for term in terms or ())
        except SelectorError as problem:
            problems.append(f"{kind.value}: {problem}")
            return ()

    terms = (
        parse(TermKind.REQUIRED_AFFINITY, pod_affinity.required_during_scheduling_ignored_during_execution),
        parse(TermKind.REQUIRED_ANTI_AFFINITY, anti_affinity.required_during_scheduling_ignored_during_execution),
        parse(TermKind.PREFERRED_AFFINITY, pod_affinity.preferred_during_scheduling_ignored_during_execution),
        parse(TermKind.PREFERRED_ANTI_AFFINITY, anti_affinity.preferred_during_scheduling_ignored_during_execution),
    )
    problem = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""
    return PodTerms(*terms, problem)


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
