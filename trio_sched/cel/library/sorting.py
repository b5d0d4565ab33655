"""Sorting."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.runtime.operators import COMPARABLE, compare
from trio_sched.cel.values.values import Value


def sorted_by(elements: list[Value], keys: list[Any]) -> list[Value]:
    """*elements* in the order of their *keys*.

    Raises:
        EvaluationError: keys of some types have no order.
    """
    if not keys:
        return list(elements)
    kind = type(keys[0])
    if kind not in COMPARABLE:
        raise EvaluationError("list elements must be comparable")
    if len(keys) > 1 and any(type(key) is not kind for key in keys):
        raise EvaluationError("list elements must have the same type")
    leniently = cmp_to_key(_lenient)
    indices = list(range(len(keys)))
    if kind is float and any(key != key for key in keys):
        indices.sort(key=lambda index: leniently(keys[index]))
    else:
        indices.sort(key=lambda index: keys[index])
    return [elements[index] for index in indices]


def _lenient(left: float, right: float) -> int:
    """The order of two keys; the original takes what has none for equal."""
    return 0 if left != left or right != right else compare(left, right)
