"""The labels of the nodes as columns, and sets of nodes as masks: what topology domains are made of.

A label key has no column before it is first asked for; from then on its column follows the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from attrs import frozen

from trio_sched.snapshot.arrays import BoolArray, Int32Array, longer, next_capacity, read_only
from trio_sched.snapshot.vocabulary import Interner

ABSENT = 0
"""The label value id of nodes that do not have the label."""

_MAX_MASKS = 512


class LabelColumn:
    """The values of one label key over all rows."""

    __slots__ = ("_writable", "ids", "values")

    def __init__(self, capacity: int, values: Interner[str | None]) -> None:
        self.values = values
        """The distinct values by id; id 0 is None, "absent"."""
        self._writable: Int32Array = np.zeros(capacity, dtype=np.int32)
        self.ids: Int32Array = read_only(self._writable[:])
        """Shape (capacity,), read-only: the id of each row's value."""

    def write(self, row: int, value: str | None) -> None:
        """The node at *row* has *value*; None if it does not have the label."""
        self._writable[row] = self.values.intern(value)

    def move(self, source: int, target: int) -> None:
        """Give *target* the value of *source*."""
        self._writable[target] = self._writable[source]

    def grow(self, capacity: int) -> None:
        """Make place for *capacity* rows; `ids` is another array afterwards."""
        self._writable = longer(self._writable, capacity)
        self.ids = read_only(self._writable[:])


@frozen(eq=False)
class NodeMask:
    """Which rows belong to a set of nodes, as of one topology generation; equal *key* means the same set."""

    key: Hashable
    generation: int
    rows: BoolArray
    """Shape (capacity,)."""


class TopologyColumns:
    """The node labels, row by row. Rows are dense: the last one takes the place of a removed one."""

    __slots__ = ("_columns", "_everywhere", "_labels", "_masks", "_vocabularies", "capacity", "generation")

    def __init__(
        self,
        labels: Sequence[Mapping[str, str]] = (),
        vocabularies: dict[str, Interner[str | None]] | None = None,
    ) -> None:
        self._labels = list(labels)
        self._vocabularies = {} if vocabularies is None else vocabularies
        self._columns: dict[str, LabelColumn] = {}
        self._everywhere: dict[str, tuple[int, bool]] = {}
        self._masks: dict[Hashable, NodeMask] = {}
        self.capacity = len(self._labels)
        """How many rows fit before the arrays have to grow."""
        self.generation = 0
        """Counts changes of which nodes there are, of their labels and of their specs (hence taints).

        While it stays the same, so do label columns and masks.
        """

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._labels)

    def copy_of_rows(self, rows: Sequence[int]) -> TopologyColumns:
        """The same for *rows* only, in that order; value ids mean the same in both, also those given later."""
        return TopologyColumns([self._labels[row] for row in rows], self._vocabularies)

    # --- following the nodes ----------------------------------------------------------------------------------------

    def add(self, labels: Mapping[str, str]) -> None:
        """A node with *labels* takes the next row."""
        row = self.count
        if row >= self.capacity:
            self.capacity = next_capacity(self.capacity)
            for column in self._columns.values():
                column.grow(self.capacity)
        self._labels.append(labels)
        self._write(row, labels)

    def update(self, row: int, labels: Mapping[str, str]) -> None:
        """The node at *row* has *labels* now, or the same labels and another spec."""
        self._labels[row] = labels
        self._write(row, labels)

    def remove(self, row: int) -> None:
        """The node at *row* is gone; the last row takes its place."""
        last = self.count - 1
        self._labels[row] = self._labels[last]
        self._labels.pop()
        for column in self._columns.values():
            column.move(last, row)
        self.generation += 1

    def _write(self, row: int, labels: Mapping[str, str]) -> None:
        for key, column in self._columns.items():
            column.write(row, labels.get(key))
        self.generation += 1

    # --- what follows from them -------------------------------------------------------------------------------------

    def column(self, key: str) -> LabelColumn:
        """The column of label *key*, made when it is first asked for."""
        column = self._columns.get(key)
        if column is None:
            values = self._vocabularies.get(key)
            if values is None:
                values = self._vocabularies[key] = Interner(None)
            column = self._columns[key] = LabelColumn(self.capacity, values)
            for row, labels in enumerate(self._labels):
                column.write(row, labels.get(key))
        return column

    def has_everywhere(self, key: str) -> bool:
        """Whether every node has the label *key*."""
        found = self._everywhere.get(key)
        if found is None or found[0] != self.generation:
            present = self.column(key).ids[: self.count] != ABSENT
            found = self._everywhere[key] = (self.generation, bool(present.all()))
        return found[1]

    def mask(self, key: Hashable, select: Callable[[], BoolArray]) -> NodeMask:
        """The rows of the set of nodes called *key*.

        Args:
            key: equal keys mean the same set.
            select: gives shape (nodes,), which nodes are in it; asked once per generation.
        """
        found = self._masks.get(key)
        if found is not None and found.generation == self.generation:
            return found
        if len(self._masks) >= _MAX_MASKS:
            self._masks.clear()
        rows = np.zeros(self.capacity, dtype=np.bool_)
        rows[: self.count] = select()
        mask = self._masks[key] = NodeMask(key, self.generation, rows)
        return mask
