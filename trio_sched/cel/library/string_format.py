"""``format``: the clauses of its texts, checked beforehand where the arguments are known, and written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.library.conversions import text_of_bytes
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.values.numbers import double_text, go_atoi
from trio_sched.cel.values.times import Duration, Timestamp
from trio_sched.cel.values.values import CelMap, TypeValue, Uint, Value, type_name
from trio_sched.go.text import quote

_PRECISION: Final = 6
_WRITING: Final = 4
"""How much more work it is to write an element than to look at it."""
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_BINARY = "only integers and bools can be formatted as binary, was given "
_HEXADECIMAL = "only integers, byte buffers, and strings can be formatted as hex, was given "
_NUMBERS: Final = ("int", "uint")
ACCEPTED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "s": (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        "timestamps, was given ",
        (
            *("list", "map", "int", "uint", "double", "bool", "string", "bytes", "type", "null_type"),
            *("google.protobuf.Timestamp", "google.protobuf.Duration"),
        ),
    ),
    "d": ("decimal clause can only be used on integers, was given ", _NUMBERS),
    "f": ("fixed-point clause can only be used on doubles, was given ", ("double", "string")),
    "e": ("scientific clause can only be used on doubles, was given ", ("double", "string")),
    "b": (_BINARY, (*_NUMBERS, "bool")),
    "o": ("octal clause can only be used on integers, was given ", _NUMBERS),
    "x": (_HEXADECIMAL, (*_NUMBERS, "string", "bytes")),
    "X": (_HEXADECIMAL, (*_NUMBERS, "string", "bytes")),
}
"""Clause → why a value is refused, and the types that are accepted."""

Write = Callable[[int, str, int | None], str]
"""Writes an argument, given by its index, as a clause with a precision."""


def interpolate(text: str, count: int, write: Write, *, is_checked: bool = False) -> tuple[str, int]:
    """*text* with what *write* makes of its clauses, and how many clauses there are.

    Args:
        text: the format.
        count: how many arguments there are.
        write: raises `EvaluationError` for arguments that cannot be written like that.
        is_checked: the arguments are not there yet; only which mistake is found first depends on it.

    Raises:
        EvaluationError: a clause is none, or has no argument.
    """
    parts: list[str] = []
    at = index = 0
    while (found := text.find("%", at)) >= 0:
        parts.append(text[at:found])
        at = found + 1
        if text[at : at + 1] == "%":
            parts.append("%")
            at += 1
            continue
        is_missing = EvaluationError(f"index {index} out of range")
        if index >= count and not is_checked:
            raise is_missing
        if at >= len(text):
            raise EvaluationError("unexpected end of string")
        if index >= count:
            raise is_missing
        try:
            precision, at = _precision(text, at)
            clause = text[at]
            if clause not in ACCEPTED:
                shown = chr(clause.encode("utf-8", "replace")[0])
                raise EvaluationError(f'unrecognized formatting clause "{shown}"')
        except EvaluationError as error:
            raise EvaluationError(f"could not parse formatting clause: {error}") from error
        parts.append(write(index, clause, precision))
        at += 1
        index += 1
    parts.append(text[at:])
    return "".join(parts), index


def _precision(text: str, at: int) -> tuple[int | None, int]:
    if text[at] != ".":
        return None, at
    end = at + 1
    while end < len(text) and text[end] in "0123456789":
        end += 1
    if end >= len(text):
        raise EvaluationError("error while parsing precision: could not find end of precision specifier")
    try:
        return go_atoi(text[at + 1 : end]), end
    except EvaluationError as error:
        problem = f"error while converting precision to integer: {error}"
        raise EvaluationError(f"error while parsing precision: {problem}") from error


def format_text(activation: Activation, text: str, arguments: list[Value]) -> str:
    """*text* with *arguments* in it.

    Raises:
        EvaluationError: they do not fit.
    """

    def write(index: int, clause: str, precision: int | None) -> str:
        try:
            written = _WRITERS[clause](activation, arguments[index], precision)
        except EvaluationError as error:
            raise EvaluationError(f"error during formatting: {error}") from error
        activation.spend(1, len(written))
        return written

    activation.spend(0, len(text))
    return interpolate(text, len(arguments), write)[0]


def _refused(clause: str, value: Value) -> EvaluationError:
    return EvaluationError(ACCEPTED[clause][0] + type_name(value))


def _string(activation: Activation, value: Value, _precision: int | None = None) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case bytes():
            try:
                return text_of_bytes(value)
            except EvaluationError as error:
                raise EvaluationError(f"could not convert argument {quote(str(error))} to string") from error
        case TypeValue():
            return value.name
        case Timestamp() | Duration():
            return str(value)
        case list():
            return _list(activation, value)
        case CelMap():
            return _map(activation, value)
    raise _refused("s", value)


def _literal(activation: Activation, value: Value) -> str:
    """*value* inside a list or map."""
    activation.spend(_WRITING, len(value) if type(value) in (str, bytes) else 0)
    match value:
        case str():
            return quote(value)
        case bytes():
            return f"b{quote(_string(activation, value))}"
        case float():
            if math.isinf(value) or math.isnan(value):
                return quote(double_text(value))
            return f"{value:.{_PRECISION}f}"
        case Timestamp():
            return f"timestamp({quote(str(value))})"
        case Duration():
            return f"duration({quote(str(value))})"
        case bool() | int() | None | list() | CelMap() | TypeValue():
            return _string(activation, value)
    raise EvaluationError(f"no formatting function for {type_name(value)}")


def _list(activation: Activation, values: list[Value]) -> str:
    return f"[{', '.join([_literal(activation, value) for value in values])}]"


def _map(activation: Activation, values: CelMap) -> str:
    entries: list[tuple[str, str]] = []
    for key, value in values.items():
        if type(key) not in (str, bool, int, Uint):
            raise EvaluationError(f"no formatting function for map key of type {type_name(key)}")
        entries.append((_literal(activation, key), _literal(activation, value)))
    entries.sort(key=lambda entry: entry[0])
    return "{" + ", ".join(f"{key}:{value}" for key, value in entries) + "}"


def _decimal(_activation: Activation, value: Value, _precision: int | None) -> str:
    if type(value) not in (int, Uint):
        raise _refused("d", value)
    return str(int(value))


def _double(clause: str, value: Value) -> float:
    if type(value) is str and value in _SPECIAL:
        return _SPECIAL[value]
    if type(value) is not float:
        raise _refused(clause, value)
    return value


def _infinite(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _fixed(activation: Activation, value: Value, precision: int | None) -> str:
    number = _double("f", value)
    if math.isnan(number) or math.isinf(number):
        return _infinite(number)
    digits = _PRECISION if precision is None else precision
    activation.spend(0, digits)
    return f"{number:,.{digits}f}"


def _scientific(activation: Activation, value: Value, precision: int | None) -> str:
    number = _double("e", value)
    width = _PRECISION if precision is None else precision  # the original takes it for the width
    activation.spend(0, width)
    if math.isnan(number) or math.isinf(number):
        return _infinite(number).rjust(width)
    mantissa, _, exponent = f"{number:.{_PRECISION}e}".partition("e")
    sign = "-" if exponent[0] == "-" else ""
    return f"{mantissa}×10{(sign + exponent[1:]).translate(_SUPERSCRIPT)}".rjust(width)


def _binary(_activation: Activation, value: Value, _precision: int | None) -> str:
    if type(value) not in (int, Uint, bool):
        raise _refused("b", value)
    return f"{int(value):b}"


def _octal(_activation: Activation, value: Value, _precision: int | None) -> str:
    if type(value) not in (int, Uint):
        raise _refused("o", value)
    return f"{int(value):o}"


def _hexadecimal(activation: Activation, value: Value, _precision: int | None) -> str:
    if type(value) in (str, bytes):
        content = value.encode("utf-8", "surrogatepass") if type(value) is str else value
        activation.spend(0, 2 * len(content))
        return content.hex()
    if type(value) not in (int, Uint):
        raise _refused("x", value)
    return f"{int(value):x}"


def _upper(activation: Activation, value: Value, precision: int | None) -> str:
    return _hexadecimal(activation, value, precision).upper()


_WRITERS: Final[dict[str, Callable[[Activation, Value, int | None], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": _upper,
}
