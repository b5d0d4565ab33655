"""Functions of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trio_sched.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from trio_sched.cel.library import regexes
from trio_sched.cel.library.string_format import format_text
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.runtime.chains import shown
from trio_sched.cel.values.values import Value

_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Go takes for white space."""
_LOWER: Final = {ord(letter): ord(letter) + 32 for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_UPPER: Final = {small: large for large, small in _LOWER.items()}
_QUOTED: Final = str.maketrans(
    {
        **{"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"},
        **{"\\": "\\\\", '"': '\\"'},
    }
)


def _of_texts(check: Callable[[str, str], bool]) -> Callable[[Activation, Value, Value], Value]:
    def checked(_activation: Activation, text: Value, part: Value) -> Value:
        if type(text) is not str or type(part) is not str:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        return check(text, part)

    return checked


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(_activation: Activation, text: str, index: int) -> Value:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(_activation: Activation, text: str, part: str, start: int = 0) -> Value:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(_activation: Activation, text: str, part: str) -> Value:
    return text.rfind(part)


def _last_index_before(_activation: Activation, text: str, part: str, start: int) -> Value:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _replace(activation: Activation, text: str, part: str, by: str, count: int = -1) -> Value:
    occurrences = text.count(part) if part else len(text) + 1
    if count >= 0:
        occurrences = min(occurrences, count)
    activation.spend(0, len(text) + occurrences * len(by))
    return text.replace(part, by, occurrences)


def _split(activation: Activation, text: str, separator: str, count: int = -1) -> Value:
    if count == 0:
        return []
    if separator:
        found = text.split(separator, count - 1 if count > 0 else -1)
    else:
        found = list(text) if count < 0 or count >= len(text) else [*text[: count - 1], text[count - 1 :]]
    activation.spend(len(found))
    return found


def _substring(_activation: Activation, text: str, start: int, end: int | None = None) -> Value:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, len(text) if end is None else end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _join(activation: Activation, parts: list[Value], separator: str = "") -> Value:
    for part in parts:
        if type(part) is not str:
            raise EvaluationError(f"join: invalid input: {shown(part)}")
    activation.spend(0, sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _quote(_activation: Activation, text: str) -> Value:
    return f'"{text.translate(_QUOTED)}"'


FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    **regexes.FUNCTIONS,
    "contains": _of_texts(lambda text, part: part in text),
    "startsWith": _of_texts(str.startswith),
    "endsWith": _of_texts(str.endswith),
    "charAt(string, int)": _char_at,
    "substring(string, int)": _substring,
    "substring(string, int, int)": _substring,
    "lowerAscii(string)": lambda _activation, text: text.translate(_LOWER),
    "upperAscii(string)": lambda _activation, text: text.translate(_UPPER),
    "trim(string)": lambda _activation, text: text.strip(_SPACE),
    "replace(string, string, string)": _replace,
    "replace(string, string, string, int)": _replace,
    "split(string, string)": _split,
    "split(string, string, int)": _split,
    "indexOf(string, string)": _index_of,
    "indexOf(string, string, int)": _index_of,
    "lastIndexOf(string, string)": _last_index_of,
    "lastIndexOf(string, string, int)": _last_index_before,
    "format(string, list)": format_text,
    "join(list)": _join,
    "join(list, string)": _join,
    "strings.quote(string)": _quote,
}
