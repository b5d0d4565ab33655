"""The pods on nodes, in classes that no selector can tell apart: of equal namespace, labels and being deleted or not.

A selector is compared with classes, all of them at once, and never with pods.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np

from trio_sched.objects.pod import Pod
from trio_sched.snapshot.arrays import BoolArray, Int32Array
from trio_sched.snapshot.labels.label_postings import LabelPostings, keep_only
from trio_sched.snapshot.labels.pod_selector import PodSelector
from trio_sched.snapshot.pod_counts.domain_counts import RowCounts, RowSums

_MAX_GONE = 1024
"""How many classes and placements that are gone are held, unless there are more that are not."""
_MAX_GONE_LABELS = 8 * _MAX_GONE
"""How many labels classes that are gone may have together: a pod can have a megabyte of them."""

ClassKey = tuple[str, tuple[tuple[str, str], ...], bool]
"""(namespace, labels, whether it is terminating)."""


def class_key(pod: Pod) -> ClassKey:
    """Equal for pods that no selector can tell apart."""
    metadata = pod.metadata
    labels = metadata.labels
    return metadata.namespace, tuple(labels.items()) if labels else (), metadata.deletion_timestamp is not None


class SelectorCounter:
    """The pods that one selector matches; when that is dropped, another one, so that classes need not let go of it."""

    __slots__ = ("counts", "selector", "since", "sums")

    counts: RowCounts
    sums: dict[str, RowSums]
    """What the pods request, by resource, of those that were asked for."""
    selector: PodSelector
    since: int
    """As of which change of the counters it has this selector."""


class PodClass:
    """Pods that no selector can tell apart."""

    __slots__ = ("compared", "counters", "key", "labels", "namespace", "number", "placements", "terminating")

    def __init__(self, key: ClassKey, labels: Mapping[str, str]) -> None:
        self.key = key
        self.namespace, _, self.terminating = key
        self.labels = labels
        self.number = -1
        """Its place in the postings."""
        self.placements: dict[int, int] = {}
        """Row → the number of the placement, which counts the pods of this class on this row."""
        self.counters: list[SelectorCounter] = []
        """Those of selectors that match."""
        self.compared = 0
        """The last change of the counters that was taken into account."""


class PodClasses:
    """The classes of the pods on nodes, and how many pods of each are on each row.

    Classes and placements are numbered, so that they can be counted with numpy. No number is used again: what is gone
    counts 0 pods, until it is more than what is there and all get new numbers.
    """

    __slots__ = (
        *("_by_key", "_class_of", "_in_namespace", "_label_count", "_labels"),
        *("_placements", "_pods", "_row_of", "_terminating"),
    )

    def __init__(self) -> None:
        self._by_key: dict[ClassKey, PodClass] = {}
        self._placements = 0
        """How many there are, without those that are gone."""
        self._label_count = 0
        """How many labels all classes have, without those that are gone."""
        self._pods = array("i")
        self._renumber()

    def add(self, row: int, pod: Pod) -> PodClass:
        """*pod* is on *row* now; returns its class."""
        key = class_key(pod)
        one = self._by_key.get(key)
        if one is None:
            one = self._by_key[key] = PodClass(key, pod.labels)
            self._label_count += len(one.labels)
            self._number(one)
        placement = one.placements.get(row)
        if placement is None:
            self._place(one, row, 1)
            self._placements += 1
        else:
            self._pods[placement] += 1
        return one

    def remove(self, row: int, pod: Pod) -> PodClass:
        """*pod* is on *row* no longer; returns its class."""
        one = self._by_key[class_key(pod)]
        placement = one.placements[row]
        self._pods[placement] -= 1
        if not self._pods[placement]:
            del one.placements[row]
            self._placements -= 1
            if not one.placements:
                del self._by_key[one.key]
                self._label_count -= len(one.labels)
            if self._has_many_gone():
                self._renumber()
        return one

    def _has_many_gone(self) -> bool:
        classes, placements, labels = len(self._by_key), self._placements, self._label_count
        return (
            self._labels.count - classes > max(_MAX_GONE, classes)
            or len(self._pods) - placements > max(_MAX_GONE, placements)
            or self._labels.label_count - labels > max(_MAX_GONE_LABELS, labels)
        )

    def placements(self, selector: PodSelector) -> tuple[Int32Array, Int32Array]:
        """The rows with pods that *selector* matches, one for each class, and how many pods."""
        selected = np.flatnonzero(self._select(selector)[np.asarray(self._class_of)])
        return np.asarray(self._row_of)[selected], np.asarray(self._pods)[selected]

    def matching(self, selector: PodSelector) -> list[PodClass]:
        """The classes that *selector* matches."""
        selected = self._select(selector)
        return [one for one in self._by_key.values() if selected[one.number]]

    def _select(self, selector: PodSelector) -> BoolArray:
        selected = np.ones(self._labels.count, dtype=np.bool_)
        for part in selector.parts:
            if part.namespaces is not None:
                named = part.namespaces & self._in_namespace.keys()
                keep_only(selected, (self._in_namespace[name] for name in named))
            self._labels.intersect(selected, part.labels)
        if selector.without_terminating:
            selected[np.asarray(self._terminating)] = False
        return selected

    def _number(self, one: PodClass) -> None:
        one.number = self._labels.add(one.labels)
        self._in_namespace.setdefault(one.namespace, array("i")).append(one.number)
        if one.terminating:
            self._terminating.append(one.number)

    def _place(self, one: PodClass, row: int, pods: int) -> None:
        one.placements[row] = len(self._pods)
        self._class_of.append(one.number)
        self._row_of.append(row)
        self._pods.append(pods)

    def _renumber(self) -> None:
        pods = self._pods
        self._labels = LabelPostings()
        self._in_namespace: dict[str, array[int]] = {}
        self._terminating = array("i")
        self._class_of, self._row_of, self._pods = array("i"), array("i"), array("i")
        """For each placement, the number of its class, its row, its pods."""
        for one in self._by_key.values():
            self._number(one)
            for row, placement in one.placements.items():
                self._place(one, row, pods[placement])
