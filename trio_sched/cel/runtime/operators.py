"""Arithmetic, equality and order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal

from trio_sched.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.values.literals import INT_LIMIT, UINT_LIMIT
from trio_sched.cel.values.network import Cidr, Ip
from trio_sched.cel.values.quantity import CelQuantity
from trio_sched.cel.values.semver import Semver
from trio_sched.cel.values.times import Duration, Timestamp
from trio_sched.cel.values.urls import Url
from trio_sched.cel.values.values import (
    MISSING,
    CelMap,
    EmptyMessage,
    Failed,
    NamedFormat,
    Optional,
    TypeValue,
    Uint,
    Value,
)

_RECEIVERS: Final = (str, Timestamp, Duration)
"""Types whose operators fail without being named."""
_PARTICULAR: Final = frozenset({CelQuantity, Semver, Ip, Cidr, Url, NamedFormat})
"""Types whose values cannot be compared with those of other types."""
_COMPARING: Final = 3
"""How much more work it is to compare two elements than to copy one."""


def _failed(operator: str, left: Value) -> EvaluationError:
    """The error that values of the type of *left* do not have *operator*."""
    return EvaluationError(NO_SUCH_OVERLOAD if type(left) in _RECEIVERS else f"{NO_SUCH_OVERLOAD}: {operator}")


def int_of(number: int) -> int:
    """*number*, if it is an int.

    Raises:
        EvaluationError: it does not fit.
    """
    if -INT_LIMIT <= number < INT_LIMIT:
        return number
    raise EvaluationError("integer overflow")


def uint_of(number: int) -> Uint:
    """*number* as a uint.

    Raises:
        EvaluationError: it does not fit.
    """
    if 0 <= number < UINT_LIMIT:
        return Uint(number)
    raise EvaluationError("unsigned integer overflow")


def add(activation: Activation, left: Value, right: Value) -> Value:
    """``left + right``."""
    kind = type(left)
    if kind not in _ADDERS:
        raise _failed("_+_", left)
    if kind is Timestamp and type(right) is Duration:
        return left.plus(right.nanoseconds)
    if kind is Duration and type(right) is Timestamp:
        return right.plus(left.nanoseconds)
    if type(right) is not kind or kind is Timestamp:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    if kind is int:
        return int_of(left + right)
    if kind is Uint:
        return uint_of(int(left) + right)
    if kind is Duration:
        return Duration(int_of(left.nanoseconds + right.nanoseconds))
    if kind is list:
        activation.spend(len(left) + len(right))
        if activation.grows(left):
            left.extend(right)
            return left
    elif kind is not float:
        activation.spend(0, len(left) + len(right))
    return left + right


_ADDERS: Final = frozenset({int, Uint, float, str, bytes, list, Timestamp, Duration})


def subtract(_activation: Activation, left: Value, right: Value) -> Value:
    """``left - right``."""
    kind = type(left)
    if kind not in (int, Uint, float, Timestamp, Duration):
        raise _failed("_-_", left)
    if kind is Timestamp and type(right) is Duration:
        return left.plus(int_of(-right.nanoseconds))
    if type(right) is not kind:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    if kind is int:
        return int_of(left - right)
    if kind is Uint:
        return uint_of(int(left) - right)
    if kind is Timestamp:
        return left.since(right)
    return Duration(int_of(left.nanoseconds - right.nanoseconds)) if kind is Duration else left - right


def _numeric(
    operator: str, of_ints: Callable[[int, int], int], of_doubles: Callable[[float, float], float] | None
) -> Callable[[Activation, Value, Value], Value]:
    def calculate(_activation: Activation, left: Value, right: Value) -> Value:
        kind = type(left)
        if kind is not int and kind is not Uint and (kind is not float or of_doubles is None):
            raise _failed(operator, left)
        if type(right) is not kind:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        if kind is int:
            return int_of(of_ints(left, right))
        if kind is Uint:
            return uint_of(of_ints(int(left), int(right)))
        assert of_doubles is not None
        return of_doubles(left, right)

    return calculate


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    if right == -1:
        int_of(-left)  # Go finds that the quotient overflows
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _quotient_of_doubles(left: float, right: float) -> float:
    if right == 0.0:
        if left == 0.0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


ARITHMETIC: Final[dict[str, Callable[[Activation, Value, Value], Value]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": _numeric("_*_", lambda left, right: left * right, lambda left, right: left * right),
    "_/_": _numeric("_/_", _quotient, _quotient_of_doubles),
    "_%_": _numeric("_%_", _remainder, None),
}
"""Operator → what it does."""


def negate(value: Value) -> Value:
    """``-value``."""
    kind = type(value)
    if kind is int:
        return int_of(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return Duration(int_of(-value.nanoseconds))
    raise EvaluationError(NO_SUCH_OVERLOAD) if kind is bool else _failed("-_", value)


# --- equality --------------------------------------------------------------------------------------------------------


def types_equal(activation: Activation, left: Value, right: Value) -> bool | None:
    """Whether ``left == right``; None if they cannot be compared."""
    if left is None or right is None:
        return left is right
    return equal(activation, left, right)


def equal(activation: Activation, left: Value, right: Value) -> bool | None:
    """Like `types_equal`, but a type that cannot be compared with others cannot be compared with null either."""
    kind = type(left)
    if kind is str or kind is bool or kind is bytes:
        return type(right) is kind and bool(left == right)
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and _equal_numbers(left, right)
    if kind in _PARTICULAR:
        return _equal_particular(left, right) if type(right) is kind else None
    if kind is list:
        return type(right) is list and _equal_lists(activation, left, right)
    if kind is CelMap:
        return type(right) is CelMap and _equal_maps(activation, left, right)
    if kind is Optional:
        if type(right) is not Optional or left.is_none or right.is_none:
            return type(right) is Optional and left.is_none and right.is_none
        parts = left.value, right.value
        return None if Failed in map(type, parts) else equal(activation, *parts)
    return type(right) is kind and bool(left == right)


_NUMBERS: Final = frozenset({int, Uint, float})


def _equal_numbers(left: float, right: float) -> bool:
    if type(left) is float or type(right) is float:
        return left == left and right == right and _compare_numbers(left, right) == 0
    return left == right


def _equal_particular(left: Value, right: Value) -> bool | None:
    if type(left) is CelQuantity:
        # What add and sub return is of another type in the original, but only where it is on the right.
        return None if right.is_sum else left.compare(right) == 0
    return bool(left == right)


def _equal_lists(activation: Activation, left: list[Value], right: list[Value]) -> bool:
    if len(left) != len(right):
        return False
    activation.spend(_COMPARING * len(left))
    return all(types_equal(activation, one, other) is not False for one, other in zip(left, right, strict=True))


def _equal_maps(activation: Activation, left: CelMap, right: CelMap) -> bool:
    if len(left) != len(right):
        return False
    activation.spend(_COMPARING * len(left))
    for key, value in left.items():
        other = right.find(key)
        if other is MISSING or types_equal(activation, value, other) is False:
            return False
    return True


def contains(activation: Activation, element: Value, among: list[Value]) -> bool:
    """Whether *element* equals one of *among*."""
    return any(equal(activation, element, one) is True for one in among)


# --- order -----------------------------------------------------------------------------------------------------------

COMPARABLE: Final = frozenset({bool, int, Uint, float, str, bytes, Timestamp, Duration})
_SAME: Final = frozenset({bool, str, bytes, Timestamp, Duration})


def compare(left: Value, right: Value) -> Literal[-1, 0, 1]:
    """Which of two values comes first; *left* is of a type that has an order.

    Raises:
        EvaluationError: there is no order between them.
    """
    kind = type(left)
    if kind is type(right) and kind is not float:
        return -1 if left < right else 1 if left > right else 0
    if kind in _SAME:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    if left != left:
        raise EvaluationError("NaN values cannot be ordered")
    if type(right) not in _NUMBERS:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    if right != right:
        raise EvaluationError("NaN values cannot be ordered")
    return _compare_numbers(left, right)


def _compare_numbers(left: float, right: float) -> Literal[-1, 0, 1]:
    """Compare numbers of different types, or doubles; none of them is NaN."""
    if type(left) is float and type(right) is not float:
        limits = (-(2.0**63), 2.0**63) if type(right) is int else (0.0, 2.0**64)
        if left < limits[0]:
            return -1
        if left > limits[1]:
            return 1
        right = float(right)
    elif type(right) is float and type(left) is not float:
        opposite = _compare_numbers(right, left)
        return -1 if opposite > 0 else 1 if opposite < 0 else 0
    return -1 if left < right else 1 if left > right else 0


def _ordering(operator: str, answers: frozenset[int]) -> Callable[[Activation, Value, Value], Value]:
    def ordered(_activation: Activation, left: Value, right: Value) -> Value:
        if type(left) not in COMPARABLE:
            raise EvaluationError(f"{NO_SUCH_OVERLOAD}: {operator}")
        return compare(left, right) in answers

    return ordered


ORDER: Final = {
    "_<_": _ordering("_<_", frozenset({-1})),
    "_<=_": _ordering("_<=_", frozenset({-1, 0})),
    "_>_": _ordering("_>_", frozenset({1})),
    "_>=_": _ordering("_>=_", frozenset({0, 1})),
}
"""Operator → what it does."""


def is_zero(value: Value) -> bool:
    """Whether ``optional.ofNonZeroValue(value)`` is none."""
    kind = type(value)
    if value is None:
        return True
    if kind is Duration:
        return bool(value.nanoseconds == 0)
    if kind is Timestamp:
        return bool(value == _ZERO_TIME)
    return kind is EmptyMessage or (kind not in _NEVER_ZERO and not value)


_ZERO_TIME: Final = Timestamp(-62_135_596_800)
_NEVER_ZERO: Final = frozenset({*_PARTICULAR, Optional, TypeValue})
