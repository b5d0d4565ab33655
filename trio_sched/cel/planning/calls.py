"""Calls of functions: arguments, costs, and the choice between overloads while an expression is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from trio_sched.cel.checking.declarations import Overload, functions
from trio_sched.cel.errors import NO_SUCH_OVERLOAD, CompileError, EvaluationError
from trio_sched.cel.library.function_table import SINGLE, implementations
from trio_sched.cel.library.regexes import compiled, find_all_constant, find_constant, matches_constant
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.runtime.chains import Step
from trio_sched.cel.runtime.costs import RESULT_COSTS, Cost, cost_of, overload_key
from trio_sched.cel.values.types import ANY, DYN, Type
from trio_sched.cel.values.values import FAILED, CelMap, Value, python_type, type_name

_IN_ORDER: Final = frozenset({"format(string, list)"})
"""Functions of two arguments whose second is not evaluated if the first fails; likewise all of three and more."""
_WITH_PATTERN: Final = {"matches": matches_constant, "find": find_constant, "findAll": find_all_constant}
_PARSERS: Final = frozenset({"quantity", "semver", "ip", "cidr", "url"})
"""Functions whose results are kept if their arguments are constant."""
CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions that are called beforehand if their argument is constant."""


class Fixed:
    """A step whose value is known beforehand."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, _activation: Activation) -> Value:  # noqa: D102  # a step like any other
        return self.value


def not_instantiated(problem: object) -> CompileError:
    """The error that an expression whose types fit still cannot be evaluated."""
    return CompileError(f"program instantiation failed: {problem}")


def no_overload(name: str, arguments: Sequence[Value]) -> EvaluationError:
    """The error that no function of that name takes such values."""
    return EvaluationError(f"{NO_SUCH_OVERLOAD}: {name}({', '.join(map(type_name, arguments))})")


def call(name: str, overloads: tuple[Overload, ...], arguments: Sequence[Step]) -> Step:
    """What evaluates *arguments* and calls *name* with them.

    Raises:
        CompileError: it cannot succeed, whatever it is evaluated for.
    """
    if name in _WITH_PATTERN and isinstance(arguments[1], Fixed) and type(arguments[1].value) is str:
        try:
            compiled(arguments[1].value)
        except EvaluationError as error:
            raise not_instantiated(error) from error
        step = _call(_WITH_PATTERN[name](arguments[1].value), cost_of(name, overloads), arguments, eager=False)
    else:
        eager = len(overloads) == 1 or name in SINGLE
        eager = eager and len(arguments) == 2 and overload_key(name, overloads[0]) not in _IN_ORDER
        step = _call(dispatcher(name, overloads), cost_of(name, overloads), arguments, eager=eager)
    if name in _PARSERS and all(isinstance(argument, Fixed) for argument in arguments):
        return _parsed_once(step)
    if name in RESULT_COSTS:
        step = _paid_by_result(step, RESULT_COSTS[name])
    if name in CONVERSIONS and all(isinstance(argument, Fixed) for argument in arguments):
        try:
            return Fixed(step(Activation(0)))
        except EvaluationError as error:
            raise not_instantiated(error) from error
    return step


def _parsed_once(step: Step) -> Step:
    """A call that always has the same result; it is paid for every time."""
    activation = Activation(0)
    try:
        value = step(activation)
    except EvaluationError:
        return step
    cost = activation.cost

    def parsed(activation: Activation) -> Value:
        activation.cost += cost
        return value

    return parsed


def _paid_by_result(step: Step, cost: Callable[[Value], int]) -> Step:
    def paid(activation: Activation) -> Value:
        try:
            result = step(activation)
        except EvaluationError:
            activation.cost += cost(FAILED) - 1  # one was paid for the call
            raise
        activation.charge(cost(result) - 1)
        return result

    return paid


# --- the choice between overloads ------------------------------------------------------------------------------------

Implementation = Callable[..., Value]


def dispatcher(name: str, overloads: tuple[Overload, ...]) -> Implementation:
    """What is called with an activation and the values of the arguments."""
    table = implementations()
    if name in SINGLE:
        return table[name]
    if len(overloads) == 1:
        return _guarded(name, overloads[0])
    count = len(overloads[0].arguments)
    choices = [one for one in functions()[name] if len(one.arguments) == count]

    def dispatched(activation: Activation, *arguments: Value) -> Value:
        for fits, implementation in guarded:
            if fits(*arguments):
                return implementation(activation, *arguments)
        raise no_overload(name, arguments)

    guarded = [(_fitting(one.arguments), _implementation(name, one)) for one in choices]
    return dispatched


def _implementation(name: str, overload: Overload) -> Implementation:
    table = implementations()
    return table.get(f"{name}({', '.join(map(str, overload.arguments))})") or table[overload_key(name, overload)]


def _guarded(name: str, overload: Overload) -> Implementation:
    implementation = _implementation(name, overload)
    wanted = overload.arguments
    if all(_is_any(one) for one in wanted) or name == "flatten":
        return implementation
    if len(wanted) == 1 and (kind := _only_class(wanted[0])) is not None:

        def checked_one(activation: Activation, value: Value) -> Value:
            if type(value) is not kind:
                raise no_overload(name, (value,))
            return implementation(activation, value)

        return checked_one
    fits = _fitting(wanted)

    def checked(activation: Activation, *arguments: Value) -> Value:
        if not fits(*arguments):
            raise no_overload(name, arguments)
        return implementation(activation, *arguments)

    return checked


def _is_any(wanted: Type) -> bool:
    return wanted in (DYN, ANY) or wanted.is_parameter


def _only_class(wanted: Type) -> type | None:
    """The class of the values that fit, if nothing else must be looked at."""
    if _is_any(wanted) or (wanted.name in ("list", "map") and not all(map(_is_any, wanted.parameters))):
        return None
    return python_type(wanted.name)


def _fitting(wanted: tuple[Type, ...]) -> Callable[..., bool]:
    classes = [_only_class(one) for one in wanted]

    def fits(*values: Value) -> bool:
        for kind, one, value in zip(classes, wanted, values, strict=True):
            if type(value) is not kind and (kind is not None or not _fits(one, value)):
                return False
        return True

    return fits


def _fits(wanted: Type, value: Value) -> bool:
    """Whether *value* is of the type; of lists and maps the first element decides."""
    if _is_any(wanted):
        return True
    if type(value) is not python_type(wanted.name):
        return False
    if type(value) is list and value:
        return _fits(wanted.parameters[0], value[0])
    if type(value) is CelMap and len(value):
        first = next(iter(value.items()))
        return all(map(_fits, wanted.parameters, first))
    return True


# --- arguments and costs ---------------------------------------------------------------------------------------------


def _call(implementation: Implementation, cost: Cost | None, arguments: Sequence[Step], *, eager: bool) -> Step:
    if not arguments:
        return _without_arguments(implementation)
    if len(arguments) == 1:
        return _with_one(implementation, cost, arguments[0])
    if len(arguments) == 2 and eager:
        return binary(implementation, cost, *arguments)
    return _in_order(implementation, cost, tuple(arguments))


def _without_arguments(implementation: Implementation) -> Step:
    def called(activation: Activation) -> Value:
        activation.cost += 1
        return implementation(activation)

    return called


def _with_one(implementation: Implementation, cost: Cost | None, argument: Step) -> Step:
    if cost is None:

        def called(activation: Activation) -> Value:
            activation.cost += 1
            return implementation(activation, argument(activation))

        return called
    measured = cost

    def paid(activation: Activation) -> Value:
        try:
            value = argument(activation)
        except EvaluationError:
            activation.charge(measured(FAILED))
            raise
        activation.charge(measured(value))
        return implementation(activation, value)

    return paid


def binary(implementation: Implementation, cost: Cost | None, left: Step, right: Step) -> Step:
    """An operator or function of two arguments, both of which are evaluated even if the first one fails."""
    measured = cost or _one

    def called(activation: Activation) -> Value:
        try:
            one = left(activation)
        except EvaluationError:
            try:
                other = right(activation)
            except EvaluationError:
                other = FAILED
            activation.charge(measured(FAILED, other))
            raise
        try:
            other = right(activation)
        except EvaluationError:
            activation.charge(measured(one, FAILED))
            raise
        activation.charge(measured(one, other))
        return implementation(activation, one, other)

    return called


def _one(_left: Value, _right: Value) -> int:
    return 1


def _in_order(implementation: Implementation, cost: Cost | None, arguments: tuple[Step, ...]) -> Step:
    """A call that is not paid for if an argument before the last one fails."""
    *before, last = arguments

    def called(activation: Activation) -> Value:
        values = [argument(activation) for argument in before]
        try:
            values.append(last(activation))
        except EvaluationError:
            activation.charge(1 if cost is None else cost(*values, FAILED))
            raise
        activation.charge(1 if cost is None else cost(*values))
        return implementation(activation, *values)

    return called
