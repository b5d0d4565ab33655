"""The types of the columns, and how arrays grow and become read-only."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
"""Amounts, counts and scores."""
Int32Array = NDArray[np.int32]
IntpArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
"""Masks."""
RowIndex = slice | NDArray[np.intp]
"""Some of the rows, as numpy takes them: a range, or their numbers."""

D = TypeVar("D", bound=np.generic)

_FIRST_CAPACITY = 64


def next_capacity(capacity: int) -> int:
    """How many rows to hold once *capacity* rows no longer suffice; doubling keeps adding rows cheap."""
    return max(_FIRST_CAPACITY, 2 * capacity)


def smaller_capacity(capacity: int, count: int) -> int:
    """How many rows to hold when *count* are left: the same as long as a quarter is used."""
    return capacity if 4 * count >= capacity else max(_FIRST_CAPACITY, 2 * count)


def resized(array: NDArray[D], capacity: int) -> NDArray[D]:
    """A copy of *array* whose last axis has length *capacity*: cut off, or filled up with zeros."""
    made = np.zeros((*array.shape[:-1], capacity), dtype=array.dtype)
    kept = min(capacity, array.shape[-1])
    made[..., :kept] = array[..., :kept]
    return made


def read_only(view: NDArray[D]) -> NDArray[D]:
    """*view* itself, which cannot be written to from now on; the array it is a view of still can."""
    view.flags.writeable = False
    return view
