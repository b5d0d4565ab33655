"""Evaluates something once for each distinct value of a column instead of once for each node."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trio_sched.snapshot.arrays import Int32Array

V = TypeVar("V")
S = TypeVar("S", bound=np.generic)

_FEW = 16


def per_distinct_value(
    ids: Int32Array, values: Sequence[V], evaluate: Callable[[V], object], dtype: type[S]
) -> NDArray[S]:
    """Shape (nodes,): *evaluate* of each node's value, for columns like ``nodes.taint_sets``.

    Args:
        ids: shape (nodes,): indexes into *values*.
        values: the distinct values, ``nodes.taint_lists`` for instance; those of other nodes are not evaluated if they
            are many.
        evaluate: called at most once for each value; returns what fits into *dtype*.
        dtype: of the result.
    """
    if len(values) <= max(_FEW, len(ids)):
        return np.array([evaluate(value) for value in values], dtype=dtype)[ids]
    needed, of_node = np.unique(ids, return_inverse=True)
    return np.array([evaluate(values[i]) for i in needed.tolist()], dtype=dtype)[of_node]
