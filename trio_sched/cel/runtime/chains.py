"""Selections and indexing: ``a.b["c"].?d``, which is one thing with a cost of its own, however long it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from attrs import frozen

from trio_sched.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.values.network import Cidr, Ip
from trio_sched.cel.values.numbers import double_text
from trio_sched.cel.values.quantity import CelQuantity
from trio_sched.cel.values.semver import Semver
from trio_sched.cel.values.times import Duration
from trio_sched.cel.values.urls import Url
from trio_sched.cel.values.values import (
    MISSING,
    NONE,
    CelMap,
    Failed,
    Optional,
    TypeValue,
    Uint,
    Value,
    go_type,
    lossless_int,
    type_name,
)
from trio_sched.go.durations import format_duration

Step = Callable[[Activation], Value]


class Variable:
    """A step whose value is that of a variable."""

    __slots__ = ("slot",)

    def __init__(self, slot: int) -> None:
        self.slot = slot

    def __call__(self, activation: Activation) -> Value:  # noqa: D102  # a step like any other
        return activation.values[self.slot]


KEYS: Final = frozenset({str, int, Uint, float, bool})
"""Types of what can be between brackets."""


@frozen(eq=False)
class Qualifier:
    """One part of a chain."""

    key: Value = MISSING
    """If it is constant."""
    step: Step | None = None
    """Its value otherwise."""
    is_optional: bool = False
    tests: bool = False
    """It is asked whether it is there: the last part of ``has``."""


def shown(value: Value, limit: int = 200) -> str:
    """A value as errors show it; of lists and maps at most *limit* parts."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case None:
            return "0"
        case bytes():
            return f"[{' '.join(map(str, value[:limit]))}]"
        case Duration():
            return format_duration(value.nanoseconds)
        case list():
            share = limit // max(len(value), 1)
            return f"[{', '.join(shown(part, share) for part in value[:limit])}]"
        case CelMap():
            share = limit // max(len(value), 1)
            entries = (f"{shown(key, share)}: {shown(part, share)}" for key, part in islice(value.items(), limit))
            return "{" + ", ".join(entries) + "}"
        case TypeValue():
            return value.name
        case Optional():
            return "optional.none()" if value.is_none else f"optional({shown(value.value, limit)})"
    return str(value)


def found_in(holder: Value, key: Value, *, tests: bool) -> Value:
    """What *holder* has under *key*; `MISSING` if it has not and *tests*.

    Raises:
        EvaluationError: it does not have it, or the key is none for it.
    """
    if type(holder) is CelMap:
        found = holder.find(key)
        if found is not MISSING or tests:
            return found
    elif type(holder) is list:
        index = list_index(key)
        if 0 <= index < len(holder):
            return holder[index]
        if not tests:
            raise EvaluationError(f"index out of bounds: {shown(key)}")
    if tests:
        return MISSING
    raise EvaluationError(f"no such key: {shown(key)}")


def list_index(key: Value) -> int:
    """The index that *key* is.

    Raises:
        EvaluationError: it is none.
    """
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is float or kind is Uint:
        index = lossless_int(key) if kind is float else int(key) if key < 1 << 63 else None
        if index is None:
            raise EvaluationError(f"unsupported index value {shown(key)} in list")
        return index
    raise EvaluationError(f"unsupported index type '{type_text(key)}' in list")


def type_text(value: Value) -> str:
    """The type of *value* as some errors show it."""
    name = type_name(value)
    return {"list": "list(dyn)", "map": "map(dyn, dyn)"}.get(name, name)


_UNREADABLE: Final = {
    CelQuantity: "*resource.Quantity",
    Semver: "semver.Version",
    Url: "*url.URL",
    Ip: "netip.Addr",
    Cidr: "netip.Prefix",
}
"""Types whose values the original cannot take out of an optional that it reads from a variable."""


def read_again(value: Optional) -> Optional:
    """An optional as variables and branches of ``?:`` give it: the original takes its value apart and back together."""
    inner = value.value
    while type(inner) is Optional:
        inner = None if inner.is_none else inner.value
    if type(inner) is TypeValue:
        return Optional(inner.name)
    if type(inner) in _UNREADABLE:
        return Optional(Failed(f"unsupported conversion to ref.Val: ({_UNREADABLE[type(inner)]}){inner}"))
    return value if inner is value.value else Optional(inner)


def present(value: Optional) -> Value:
    """The value of an optional that is not none.

    Raises:
        EvaluationError: the original could not read it.
    """
    if type(value.value) is Failed:
        raise EvaluationError(value.value.problem)
    return value.value


def chain(base: Step, qualifiers: Sequence[Qualifier], *, in_branch: bool) -> Step:
    """What evaluates *base* and then *qualifiers*.

    Directly in a branch of ``?:`` the base costs nothing, and ``has`` of what is in an optional is an optional.
    """
    base_cost = 0 if in_branch or (qualifiers and qualifiers[-1].tests) else 1
    if not qualifiers:

        def unqualified(activation: Activation) -> Value:
            activation.cost += base_cost
            value = base(activation)
            return read_again(value) if type(value) is Optional else value

        return unqualified
    as_bool = qualifiers[-1].tests and not in_branch
    if all(type(one.key) is str and not one.is_optional and not one.tests for one in qualifiers):
        names = tuple(one.key for one in qualifiers)
        if isinstance(base, Variable):
            return _of_variable(base.slot, base_cost, names)
        return _of_names(base, base_cost, names)

    def qualified(activation: Activation) -> Value:
        activation.cost += base_cost
        value = base(activation)
        is_optional = type(value) is Optional
        if is_optional:
            if value.is_none:
                return False if as_bool else value
            value = present(read_again(value))
        for one in qualifiers:
            is_optional = is_optional or one.is_optional
            value = _optionally(activation, value, one) if is_optional else _strictly(activation, value, one)
            if is_optional and value is MISSING:
                return False if as_bool else NONE
        if is_optional:
            return True if as_bool else Optional(value)
        return value

    return qualified


def _of_names(base: Step, base_cost: int, names: tuple[str, ...]) -> Step:
    """The usual chain: only names."""

    def named(activation: Activation) -> Value:
        activation.cost += base_cost
        value = base(activation)
        if type(value) is Optional:
            return _names_of_optional(activation, value, names)
        for name in names:
            activation.cost += 1
            if type(value) is CelMap:
                value = value.entries.get(name, value.default)
                if value is not MISSING:
                    continue
                raise EvaluationError(f"no such key: {name}")
            value = found_in(value, name, tests=False)
        return value

    return named


def _of_variable(slot: int, base_cost: int, names: tuple[str, ...]) -> Step:
    """Names in a variable, which is what nearly all chains are."""
    slow = _of_names(Variable(slot), base_cost, names)
    cost = base_cost + len(names)

    def named(activation: Activation) -> Value:
        value = activation.values[slot]
        for name in names:
            if type(value) is not CelMap:
                return slow(activation)
            value = value.entries.get(name, value.default)
        if value is MISSING:
            return slow(activation)
        activation.cost += cost
        return value

    return named


def _names_of_optional(activation: Activation, value: Optional, names: tuple[str, ...]) -> Optional:
    found = value.value if value.is_none else present(read_again(value))
    for name in names:
        if found is MISSING:
            break
        found = found_in(found, name, tests=True)
        activation.cost += found is not MISSING
    return Optional(found)


def _key(activation: Activation, one: Qualifier) -> Value:
    if one.step is None:
        return one.key
    key = one.step(activation)
    if type(key) not in KEYS:
        raise EvaluationError(f"invalid qualifier type: {go_type(key)}")
    return key


def _strictly(activation: Activation, value: Value, one: Qualifier) -> Value:
    activation.cost += 1
    key = _key(activation, one)
    found = found_in(value, key, tests=one.tests)
    return found is not MISSING if one.tests else found


def _optionally(activation: Activation, value: Value, one: Qualifier) -> Value:
    found = found_in(value, _key(activation, one), tests=True)
    if found is not MISSING or one.tests:
        activation.cost += 1
    return found


def reread(step: Step) -> Step:
    """*step* directly in a branch of ``?:``, if it is no chain itself."""

    def read(activation: Activation) -> Value:
        value = step(activation)
        return read_again(value) if type(value) is Optional else value

    return read


def tested(step: Step) -> Step:
    """``has`` of something selected from a ``?:``."""

    def test(activation: Activation) -> Value:
        activation.cost -= 1  # the original pays this back although nothing was paid for the ternary
        value = step(activation)
        return not value.is_none if type(value) is Optional else value

    return test


def branch(condition: Step, chosen: Step, other: Step) -> Step:
    """``condition ? chosen : other``."""

    def conditional(activation: Activation) -> Value:
        decided = condition(activation)
        if decided is True:
            return chosen(activation)
        if decided is False:
            return other(activation)
        raise EvaluationError(NO_SUCH_OVERLOAD)

    return conditional
