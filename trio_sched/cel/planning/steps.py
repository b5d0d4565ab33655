"""What literals and operators do whose arguments are not those of a function."""

from __future__ import annotations

from collections.abc import Sequence

from trio_sched.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.runtime.chains import Step, present, shown
from trio_sched.cel.runtime.costs import LIST, MAP, MESSAGE, equality_cost, tenths
from trio_sched.cel.runtime.messages import make_message
from trio_sched.cel.runtime.operators import types_equal
from trio_sched.cel.values.values import FAILED, CelMap, Optional, Value, map_key


def plain_list(steps: Sequence[Step]) -> Step:
    """``[a, b]``."""

    def listed(activation: Activation) -> Value:
        activation.cost += LIST
        return [step(activation) for step in steps]

    return listed


def optional_list(parts: Sequence[tuple[Step, bool]]) -> Step:
    """``[a, ?b]``: the elements, and whether they are optional."""

    def listed(activation: Activation) -> Value:
        activation.cost += LIST
        found: list[Value] = []
        for step, is_optional in parts:
            value = step(activation)
            if not is_optional:
                found.append(value)
            elif type(value) is not Optional:
                problem = f"cannot initialize optional list element from non-optional value {shown(value)}"
                raise EvaluationError(problem)
            elif not value.is_none:
                found.append(present(value))
        return found

    return listed


def map_of_entries(parts: Sequence[tuple[Step, Step, bool]]) -> Step:
    """``{a: b, ?c: d}``: keys, values, and whether they are optional."""

    def mapped(activation: Activation) -> Value:
        try:
            value = entered(activation)
        except EvaluationError:
            activation.cost += MAP
            raise
        activation.cost += MAP
        return value

    def entered(activation: Activation) -> Value:
        entries: dict[object, Value] = {}
        for key_step, value_step, is_optional in parts:
            key, value = key_step(activation), value_step(activation)
            if is_optional:
                value = _optional(key, value)
                if value.is_none:
                    entries.pop(map_key(key), None)
                    continue
                value = present(value)
            entries[map_key(key)] = value
        return CelMap(entries)

    return mapped


def message(name: str, parts: Sequence[tuple[str, Step, bool]]) -> Step:
    """``name{field: value}``: fields, values, and whether they are optional."""

    def made(activation: Activation) -> Value:
        activation.cost += MESSAGE
        fields: dict[str, Value] = {}
        for key, step, is_optional in parts:
            value = step(activation)
            if is_optional:
                value = _optional(key, value)
                if value.is_none:
                    fields.pop(key, None)
                    continue
                value = present(value)
            fields[key] = value
        return make_message(activation, name, fields)

    return made


def _optional(key: Value, value: Value) -> Optional:
    if type(value) is Optional:
        return value
    shown_value = shown(value)
    raise EvaluationError(f"cannot initialize optional entry '{shown(key)}' from non-optional value {shown_value}")


def equals(activation: Activation, left: Value, right: Value) -> bool:
    """``left == right``."""
    found = types_equal(activation, left, right)
    if found is None:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    return found


def equals_text(left: Step, text: str) -> Step:
    """``left == text``, which is what most selectors consist of."""
    length = len(text)

    def equal(activation: Activation) -> Value:
        try:
            value = left(activation)
        except EvaluationError:
            activation.cost += equality_cost(FAILED, text)
            raise
        if type(value) is str:
            activation.cost += tenths(min(length, len(value)))
            return value == text
        activation.cost += equality_cost(value, text)
        return equals(activation, value, text)

    return equal


def differs(activation: Activation, left: Value, right: Value) -> bool:
    """``left != right``."""
    return types_equal(activation, left, right) is not True


def logical(decisive: bool, steps: Sequence[Step]) -> Step:
    """A chain of ``||``, which true decides, or of ``&&``, which false does."""

    def decide(activation: Activation) -> Value:
        problem: str | None = None
        for step in steps:
            try:
                found = step(activation)
            except EvaluationError as error:
                problem = problem or str(error)
                continue
            if found is decisive:
                return decisive
            if type(found) is not bool:
                problem = problem or NO_SUCH_OVERLOAD
        if problem is not None:
            raise EvaluationError(problem)
        return not decisive

    return decide


def or_else(first: Step, other: Step, *, unwraps: bool) -> Step:
    """``first.or(other)``, or ``first.orValue(other)``."""

    def chosen(activation: Activation) -> Value:
        found = first(activation)
        if type(found) is not Optional:
            return found
        if found.is_none:
            return other(activation)
        return present(found) if unwraps else found

    return chosen
