"""The columns themselves: arrays with a place for every row, which grow with the number of rows and resources."""

from __future__ import annotations

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from trio_sched.snapshot.arrays import BoolArray, Int32Array, Int64Array, read_only, resized

_PER_ROW = (
    "pod_count",
    "allowed_pods",
    "unschedulable",
    "taint_sets",
    "feature_sets",
    "node_generation",
    "pods_generation",
    "pod_objects_generation",
)
_MATRICES = ("allocatable", "requested", "nonzero_requested")


@frozen(eq=False)
class ColumnViews:
    """Read-only views of the columns, with an entry per node and no spare ones."""

    allocatable: Int64Array
    requested: Int64Array
    nonzero_requested: Int64Array
    pod_count: Int64Array
    allowed_pods: Int64Array
    unschedulable: BoolArray
    taint_sets: Int32Array
    feature_sets: Int32Array
    node_generation: Int64Array
    """Grows with every change of the row's node object that matters to plugins."""
    pods_generation: Int64Array
    """Grows when a pod comes to the row or leaves it."""
    pod_objects_generation: Int64Array
    """Grows with every change of the row's pods, and of one of them."""


@define(eq=False)
class ColumnStore:
    """Writable columns; each is longer than there are rows, so that rows can be added."""

    allocatable: Int64Array = field(factory=lambda: np.zeros((3, 0), dtype=np.int64))
    requested: Int64Array = field(factory=lambda: np.zeros((3, 0), dtype=np.int64))
    nonzero_requested: Int64Array = field(factory=lambda: np.zeros((2, 0), dtype=np.int64))
    pod_count: Int64Array = field(factory=lambda: np.zeros(0, dtype=np.int64))
    allowed_pods: Int64Array = field(factory=lambda: np.zeros(0, dtype=np.int64))
    unschedulable: BoolArray = field(factory=lambda: np.zeros(0, dtype=np.bool_))
    taint_sets: Int32Array = field(factory=lambda: np.zeros(0, dtype=np.int32))
    feature_sets: Int32Array = field(factory=lambda: np.zeros(0, dtype=np.int32))
    node_generation: Int64Array = field(factory=lambda: np.zeros(0, dtype=np.int64))
    pods_generation: Int64Array = field(factory=lambda: np.zeros(0, dtype=np.int64))
    pod_objects_generation: Int64Array = field(factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def capacity(self) -> int:
        """How many rows fit before the columns have to grow."""
        return len(self.pod_count)

    @classmethod
    def of_rows(cls, views: ColumnViews, rows: NDArray[np.intp]) -> ColumnStore:
        """Copies of *rows*, in that order, without spare rows."""
        matrices = {name: getattr(views, name)[:, rows] for name in _MATRICES}
        return cls(**matrices, **{name: getattr(views, name)[rows] for name in _PER_ROW})

    def views(self, rows: int, resources: int) -> ColumnViews:
        """The first *rows* rows and *resources* resources, read-only."""
        views = {name: read_only(getattr(self, name)[:rows]) for name in _PER_ROW}
        return ColumnViews(
            allocatable=read_only(self.allocatable[:resources, :rows]),
            requested=read_only(self.requested[:resources, :rows]),
            nonzero_requested=read_only(self.nonzero_requested[:, :rows]),
            **views,
        )

    def make_room_for(self, resources: int) -> None:
        """Make room for this many resources."""
        while resources > self.allocatable.shape[0]:
            self.allocatable = _taller(self.allocatable)
            self.requested = _taller(self.requested)

    def renumber_resources(self, new_rows: Int64Array) -> None:
        """Move the resources to other rows.

        Args:
            new_rows: shape (resources before,): the new row of each; 0 for those that are gone.
        """
        kept = [0, *np.flatnonzero(new_rows).tolist()]
        self.allocatable = self.allocatable[kept]
        self.requested = self.requested[kept]

    def resize(self, capacity: int) -> None:
        """Make room for *capacity* rows."""
        if capacity != self.capacity:
            for name in (*_MATRICES, *_PER_ROW):
                setattr(self, name, resized(getattr(self, name), capacity))

    def move(self, source: int, target: int) -> None:
        """Write the entries of *source* to *target*, except the generations, which the caller sets."""
        for matrix in (self.allocatable, self.requested, self.nonzero_requested):
            matrix[:, target] = matrix[:, source]
        for column in (self.pod_count, self.allowed_pods, self.unschedulable, self.taint_sets, self.feature_sets):
            column[target] = column[source]

    def copy(self, views: ColumnViews, row: int, target: int) -> None:
        """Write the entries that *row* has in *views* to *target*."""
        resources = len(views.allocatable)
        self.make_room_for(resources)
        self.allocatable[:resources, target] = views.allocatable[:, row]
        self.requested[:resources, target] = views.requested[:, row]
        self.nonzero_requested[:, target] = views.nonzero_requested[:, row]
        for name in _PER_ROW:
            getattr(self, name)[target] = getattr(views, name)[row]

    def clear(self, row: int) -> None:
        """No node is at *row*."""
        for name in _MATRICES:
            getattr(self, name)[:, row] = 0
        for name in _PER_ROW:
            getattr(self, name)[row] = 0


def _taller(matrix: Int64Array) -> Int64Array:
    """*matrix* with room for twice as many resources."""
    return np.vstack([matrix, np.zeros_like(matrix)])
