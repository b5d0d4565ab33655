"""Counts of the pods on nodes that a selector matches, and sums of what they request; they follow each placement."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import ResourceAmounts
from trio_sched.snapshot import sized_cache
from trio_sched.snapshot.labels.pod_selector import PodSelector
from trio_sched.snapshot.pod_counts.class_requests import ClassRequests
from trio_sched.snapshot.pod_counts.domain_counts import DomainCountsBudget, RowCounts, RowSums
from trio_sched.snapshot.pod_counts.pod_classes import PodClass, PodClasses, SelectorCounter, class_key
from trio_sched.snapshot.pod_info import PodsByRow, each_pod, each_pod_info
from trio_sched.snapshot.topology_columns import Topology

_MAX_COUNTS = 1024
"""How many selectors' counts are kept, unless these are too large; the least recently used one is dropped first."""
_MAX_RESOURCES = 64
"""For so many resources the sums of a selector are kept; those asked for first are dropped first."""
_MAX_NAMESPACES = 16
"""A selector of more namespaces is compared with the classes of every namespace."""


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
        "_changes",
        "_classes",
        "_counters",
        "_dropped",
        "_is_active",
        "_pods",
        "_requests",
        "_texts",
        "_topology",
    )

    def __init__(self, topology: Topology, budget: DomainCountsBudget, pods: PodsByRow) -> None:
        self._topology = topology
        self._budget = budget
        self._pods = pods
        self._is_active = False
        self._classes = PodClasses()
        self._requests: ClassRequests | None = None
        """None until sums are asked for."""
        self._counters: OrderedDict[PodSelector, SelectorCounter] = OrderedDict()
        self._dropped: list[SelectorCounter] = []
        self._texts = 0
        """How many texts the selectors of all counts have."""
        self._changes = 0
        """How many selectors were given a counter."""
        self._by_namespace: dict[str | None, dict[SelectorCounter, None]] = {}
        """The counters to which pods of a namespace can belong, the oldest first; under None those of any namespace."""

    def counts(self, selector: PodSelector) -> RowCounts:
        """The count of the pods that *selector* matches, which stays up to date."""
        return self._counter(selector).counts

    def sums(self, selector: PodSelector, resource: str) -> RowSums:
        """What the pods that *selector* matches request of *resource*, which stays up to date."""
        counter = self._counter(selector)
        found = counter.sums.get(resource)
        if found is None:
            if self._requests is None:
                self._requests = ClassRequests()
                for row, info in each_pod_info(self._pods):
                    self._requests.change(class_key(info.pod), row, info.resources.requested, 1)
            amounts = self._requests.placements(self._classes.matching(selector), resource)
            found = counter.sums[resource] = RowSums(self._topology, self._budget, amounts)
            while len(counter.sums) > _MAX_RESOURCES:
                counter.sums.pop(next(iter(counter.sums))).close()
        return found

    def _counter(self, selector: PodSelector) -> SelectorCounter:
        found = self._counters.get(selector)
        if found is not None:
            self._counters.move_to_end(selector)
            return found
        if not self._is_active:
            self._is_active = True
            for row, pod in each_pod(self._pods):
                self._classes.add(row, pod)
        self._changes += 1
        counter = self._dropped.pop() if self._dropped else SelectorCounter()
        counter.selector, counter.since = selector, self._changes
        counter.counts = RowCounts(self._topology, self._budget, *self._classes.placements(selector))
        counter.sums = {}
        self._counters[selector] = counter
        for namespace in _namespaces_of(selector):
            self._by_namespace.setdefault(namespace, {})[counter] = None
        self._texts += selector.texts
        while len(self._counters) > _MAX_COUNTS or (self._texts > sized_cache.MAX_TEXTS and len(self._counters) > 1):
            self._drop_oldest()
        return counter

    def add(self, row: int, pod: Pod, requested: ResourceAmounts) -> None:
        """*pod* is on *row* now, and requests that."""
        if self._is_active:
            self._change(self._classes.add(row, pod), row, requested, 1)

    def remove(self, row: int, pod: Pod, requested: ResourceAmounts) -> None:
        """*pod*, which requests that, is on *row* no longer."""
        if self._is_active:
            self._change(self._classes.remove(row, pod), row, requested, -1)

    def _change(self, one: PodClass, row: int, requested: ResourceAmounts, sign: int) -> None:
        for counter in self._counters_of(one):
            counter.counts.change(row, sign)
            for resource, sums in counter.sums.items():
                sums.change(row, sign * requested.amount(resource))
        if self._requests is not None:
            self._requests.change(one.key, row, requested, sign)

    def _counters_of(self, one: PodClass) -> list[SelectorCounter]:
        """The counters of the selectors that match *one*, which is compared with the new ones only now.

        Most classes see no placement before most selectors of a hostile pod are dropped again.
        """
        if one.compared != self._changes:
            matching = [counter for counter in one.counters if counter.since <= one.compared]
            for namespace in (one.namespace, None):
                for counter in reversed(self._by_namespace.get(namespace, {})):
                    if counter.since <= one.compared:
                        break
                    if counter.selector.matches(one.namespace, one.labels, one.terminating):
                        matching.append(counter)
            one.counters, one.compared = matching, self._changes
        return one.counters

    def _drop_oldest(self) -> None:
        selector, counter = self._counters.popitem(last=False)
        self._texts -= selector.texts
        for namespace in _namespaces_of(selector):
            of_namespace = self._by_namespace[namespace]
            del of_namespace[counter]
            if not of_namespace:
                del self._by_namespace[namespace]
        counter.counts.close()
        for sums in counter.sums.values():
            sums.close()
        del counter.selector, counter.counts, counter.sums
        counter.since = self._changes + 1
        self._dropped.append(counter)


def _namespaces_of(selector: PodSelector) -> Iterable[str | None]:
    names = selector.namespaces
    return (None,) if names is None or len(names) > _MAX_NAMESPACES else names
