"""Sorting."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.operators import COMPARABLE, compare
from trio_sched.cel.values import Value


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
    order: list[int]
    if kind is float and any(key != key for key in keys):
        # The original takes what cannot be ordered for equal; so does this.
        order = sorted(range(len(keys)), key=cmp_to_key(lambda one, other: _lenient(keys[one], keys[other])))
    else:
        order = sorted(range(len(keys)), key=lambda index: keys[index])
    return [elements[index] for index in order]


def _lenient(one: float, other: float) -> int:
    return 0 if one != one or other != other else compare(one, other)
