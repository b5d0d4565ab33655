"""Pods on nodes by namespace and labels, and counts of those that a selector matches.

Pods that no selector can tell apart (same namespace, same labels, both or neither terminating) form a class; a selector
is compared with classes, never with pods, and each count then follows one placement at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from attrs import field, frozen

from trio_sched.objects.pod import Pod
from trio_sched.snapshot import sized_cache
from trio_sched.snapshot.domain_counts import DomainCountsBudget, RowCounts
from trio_sched.snapshot.label_selection import LabelMatcher
from trio_sched.snapshot.pod_info import PodsByRow, each_pod
from trio_sched.snapshot.topology_columns import Topology

_MAX_COUNTS = 1024
"""How many selectors' counts are kept, unless these are too large; the least recently used one is dropped first."""

ClassKey = tuple[str, tuple[tuple[str, str], ...], bool]
"""(namespace, labels, whether it is terminating)."""


@frozen(cache_hash=True)
class NamespacedMatcher:
    """Pods with certain labels in certain namespaces; None means every namespace."""

    namespaces: frozenset[str] | None
    labels: LabelMatcher

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether it matches a pod in *namespace* with *labels*."""
        return (self.namespaces is None or namespace in self.namespaces) and self.labels.matches(labels)


@frozen(cache_hash=True)
class PodSelector:
    """Which pods to count: those that *every* one of *parts* matches."""

    parts: tuple[NamespacedMatcher, ...]
    without_terminating: bool = False
    """Leave out pods that are being deleted."""
    namespaces: frozenset[str] | None = field(init=False, eq=False, repr=False)
    """The namespaces they can be in; None means every one."""

    def __attrs_post_init__(self) -> None:
        limits = [part.namespaces for part in self.parts if part.namespaces is not None]
        object.__setattr__(self, "namespaces", frozenset.intersection(*limits) if limits else None)

    @property
    def texts(self) -> int:
        """How many keys, values and names it has: its size in a `SizedCache`."""
        return sum(1 + part.labels.texts + len(part.namespaces or ()) for part in self.parts)

    def matches(self, namespace: str, labels: Mapping[str, str], terminating: bool = False) -> bool:
        """Whether a pod in *namespace* with *labels* is counted."""
        if terminating and self.without_terminating:
            return False
        for part in self.parts:  # noqa: SIM110 - all() takes twice as long, and there may be 10,000s of classes
            if not part.matches(namespace, labels):
                return False
        return True

    def matches_pod(self, pod: Pod) -> bool:
        """Whether *pod* is counted, whether or not it is being deleted."""
        return self.matches(pod.namespace, pod.labels)


class _PodClass:
    """Pods that no selector can tell apart."""

    __slots__ = ("counters", "key", "labels", "namespace", "rows", "terminating")

    def __init__(self, key: ClassKey, labels: Mapping[str, str]) -> None:
        self.key = key
        self.namespace, _, self.terminating = key
        self.labels = labels
        self.rows: dict[int, int] = {}
        self.counters: list[RowCounts] = []


def class_key(pod: Pod) -> ClassKey:
    """Equal for pods that no selector can tell apart."""
    metadata = pod.metadata
    labels = metadata.labels
    return metadata.namespace, tuple(labels.items()) if labels else (), metadata.deletion_timestamp is not None


class PodIndex:
    """The classes of the pods on nodes, and counts per selector. Pods are indexed from the first `counts` on.

    Args:
        topology: the labels of the nodes, by row.
        budget: bounds the size of the counts per domain.
        pods: the pods of each row; read once, when indexing starts. From then on *add* and *remove* report changes.
    """

    __slots__ = (
        "_budget",
        "_by_namespace",
        "_classes",
        "_counters",
        "_counters_by_namespace",
        "_is_active",
        "_pods",
        "_texts",
        "_topology",
    )

    def __init__(self, topology: Topology, budget: DomainCountsBudget, pods: PodsByRow) -> None:
        self._topology = topology
        self._budget = budget
        self._pods = pods
        self._is_active = False
        self._classes: dict[ClassKey, _PodClass] = {}
        self._by_namespace: dict[str, dict[ClassKey, _PodClass]] = {}
        self._counters: OrderedDict[PodSelector, RowCounts] = OrderedDict()
        self._texts = 0
        """Of the selectors of all counts."""
        self._counters_by_namespace: dict[str | None, list[tuple[PodSelector, RowCounts]]] = {}
        """The counts to which pods of a namespace can belong; under None those of selectors for every namespace."""

    def counts(self, selector: PodSelector) -> RowCounts:
        """The count of the pods that *selector* matches, which stays up to date."""
        found = self._counters.get(selector)
        if found is not None:
            self._counters.move_to_end(selector)
            return found
        if not self._is_active:
            self._is_active = True
            for row, pod in each_pod(self._pods):
                self.add(row, pod)
        counts = self._counters[selector] = RowCounts(self._topology, self._budget)
        for namespace in _namespaces_of(selector):
            self._counters_by_namespace.setdefault(namespace, []).append((selector, counts))
        for one in self._candidates(selector):
            if selector.matches(one.namespace, one.labels, one.terminating):
                one.counters.append(counts)
                for row, count in one.rows.items():
                    counts.rows[row] = counts.rows.get(row, 0) + count
        self._texts += selector.texts
        while len(self._counters) > _MAX_COUNTS or (self._texts > sized_cache.MAX_TEXTS and len(self._counters) > 1):
            self._drop(*self._counters.popitem(last=False))
        return counts

    def add(self, row: int, pod: Pod) -> None:
        """*pod* is on *row* now."""
        if not self._is_active:
            return
        one = self._class_of(pod)
        one.rows[row] = one.rows.get(row, 0) + 1
        for counts in one.counters:
            counts.change(row, 1)

    def remove(self, row: int, pod: Pod) -> None:
        """*pod* is on *row* no longer."""
        if not self._is_active:
            return
        one = self._class_of(pod)
        for counts in one.counters:
            counts.change(row, -1)
        left = one.rows[row] - 1
        if left:
            one.rows[row] = left
            return
        del one.rows[row]
        if not one.rows:
            del self._classes[one.key]
            in_namespace = self._by_namespace[one.namespace]
            del in_namespace[one.key]
            if not in_namespace:
                del self._by_namespace[one.namespace]

    def _class_of(self, pod: Pod) -> _PodClass:
        key = class_key(pod)
        one = self._classes.get(key)
        if one is None:
            one = self._classes[key] = _PodClass(key, pod.labels)
            self._by_namespace.setdefault(one.namespace, {})[key] = one
            for namespace in (one.namespace, None):
                for selector, counts in self._counters_by_namespace.get(namespace, ()):
                    if selector.matches(one.namespace, one.labels, one.terminating):
                        one.counters.append(counts)
        return one

    def _candidates(self, selector: PodSelector) -> Iterable[_PodClass]:
        if selector.namespaces is None:
            return self._classes.values()
        return [one for name in selector.namespaces for one in self._by_namespace.get(name, {}).values()]

    def _drop(self, selector: PodSelector, counts: RowCounts) -> None:
        self._texts -= selector.texts
        for namespace in _namespaces_of(selector):
            of_namespace = self._counters_by_namespace[namespace]
            of_namespace.remove((selector, counts))
            if not of_namespace:
                del self._counters_by_namespace[namespace]
        for one in self._candidates(selector):
            if counts in one.counters:
                one.counters.remove(counts)
        counts.close()


def _namespaces_of(selector: PodSelector) -> Iterable[str | None]:
    return (None,) if selector.namespaces is None else selector.namespaces
