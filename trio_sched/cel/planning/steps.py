"""What literals and operators do whose arguments are not those of a function."""

from __future__ import annotations

from collections.abc import Sequence

from trio_sched.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from trio_sched.cel.runtime.activation import Frame
from trio_sched.cel.runtime.chains import Step, present, shown
from trio_sched.cel.runtime.costs import LIST, MAP, MESSAGE, equality_cost, tenths
from trio_sched.cel.runtime.messages import make_message
from trio_sched.cel.runtime.operators import types_equal
from trio_sched.cel.values.values import FAILED, CelMap, Optional, Value, map_key


def plain_list(steps: Sequence[Step]) -> Step:
    """``[a, b]``."""

    def listed(frame: Frame) -> Value:
        frame.cost += LIST
        return [step(frame) for step in steps]

    return listed


def optional_list(parts: Sequence[tuple[Step, bool]]) -> Step:
    """``[a, ?b]``: the elements, and whether they are optional."""

    def listed(frame: Frame) -> Value:
        frame.cost += LIST
        found: list[Value] = []
        for step, is_optional in parts:
            value = step(frame)
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

    def mapped(frame: Frame) -> Value:
        try:
            value = entered(frame)
        except EvaluationError:
            frame.cost += MAP
            raise
        frame.cost += MAP
        return value

    def entered(frame: Frame) -> Value:
        entries: dict[object, Value] = {}
        for key_step, value_step, is_optional in parts:
            key, value = key_step(frame), value_step(frame)
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

    def made(frame: Frame) -> Value:
        frame.cost += MESSAGE
        fields: dict[str, Value] = {}
        for key, step, is_optional in parts:
            value = step(frame)
            if is_optional:
                value = _optional(key, value)
                if value.is_none:
                    fields.pop(key, None)
                    continue
                value = present(value)
            fields[key] = value
        return make_message(frame, name, fields)

    return made


def _optional(key: Value, value: Value) -> Optional:
    if type(value) is Optional:
        return value
    shown_value = shown(value)
    raise EvaluationError(f"cannot initialize optional entry '{shown(key)}' from non-optional value {shown_value}")


def equals(frame: Frame, left: Value, right: Value) -> bool:
    """``left == right``."""
    found = types_equal(frame, left, right)
    if found is None:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    return found


def equals_text(left: Step, text: str) -> Step:
    """``left == text``, which is what most selectors consist of."""
    length = len(text)

    def equal(frame: Frame) -> Value:
        try:
            value = left(frame)
        except EvaluationError:
            frame.cost += equality_cost(FAILED, text)
            raise
        if type(value) is str:
            frame.cost += tenths(min(length, len(value)))
            return value == text
        frame.cost += equality_cost(value, text)
        return equals(frame, value, text)

    return equal


def differs(frame: Frame, left: Value, right: Value) -> bool:
    """``left != right``."""
    return types_equal(frame, left, right) is not True


def logical(decisive: bool, steps: Sequence[Step]) -> Step:
    """A chain of ``||``, which true decides, or of ``&&``, which false does."""

    def decide(frame: Frame) -> Value:
        problem: str | None = None
        for step in steps:
            try:
                found = step(frame)
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

    def chosen(frame: Frame) -> Value:
        found = first(frame)
        if type(found) is not Optional:
            return found
        if found.is_none:
            return other(frame)
        return present(found) if unwraps else found

    return chosen
