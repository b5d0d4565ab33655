"""Messages of protobuf: what their literals are."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from trio_sched.cel.checking.environment import MESSAGES
from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.values.literals import INT_LIMIT
from trio_sched.cel.values.times import SECOND, Duration, Timestamp
from trio_sched.cel.values.values import EMPTY, CelMap, Uint, Value, type_name

_PREFIX: Final = "google.protobuf."
_WRAPPERS: Final[dict[str, tuple[type, Value]]] = {
    "BoolValue": (bool, False),
    "BytesValue": (bytes, b""),
    "DoubleValue": (float, 0.0),
    "FloatValue": (float, 0.0),
    "Int32Value": (int, 0),
    "Int64Value": (int, 0),
    "StringValue": (str, ""),
    "UInt32Value": (Uint, Uint(0)),
    "UInt64Value": (Uint, Uint(0)),
}
_SAFE: Final = 1 << 53
"""Whole numbers below it are the same as doubles."""
_CONVERTING: Final = 4
"""How much more work it is to convert an element than to look at it."""
_INT32: Final = 1 << 31


def make_message(activation: Activation, name: str, fields: Mapping[str, Value]) -> Value:
    """The value of a literal of the message *name*.

    Raises:
        EvaluationError: a field has a value of another type, or values of this message are none of the language.
    """
    if name not in MESSAGES:
        raise EvaluationError(f"unknown type '{name}'")
    short = name.removeprefix(_PREFIX)
    if short in _WRAPPERS:
        kind, default = _WRAPPERS[short]
        return _narrowed(short, _field(name, fields, "value", kind, default))
    if short in _MAKERS:
        return _MAKERS[short](activation, name, fields)
    raise EvaluationError("unsupported conversion to ref.Val: (*dynamicpb.Message)")


def _field(message: str, fields: Mapping[str, Value], name: str, kind: type, default: Value) -> Any:
    value = fields.get(name)
    if value is None:
        return default
    if type(value) is not kind:
        problem = f"field type conversion error for {message}.{name} value type: "
        raise EvaluationError(f"{problem}type conversion error from '{type_name(value)}'")
    return value


def _narrowed(short: str, value: Value) -> Value:
    if short == "Int32Value" and not -_INT32 <= value < _INT32:
        raise EvaluationError(_out_of_range(short, "integer overflow"))
    if short == "UInt32Value" and value >= 2 * _INT32:
        raise EvaluationError(_out_of_range(short, "unsigned integer overflow"))
    if short == "FloatValue":
        try:
            return struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return value


def _out_of_range(short: str, problem: str) -> str:
    return f"field type conversion error for {_PREFIX}{short}.value value type: {problem}"


def _timestamp(_activation: Activation, name: str, fields: Mapping[str, Value]) -> Value:
    seconds, nanoseconds = _field(name, fields, "seconds", int, 0), _nanoseconds(name, fields)
    more, rest = divmod(nanoseconds, SECOND)
    return Timestamp(seconds + more, rest)


def _duration(_activation: Activation, name: str, fields: Mapping[str, Value]) -> Value:
    whole = _field(name, fields, "seconds", int, 0) * SECOND + _nanoseconds(name, fields)
    return Duration(min(max(whole, -INT_LIMIT), INT_LIMIT - 1))


def _nanoseconds(name: str, fields: Mapping[str, Value]) -> int:
    found: int = _field(name, fields, "nanos", int, 0)
    if not -_INT32 <= found < _INT32:
        raise EvaluationError(f"field type conversion error for {name}.nanos value type: integer overflow")
    return found


def _value(activation: Activation, name: str, fields: Mapping[str, Value]) -> Value:
    for key, kind in (("number_value", float), ("string_value", str), ("bool_value", bool)):
        if key in fields:
            return _field(name, fields, key, kind, None)
    if "list_value" in fields:
        return _json(activation, _field(name, fields, "list_value", list, []))
    return _json(activation, _field(name, fields, "struct_value", CelMap, None))


def _json(activation: Activation, value: Value) -> Value:
    """*value* as one of those that JSON has."""
    activation.spend(_CONVERTING)
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            return float(value) if abs(value) < _SAFE else str(int(value))
        case bytes():
            return b64encode(value).decode()
        case Timestamp() | Duration():
            return str(value)
        case list():
            return [_json(activation, one) for one in value]
        case CelMap():
            return CelMap({_json_key(key): _json(activation, part) for key, part in value.items()}, has_text_keys=True)
    raise EvaluationError(f"type conversion error from '{type_name(value)}' to 'google.protobuf.Value'")


def _json_key(key: Value) -> str:
    if type(key) is not str:
        raise EvaluationError(f"type conversion error from '{type_name(key)}' to 'string'")
    return key


_MAKERS: Final[dict[str, Callable[[Activation, str, Mapping[str, Value]], Value]]] = {
    "Timestamp": _timestamp,
    "Duration": _duration,
    "Struct": lambda activation, name, fields: _json(activation, _field(name, fields, "fields", CelMap, CelMap({}))),
    "ListValue": lambda activation, name, fields: _json(activation, _field(name, fields, "values", list, [])),
    "Value": _value,
    "Empty": lambda _activation, _name, _fields: EMPTY,
}
