"""Which of many things have a label, so that a selector takes a few numpy operations and no call per thing."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

import numpy as np

from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.labels.label_selection import LabelMatcher


class LabelPostings:
    """The numbers of things, by label. Things cannot be removed: there are new postings when too many are gone."""

    __slots__ = ("_by_key", "_by_value", "count", "label_count")

    def __init__(self) -> None:
        self.count = 0
        """How many numbers are in use: 0 … count - 1."""
        self.label_count = 0
        """How many labels these have together."""
        self._by_key: dict[str, array[int]] = {}
        """Label key → the things that have it."""
        self._by_value: dict[str, dict[str, array[int]]] = {}
        """Label key → value → the things that have it with this value."""

    def add(self, labels: Mapping[str, str]) -> int:
        """The number of a new thing with *labels*."""
        number = self.count
        self.count += 1
        self.label_count += len(labels)
        for key, value in labels.items():
            by_value = self._by_value.get(key)
            if by_value is None:
                by_value = self._by_value[key] = {}
                self._by_key[key] = array("i")
            self._by_key[key].append(number)
            having = by_value.get(value)
            if having is None:
                having = by_value[value] = array("i")
            having.append(number)
        return number

    def intersect(self, among: BoolArray, matcher: LabelMatcher) -> None:
        """Set *among*, shape (count,), to False for the things that *matcher* does not match."""
        if matcher.is_nothing:
            among[:] = False
        for key, operator, values in matcher.requirements:
            by_value = self._by_value.get(key, {})
            match operator:
                case "In":
                    keep_only(among, (by_value[value] for value in values & by_value.keys()))
                case "NotIn":
                    for value in values & by_value.keys():
                        among[np.asarray(by_value[value])] = False
                case "Exists":
                    keep_only(among, (self._by_key[key],) if by_value else ())
                case _ if by_value:
                    among[np.asarray(self._by_key[key])] = False


def keep_only(among: BoolArray, numbers: Iterable[array[int]]) -> None:
    """Set *among* to False except at *numbers*."""
    kept = np.zeros(len(among), dtype=np.bool_)
    for some in numbers:
        kept[np.asarray(some)] = True
    among &= kept
