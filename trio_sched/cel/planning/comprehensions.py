"""Macros that go over lists and maps, with the cost of what they stand for in the original.

What goes wrong with an element is kept while the others are looked at: costs count them, and for ``all`` and ``exists``
another element may still decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from attrs import frozen

from trio_sched.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from trio_sched.cel.library.sorting import sorted_by
from trio_sched.cel.planning.calls import Fixed
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.runtime.chains import Step, shown
from trio_sched.cel.runtime.costs import LIST, self_comparison_cost
from trio_sched.cel.values.values import FAILED, MISSING, CelMap, Value, go_type, map_key, type_name


@frozen(eq=False)
class Loop:
    """A macro without its meaning."""

    over: Step
    slots: tuple[int, ...]
    """Where its variables are: one, or those of index or key and value."""
    body: Step
    condition: Step | None


def _over(loop: Loop, activation: Activation) -> Iterable[None]:
    """Set the variables to one element after the other."""
    values = activation.values
    over = loop.over(activation)
    kind = type(over)
    if len(loop.slots) == 1:
        (slot,) = loop.slots
        if kind is list:
            elements: Iterable[Value] = over
        elif kind is CelMap:
            elements = [key for key, _value in over.items()]
        else:
            raise EvaluationError(f"got '{go_type(over)}', expected iterable type")
        for element in elements:
            activation.charge(0)
            values[slot] = element
            yield
        return
    first, second = loop.slots
    if kind is not list and kind is not CelMap:
        raise EvaluationError(f"unsupported comprehension range type: {go_type(over)}")
    for key, value in enumerate(over) if kind is list else over.items():
        activation.charge(0)
        values[first], values[second] = key, value
        yield


def _quantifier(loop: Loop, stops_at: bool, cost_to_stop: int) -> Step:
    """``all``, which stops at the first false, and ``exists``, which stops at the first true."""
    body = loop.body

    def decide(activation: Activation) -> Value:
        problem: str | None = None
        decided = False
        for _ in _over(loop, activation):
            activation.cost += cost_to_stop
            if decided:
                break
            activation.cost += 1
            try:
                found = body(activation)
                if found is stops_at:
                    decided = True
                elif type(found) is not bool:
                    raise EvaluationError(NO_SUCH_OVERLOAD)
            except EvaluationError as error:
                problem = problem or str(error)
        activation.cost += 1
        if decided:
            return stops_at
        if problem is not None:
            raise EvaluationError(problem)
        return not stops_at

    return decide


def _all(loop: Loop) -> Step:
    return _quantifier(loop, False, 2)


def _exists(loop: Loop) -> Step:
    return _quantifier(loop, True, 3)


def _holds(activation: Activation, condition: Step) -> bool:
    found = condition(activation)
    if type(found) is not bool:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    return found


def _exists_one(loop: Loop) -> Step:
    body = loop.body

    def count(activation: Activation) -> Value:
        hits = 0
        problem: str | None = None
        for _ in _over(loop, activation):
            try:
                if _holds(activation, body):
                    activation.cost += 2
                    hits += 1
            except EvaluationError as error:
                problem = str(error)  # the last one is reported
        activation.cost += 2
        if problem is not None:
            raise EvaluationError(problem)
        return hits == 1

    return count


def _to_list(loop: Loop, condition: Step | None, body: Step) -> Step:
    """``map``, ``filter`` and ``transformList``."""
    cost = 2 if isinstance(body, Fixed) else 2 + LIST

    def collect(activation: Activation) -> Value:
        found: list[Value] = []
        problem: str | None = None
        for _ in _over(loop, activation):
            if condition is not None:
                try:
                    if not _holds(activation, condition):
                        continue
                except EvaluationError as error:
                    problem = str(error)
                    continue
            activation.cost += cost
            try:
                found.append(body(activation))
            except EvaluationError as error:
                problem = problem or str(error)
        activation.cost += 1
        if problem is not None:
            raise EvaluationError(problem)
        return found

    return collect


def _map(loop: Loop) -> Step:
    return _to_list(loop, loop.condition, loop.body)


def _filter(loop: Loop) -> Step:
    (slot,) = loop.slots

    def element(activation: Activation) -> Value:
        activation.cost += 1
        return activation.values[slot]

    return _to_list(loop, loop.body, element)


Insert = Callable[[Activation, CelMap, str | None], None]


def _to_map(loop: Loop, insert: Insert) -> Step:
    def collect(activation: Activation) -> Value:
        found = CelMap({})
        problem: str | None = None
        for _ in _over(loop, activation):
            try:
                if loop.condition is not None and not _holds(activation, loop.condition):
                    continue
            except EvaluationError as error:
                problem = str(error)
                continue
            try:
                insert(activation, found, problem)
            except EvaluationError as error:
                problem = problem or str(error)
        activation.cost += 1
        if problem is not None:
            raise EvaluationError(problem)
        return found

    return collect


def _transform_map(loop: Loop) -> Step:
    slot = loop.slots[0]
    body = loop.body

    def insert(activation: Activation, into: CelMap, problem: str | None) -> None:
        activation.cost += 1
        if problem is None:  # otherwise nothing more is evaluated
            activation.cost += 2
            value = body(activation)
            _insert(into, activation.values[slot], value)

    return _to_map(loop, insert)


def _transform_map_entry(loop: Loop) -> Step:
    body = loop.body

    def insert(activation: Activation, into: CelMap, problem: str | None) -> None:
        activation.cost += 2
        entries = body(activation)
        if type(entries) is not CelMap:
            raise EvaluationError(f"{NO_SUCH_OVERLOAD}: cel.@mapInsert(map, {type_name(entries)})")
        if problem is None:
            activation.spend(len(entries))
            for key, value in entries.items():
                _insert(into, key, value)

    return _to_map(loop, insert)


def _insert(into: CelMap, key: Value, value: Value) -> None:
    if into.find(key) is not MISSING:
        raise EvaluationError(f"insert failed: key {shown(key)} already exists")
    into.entries[map_key(key)] = value


QUANTIFIERS: Final[dict[str, Callable[[Loop], Step]]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_map_entry,
}
"""Macro → what it does; all but ``sortBy``."""


def sort_by(over: Step, slots: tuple[int, int], key: Step, *, is_cost_known: bool) -> Step:
    """``over.sortBy(x, key)``; *slots* are those of the list and of ``x``; *is_cost_known* if the type of keys is."""
    target_slot, slot = slots

    def once(activation: Activation) -> Value:
        return activation.values[target_slot]

    def sort(activation: Activation) -> Value:
        activation.cost += 1
        problem: str | None = None
        keys: Value = FAILED
        try:
            target = activation.values[target_slot] = over(activation)
        except EvaluationError as error:
            problem = str(error)
            activation.cost += 1
        else:
            activation.cost += 1
            try:
                keys = keys_of(activation)
            except EvaluationError as error:
                problem = str(error)
        activation.charge(self_comparison_cost(keys) if is_cost_known else 1)
        if problem is not None:
            raise EvaluationError(problem)
        return sorted_by(target, keys)

    keys_of = _to_list(Loop(once, (slot,), key, None), None, key)
    return sort
