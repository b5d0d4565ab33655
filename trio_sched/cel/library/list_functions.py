"""Functions of lists and sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from trio_sched.cel.errors import COST_EXCEEDED, NO_SUCH_OVERLOAD, Aborted, EvaluationError
from trio_sched.cel.library.conversions import wrong_type
from trio_sched.cel.library.sorting import sorted_by
from trio_sched.cel.runtime.activation import COST_LIMIT, Activation
from trio_sched.cel.runtime.chains import type_text
from trio_sched.cel.runtime.operators import COMPARABLE, add, compare, contains, equal
from trio_sched.cel.values.times import Duration
from trio_sched.cel.values.values import NONE, CelMap, Optional, Uint, Value

_MAX_INCLUDED: Final = 48
"""Elements that ``includes`` looks at: as many as an attribute may have."""


def _in(activation: Activation, element: Value, among: Value) -> Value:
    if type(among) is list:
        return contains(activation, element, among)
    if type(among) is CelMap:
        return element in among
    raise EvaluationError(NO_SUCH_OVERLOAD)


def _comparable(elements: list[Value]) -> Iterable[Value]:
    for element in elements:
        if type(element) not in COMPARABLE:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        yield element


def _order(one: Value, other: Value) -> int | None:
    """None: there is no order between them."""
    try:
        return compare(one, other)
    except EvaluationError:
        return None


def _is_sorted(_activation: Activation, elements: list[Value]) -> Value:
    previous = None
    for element in _comparable(elements):
        if previous is not None and _order(previous, element) == 1:
            return False
        previous = element
    return True


def _extreme(name: str, worse: int) -> Callable[[Activation, list[Value]], Value]:
    def extreme(_activation: Activation, elements: list[Value]) -> Value:
        found = None
        for element in _comparable(elements):
            if found is None or _order(found, element) == worse:
                found = element
        if found is None:
            raise EvaluationError(f"{name} called on empty list")
        return found

    return extreme


def _sum(zero: Value) -> Callable[[Activation, list[Value]], Value]:
    def total(activation: Activation, elements: list[Value]) -> Value:
        found = zero
        for element in elements:
            found = add(activation, found, element)
        return found

    return total


def _index(activation: Activation, elements: list[Value], wanted: Value) -> Value:
    return next((index for index, one in enumerate(elements) if equal(activation, one, wanted) is True), -1)


def _last_index(activation: Activation, elements: list[Value], wanted: Value) -> Value:
    return next(
        (index for index in range(len(elements) - 1, -1, -1) if equal(activation, elements[index], wanted) is True), -1
    )


def _slice(_activation: Activation, elements: list[Value], start: int, end: int) -> Value:
    problem = ""
    if start < 0 or end < 0:
        problem = "negative indexes not supported"
    elif start > end:
        problem = "start index must be less than or equal to end index"
    elif len(elements) < end:
        problem = f"list is length {len(elements)}"
    if problem:
        raise EvaluationError(f"cannot slice({start}, {end}), {problem}")
    return elements[start:end]


def _flatten(activation: Activation, elements: Value, *given: Value) -> Value:
    """The elements of lists in the list, down to a depth; 1 if none is *given*."""
    if type(elements) is not list or (given and type(given[0]) is not int):
        raise EvaluationError(f"{NO_SUCH_OVERLOAD}: {type_text(elements)}.flatten({', '.join(map(type_text, given))})")
    (depth,) = given or (1,)
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Value] = []
    left = [iter(elements)]
    while left:
        for element in left[-1]:
            activation.spend(1)
            if type(element) is list and len(left) <= depth:
                left.append(iter(element))
                break
            found.append(element)
        else:
            left.pop()
    return found


def _range(_activation: Activation, count: int) -> Value:
    if count > COST_LIMIT:
        raise Aborted(COST_EXCEEDED)
    return list(range(count))


def _distinct(activation: Activation, elements: list[Value]) -> Value:
    found: list[Value] = []
    for element in elements:
        if not contains(activation, element, found):
            found.append(element)
    return found


def _sort(_activation: Activation, elements: Value) -> Value:
    if type(elements) is not list:
        raise wrong_type("sort", elements)
    return sorted_by(elements, elements)


def _sets_contains(activation: Activation, elements: list[Value], wanted: list[Value]) -> Value:
    return all(contains(activation, one, elements) for one in wanted)


def _sets_equivalent(activation: Activation, one: list[Value], other: list[Value]) -> Value:
    return _sets_contains(activation, one, other) and _sets_contains(activation, other, one)


def _sets_intersects(activation: Activation, one: list[Value], other: list[Value]) -> Value:
    return any(contains(activation, element, other) for element in one)


def _includes(activation: Activation, holder: Value, wanted: Value) -> Value:
    if type(holder) is not list:
        return equal(activation, holder, wanted) is True
    if any(equal(activation, one, wanted) is True for one in holder[:_MAX_INCLUDED]):
        return True
    if len(holder) > _MAX_INCLUDED:
        raise EvaluationError(f"'includes' function cannot be applied to lists longer than {_MAX_INCLUDED} values")
    return False


FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "@in": _in,
    "isSorted(list)": _is_sorted,
    "min(list)": _extreme("min", 1),
    "max(list)": _extreme("max", -1),
    "sum(list(int))": _sum(0),
    "sum(list(uint))": _sum(Uint(0)),
    "sum(list(double))": _sum(0.0),
    "sum(list(duration))": _sum(Duration(0)),
    "indexOf(list, ?A)": _index,
    "lastIndexOf(list, ?A)": _last_index,
    "slice(list, int, int)": _slice,
    "reverse(list)": lambda _activation, elements: elements[::-1],
    "distinct(list)": _distinct,
    "flatten(list)": _flatten,
    "flatten(list, int)": _flatten,
    "sort": _sort,
    "lists.range(int)": _range,
    "first(list)": lambda _activation, elements: Optional(elements[0]) if elements else NONE,
    "last(list)": lambda _activation, elements: Optional(elements[-1]) if elements else NONE,
    "sets.contains(list, list)": _sets_contains,
    "sets.equivalent(list, list)": _sets_equivalent,
    "sets.intersects(list, list)": _sets_intersects,
    "includes(?A, ?B)": _includes,
}
