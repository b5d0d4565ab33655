"""Values ↔ small integers, so that columns hold numbers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import numpy as np

from trio_sched.objects.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY
from trio_sched.snapshot.arrays import Int64Array

H = TypeVar("H", bound=Hashable)

CPU_ROW, MEMORY_ROW, EPHEMERAL_STORAGE_ROW = 0, 1, 2
"""The rows of the three resources that every cluster has, in the resource-major columns."""

_SMALL: Final = 64


class Vocabulary(Generic[H]):
    """The distinct values in use, each with an id.

    Uses are counted. The id of a value that is used no more is given to the next new value, so that a vocabulary is as
    long as the number of values that were ever used at once; `compact` makes it as long as the number in use now.

    Args:
        placeholder: stands in `values` where an id is free.
        permanent: values that keep their ids 0, 1, … whether they are used or not.
    """

    __slots__ = ("_free", "_ids", "_permanent", "_placeholder", "_uses", "values")

    def __init__(self, placeholder: H, *permanent: H) -> None:
        self.values: list[H] = list(permanent)
        """The values by id."""
        self._placeholder = placeholder
        self._permanent = len(permanent)
        self._ids: dict[H, int] = {value: id_ for id_, value in enumerate(permanent)}
        self._uses: list[int] = [1] * len(permanent)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.values)

    def get(self, value: H) -> int | None:
        """The id of *value*, or None if it is not in use."""
        return self._ids.get(value)

    def acquire(self, value: H) -> int:
        """Count one more use of *value*; returns its id."""
        id_ = self._ids.get(value)
        if id_ is not None:
            self._uses[id_] += 1
            return id_
        if self._free:
            id_ = self._free.pop()
            self.values[id_], self._uses[id_] = value, 1
        else:
            id_ = len(self.values)
            self.values.append(value)
            self._uses.append(1)
        self._ids[value] = id_
        return id_

    def release(self, id_: int) -> bool:
        """Count one use less of the value with this id; returns whether the id is free now."""
        if id_ < self._permanent:
            return False
        self._uses[id_] -= 1
        if self._uses[id_]:
            return False
        del self._ids[self.values[id_]]
        self.values[id_] = self._placeholder
        self._free.append(id_)
        return True

    @property
    def is_sparse(self) -> bool:
        """Whether most of many ids are free."""
        return len(self.values) > _SMALL and 2 * len(self._free) > len(self.values)

    def compact(self) -> Int64Array:
        """Give new ids, in the same order and without free ones between.

        Returns:
            Shape (ids before,): the new id by the old one; 0 for those that were free.
        """
        new_ids = np.zeros(len(self.values), dtype=np.int64)
        kept = [id_ for id_, uses in enumerate(self._uses) if uses]
        new_ids[kept] = np.arange(len(kept))
        self.values = [self.values[id_] for id_ in kept]
        self._uses = [self._uses[id_] for id_ in kept]
        self._ids = {value: id_ for id_, value in enumerate(self.values)}
        self._free = []
        return new_ids


def resource_vocabulary() -> Vocabulary[str]:
    """A fresh vocabulary of resource names; the three common ones have fixed rows."""
    return Vocabulary("", CPU, MEMORY, EPHEMERAL_STORAGE)
