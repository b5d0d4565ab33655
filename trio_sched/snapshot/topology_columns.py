"""The labels of the nodes as columns, and sets of nodes as masks: what topology domains are made of.

A label key has a column once it is asked for and as long as a node has the label. Columns are brought up to date when
they are read, so that a change of a node costs the same however many there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

import numpy as np
from attrs import frozen

from trio_sched.snapshot.arrays import BoolArray, Int32Array, next_capacity, read_only, resized, smaller_capacity
from trio_sched.snapshot.change_log import ChangeLog
from trio_sched.snapshot.sized_cache import SizedCache
from trio_sched.snapshot.vocabulary import Vocabulary

ABSENT: Final = 0
"""The label value id of nodes that do not have the label."""

_MAX_MASKS: Final = 512
_MIN_COLUMNS: Final = 64
_MAX_CELLS: Final = 1 << 24
"""Entries of all columns together; beyond, the least recently used column is dropped if there are many."""


class LabelColumn:
    """The values of one label key over all rows."""

    __slots__ = ("_writable", "ids", "position", "values")

    def __init__(self, capacity: int) -> None:
        self.values: Vocabulary[str | None] = Vocabulary(None, None)
        """The distinct values by id; id 0 is None, "absent"."""
        self._writable: Int32Array = np.zeros(capacity, dtype=np.int32)
        self.ids: Int32Array = read_only(self._writable[:])
        """Shape (capacity,), read-only: the id of each row's value."""
        self.position = -1
        """Up to where the log of changed rows was read."""

    def write(self, row: int, value: str | None) -> None:
        """The node at *row* has *value*; None if it does not have the label."""
        old = int(self._writable[row])
        self._writable[row] = self.values.acquire(value)
        self.values.release(old)

    def resize(self, capacity: int) -> None:
        """Make place for *capacity* rows; `ids` is another array afterwards."""
        self._writable = resized(self._writable, capacity)
        self.ids = read_only(self._writable[:])


@frozen(eq=False)
class LabelValues:
    """A column of some rows of another table."""

    values: Vocabulary[str | None]
    ids: Int32Array


@frozen(eq=False)
class NodeMask:
    """Which rows belong to a set of nodes, as of one topology generation; equal *key* means the same set."""

    key: Hashable
    rows: BoolArray
    """Shape (capacity,)."""
    texts: int = 1
    """The size of *key*."""


class Topology(ABC):
    """Label columns and masks over the rows of a table of nodes."""

    __slots__ = ("_masks", "_masks_generation")

    def __init__(self) -> None:
        self._masks: SizedCache[Hashable, NodeMask] = SizedCache()
        self._masks_generation = -1

    @property
    @abstractmethod
    def count(self) -> int:
        """How many rows there are."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many rows the columns and masks have place for."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """Counts changes of which nodes there are, of their labels and of their specs (hence taints).

        While it stays the same, so do label columns and masks.
        """

    @abstractmethod
    def column(self, key: str) -> LabelColumn | LabelValues:
        """The column of label *key*, up to date."""

    @abstractmethod
    def has_everywhere(self, key: str) -> bool:
        """Whether every node has the label *key*."""

    def mask(self, key: Hashable, select: Callable[[], BoolArray], *, texts: int = 1) -> NodeMask:
        """The rows of the set of nodes called *key*.

        Args:
            key: equal keys mean the same set.
            select: gives shape (nodes,), which nodes are in it; called once per generation.
            texts: the size of *key*.
        """
        if self._masks_generation != self.generation:
            self._masks.clear()
            self._masks_generation = self.generation
        found = self._masks.get(key)
        if found is not None:
            return found
        rows = np.zeros(self.capacity, dtype=np.bool_)
        rows[: self.count] = select()
        return self._masks.keep(key, NodeMask(key, rows, texts), texts=texts, max_entries=_MAX_MASKS)


class TopologyColumns(Topology):
    """The node labels, row by row. Rows are dense: the last one takes the place of a removed one."""

    __slots__ = ("_absent", "_columns", "_labels", "_log", "_nodes_with", "capacity", "generation")

    capacity: int
    generation: int

    def __init__(self) -> None:
        super().__init__()
        self._labels: list[Mapping[str, str]] = []
        self._nodes_with: dict[str, int] = {}
        """Label key → how many nodes have it."""
        self._columns: OrderedDict[str, LabelColumn] = OrderedDict()
        self._absent = LabelColumn(0)
        self._log = ChangeLog()
        self.capacity = 0
        self.generation = 0

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._labels)

    # --- following the nodes ----------------------------------------------------------------------------------------

    def add(self, labels: Mapping[str, str]) -> None:
        """A node with *labels* takes the next row."""
        row = self.count
        if row >= self.capacity:
            self.capacity = next_capacity(self.capacity)
        self._labels.append(labels)
        self._count_keys(labels, 1)
        self._log.append(row)
        self.generation += 1

    def update(self, row: int, labels: Mapping[str, str]) -> None:
        """The node at *row* has *labels* now, or the same labels and another spec."""
        old = self._labels[row]
        if old != labels:
            self._labels[row] = labels
            self._count_keys(labels, 1)
            self._count_keys(old, -1)
            self._log.append(row)
        self.generation += 1

    def remove(self, row: int) -> None:
        """The node at *row* is gone; the last row takes its place."""
        last = self.count - 1
        self._count_keys(self._labels[row], -1)
        self._labels[row] = self._labels[last]
        self._labels.pop()
        self._log.append(row)
        self._log.append(last)
        self.capacity = smaller_capacity(self.capacity, last)
        self.generation += 1

    def _count_keys(self, labels: Mapping[str, str], more: int) -> None:
        for key in labels:
            count = self._nodes_with.get(key, 0) + more
            if count:
                self._nodes_with[key] = count
            else:
                del self._nodes_with[key]
                self._columns.pop(key, None)

    # --- columns ----------------------------------------------------------------------------------------------------

    def column(self, key: str) -> LabelColumn:
        """The column of label *key*, made when it is first asked for."""
        column = self._columns.get(key)
        if column is None:
            if key not in self._nodes_with:
                return self._absent_column()
            column = self._columns[key] = LabelColumn(self.capacity)
            if len(self._columns) > _MIN_COLUMNS and len(self._columns) * self.capacity > _MAX_CELLS:
                self._columns.popitem(last=False)
                self.generation += 1  # its ids can be others when it is made again
        else:
            self._columns.move_to_end(key)
        if column.position != self._log.position or len(column.ids) != self.capacity:
            column = self._catch_up(key, column)
        return column

    def _absent_column(self) -> LabelColumn:
        if len(self._absent.ids) != self.capacity:
            self._absent = LabelColumn(self.capacity)
        return self._absent

    def _catch_up(self, key: str, column: LabelColumn) -> LabelColumn:
        labels, count = self._labels, self.count
        rows = self._log.since(column.position)
        if rows is not None and len(rows) <= max(count // 2, _MIN_COLUMNS):
            if self.capacity > len(column.ids):
                column.resize(self.capacity)
            for row in rows:
                if row < len(column.ids):
                    column.write(row, labels[row].get(key) if row < count else None)
            if self.capacity < len(column.ids):
                column.resize(self.capacity)
            if not column.values.is_sparse:
                column.position = self._log.position
                return column
        column = self._columns[key] = LabelColumn(self.capacity)
        for row, of_node in enumerate(labels):
            column.write(row, of_node.get(key))
        column.position = self._log.position
        return column

    def has_everywhere(self, key: str) -> bool:
        """Whether every node has the label *key*."""
        return self._nodes_with.get(key, 0) == self.count


class TopologyRows(Topology):
    """Some rows of `TopologyColumns`, in any order; ids mean the same in both.

    Valid as long as the rows of the other table hold the same nodes; their labels may change.
    """

    __slots__ = ("_changes", "_columns", "_of", "_rows", "_seen")

    def __init__(self, of: TopologyColumns, rows: Sequence[int]) -> None:
        super().__init__()
        self._of = of
        self._rows = list(rows)
        self._changes = 0
        self._columns: dict[str, LabelValues] = {}
        self._seen = -1

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    @property
    def capacity(self) -> int:
        """How many rows columns have room for: as many as there are."""
        return len(self._rows)

    @property
    def generation(self) -> int:
        """Grows with every change here and in the other table."""
        return self._of.generation + self._changes

    def add(self, row: int) -> None:
        """The next row here is a copy of *row* there."""
        self._rows.append(row)
        self._changes += 1

    def column(self, key: str) -> LabelValues:
        """The column of label *key*."""
        column = self._of.column(key)
        if self._seen != self.generation:
            self._seen = self.generation
            self._columns.clear()
        found = self._columns.get(key)
        if found is None:
            ids = column.ids[np.array(self._rows, dtype=np.intp)]
            found = self._columns[key] = LabelValues(column.values, read_only(ids))
        return found

    def has_everywhere(self, key: str) -> bool:
        """Whether every node of these rows has the label *key*."""
        return bool((self.column(key).ids != ABSENT).all())
