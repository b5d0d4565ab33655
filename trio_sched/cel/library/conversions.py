"""Conversions, optionals, and what works for values of several types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trio_sched.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.runtime.chains import present, shown
from trio_sched.cel.runtime.operators import int_of, is_zero, negate, uint_of
from trio_sched.cel.values.literals import UINT_LIMIT
from trio_sched.cel.values.numbers import double_text, parse_float, parse_int, parse_uint
from trio_sched.cel.values.times import Duration, Timestamp, parse_cel_duration, parse_timestamp, timestamp_of
from trio_sched.cel.values.values import NONE, CelMap, Optional, TypeValue, Uint, Value, type_name

_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
RECEIVERS: Final = (str, Timestamp, Duration)
"""Types for which functions that they do not have fail without being named."""


def wrong_type(name: str, value: Value) -> EvaluationError:
    """The error that the type of *value* does not have a function that looks at types itself."""
    return EvaluationError(NO_SUCH_OVERLOAD if type(value) in RECEIVERS else f"{NO_SUCH_OVERLOAD}: {name}")


def _not(_activation: Activation, value: Value) -> Value:
    if type(value) is not bool:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    return not value


def _size(_activation: Activation, value: Value) -> Value:
    if type(value) not in (str, bytes, list, CelMap):
        raise wrong_type("size", value)
    return len(value)


def _same(_activation: Activation, value: Value) -> Value:
    return value


def _parsed(parse: Callable[[str], Value], name: str) -> Callable[[Activation, str], Value]:
    def convert(_activation: Activation, text: str) -> Value:
        found = parse(text)
        if found is None:
            raise EvaluationError(f"type conversion error from 'string' to '{name}'")
        return found

    return convert


def _parsed_uint(text: str) -> Value:
    number = parse_uint(text)
    return None if number is None else Uint(number)


def _int_of_double(_activation: Activation, number: float) -> Value:
    if not -(2.0**63) < number < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(number)


def _uint_of_double(_activation: Activation, number: float) -> Value:
    if not 0 <= number < float(UINT_LIMIT):
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


def _no_duration(_activation: Activation, _number: int) -> Value:
    raise EvaluationError("type conversion error from 'int' to 'google.protobuf.Duration'")


def text_of_bytes(value: bytes) -> str:
    """Text in UTF-8.

    Raises:
        EvaluationError: it is none.
    """
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from error


def _str(_activation: Activation, value: Value) -> Value:
    return str(value)


def _value(_activation: Activation, value: Optional) -> Value:
    if value.is_none:
        raise EvaluationError("optional.none() dereference")
    return present(value)


def _unwrap(_activation: Activation, values: list[Value]) -> Value:
    found: list[Value] = []
    for value in values:
        if type(value) is not Optional:
            raise EvaluationError(f"value {shown(value)} is not optional")
        if not value.is_none:
            found.append(present(value))
    return found


FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "!_": _not,
    "-_": lambda _activation, value: negate(value),
    "size": _size,
    "type": lambda _activation, value: TypeValue(type_name(value)),
    "dyn": _same,
    "int(int)": _same,
    "int(uint)": lambda _activation, value: int_of(int(value)),
    "int(double)": _int_of_double,
    "int(string)": _parsed(parse_int, "int"),
    "int(timestamp)": lambda _activation, value: value.seconds,
    "int(duration)": lambda _activation, value: value.nanoseconds,
    "uint(int)": lambda _activation, value: uint_of(value),
    "uint(uint)": _same,
    "uint(double)": _uint_of_double,
    "uint(string)": _parsed(_parsed_uint, "uint"),
    "double(int)": lambda _activation, value: float(value),
    "double(uint)": lambda _activation, value: float(value),
    "double(double)": _same,
    "double(string)": _parsed(parse_float, "double"),
    "string(string)": _same,
    "string(bool)": lambda _activation, value: "true" if value else "false",
    "string(int)": _str,
    "string(uint)": lambda _activation, value: str(int(value)),
    "string(double)": lambda _activation, value: double_text(value),
    "string(bytes)": lambda _activation, value: text_of_bytes(value),
    "string(timestamp)": _str,
    "string(duration)": _str,
    "string(net.IP)": _str,
    "string(net.CIDR)": _str,
    "bytes(string)": lambda _activation, value: value.encode(),
    "bytes(bytes)": _same,
    "bool(bool)": _same,
    "bool(string)": _parsed(_BOOLS.get, "bool"),
    "timestamp(string)": _parsed(parse_timestamp, "google.protobuf.Timestamp"),
    "timestamp(int)": lambda _activation, value: timestamp_of(value),
    "timestamp(timestamp)": _same,
    "duration(string)": _parsed(parse_cel_duration, "google.protobuf.Duration"),
    "duration(duration)": _same,
    "duration(int)": _no_duration,
    "optional.of(?A)": lambda _activation, value: Optional(value),
    "optional.ofNonZeroValue(?A)": lambda _activation, value: NONE if is_zero(value) else Optional(value),
    "optional.none()": lambda _activation: NONE,
    "optional.unwrap(list)": _unwrap,
    "unwrapOpt(list)": _unwrap,
    "hasValue(optional_type)": lambda _activation, value: not value.is_none,
    "value(optional_type)": _value,
}
