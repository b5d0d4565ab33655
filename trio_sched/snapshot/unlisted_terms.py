"""Affinity terms of pods that are assumed while their group is tried, as far as its other pods do not see them.

Source: kube-scheduler 1.36 looks for the terms of other pods on the nodes that had pods with such terms when the
attempt began. A pod of the group that is assumed on another node does not put that node on the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from trio_sched.objects.pod import Pod
from trio_sched.snapshot.labels.affinity_terms import AffinityTerm, TermKind, affinity_terms
from trio_sched.snapshot.pod_counts.domain_counts import DomainCounts
from trio_sched.snapshot.pod_counts.term_index import MatchingTerms, TermCounts
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.snapshot.topology_columns import ABSENT, Topology


@frozen
class UnlistedPod:
    """A pod on a node that is not on the list of nodes with required anti-affinity, or with any affinity, or both."""

    pod: Pod
    node_name: str
    anti_affinity: bool
    ranking: bool


def unlisted_pod(
    pod: Pod, node_name: str, on_node: Iterable[PodInfo], unlisted: Mapping[str, UnlistedPod]
) -> UnlistedPod | None:
    """What is not seen of the terms of *pod*; None if it is on both lists, or has no terms.

    Args:
        pod: the pod.
        node_name: its node.
        on_node: the other pods there.
        unlisted: by UID those of which something is not seen.
    """
    if not _has_affinity(pod):
        return None
    anti_affinity = ranking = True
    for other in on_node:
        known = unlisted.get(other.pod.uid)
        if _has_affinity(other.pod):
            ranking = ranking and known is not None and known.ranking
            if affinity_terms(other.pod).required_anti_affinity:
                anti_affinity = anti_affinity and known is not None and known.anti_affinity
    return UnlistedPod(pod, node_name, anti_affinity, ranking) if anti_affinity or ranking else None


def _has_affinity(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)


def without_unlisted(
    found: MatchingTerms,
    incoming: Pod,
    unlisted: Iterable[UnlistedPod],
    row_of: Mapping[str, int],
    topology: Topology,
) -> MatchingTerms:
    """*found* as *incoming* sees it; a pod with preferred terms looks at all nodes for its score."""
    terms = affinity_terms(incoming)
    sees_all = bool(terms.preferred_affinity or terms.preferred_anti_affinity)
    hidden: dict[AffinityTerm, list[int]] = {}
    for one in unlisted:
        row = row_of.get(one.node_name)
        if row is None:
            continue
        for term in affinity_terms(one.pod).all:
            is_anti = term.kind is TermKind.REQUIRED_ANTI_AFFINITY
            if one.anti_affinity if is_anti else (one.ranking and not sees_all):
                hidden.setdefault(term, []).append(row)
    if not hidden:
        return found

    def reduced(counts: Iterable[TermCounts]) -> tuple[TermCounts, ...]:
        return tuple(
            _Reduced(one, _without(one.by_domain, hidden[one.term], topology)) if one.term in hidden else one
            for one in counts
        )

    return MatchingTerms(reduced(found.anti_affinity), reduced(found.ranking))


class _Reduced(TermCounts):
    """A term without the pods whose terms are not seen."""

    __slots__ = ("_by_domain",)

    def __init__(self, counted: TermCounts, by_domain: DomainCounts) -> None:
        super().__init__(counted.term, counted.counts)
        self._by_domain = by_domain

    @property
    def by_domain(self) -> DomainCounts:
        """Pods with this term per value of its topology key."""
        return self._by_domain


def _without(counts: DomainCounts, rows: Iterable[int], topology: Topology) -> DomainCounts:
    ids = topology.column(counts.key).ids
    domains = [domain for row in rows if (domain := int(ids[row])) != ABSENT]
    return counts.without(domains)
