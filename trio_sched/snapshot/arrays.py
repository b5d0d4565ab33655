"""The types of the columns, and how arrays grow and become read-only."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
RowIndex = slice | NDArray[np.intp]
"""Some of the rows, as numpy takes them: a range, or their numbers."""

D = TypeVar("D", bound=np.generic)

_FIRST_CAPACITY = 64


def next_capacity(capacity: int) -> int:
    """How many rows to hold once *capacity* rows no longer suffice; doubling keeps adding rows cheap."""
    return max(_FIRST_CAPACITY, 2 * capacity)


def longer(column: NDArray[D], capacity: int) -> NDArray[D]:
    """A copy of *column*, shape (capacity,), filled up with zeros."""
    grown = np.zeros(capacity, dtype=column.dtype)
    grown[: len(column)] = column
    return grown


def read_only(view: NDArray[D]) -> NDArray[D]:
    """*view* itself, which cannot be written to from now on; the array it is a view of still can."""
    view.flags.writeable = False
    return view
