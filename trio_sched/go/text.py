"""How Go writes values into the texts that kube-scheduler shows: quoted strings, numbers, JSON.

Source: ``strconv.Quote``, ``strconv.FormatFloat``, ``encoding/json`` and the ``%#v`` verb of ``fmt``.
"""

import json
import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

_SHORT_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_HTML: Final = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


_SHOWN_CHARACTERS: Final = 200


def shortened(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """*text* for an error message: what is longer than *limit* characters ends in how long it was."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def quote(text: str) -> str:
    """*text* between double quotes, as the ``%q`` verb of Go prints it.

    Control characters and others that cannot be seen, or that turn the direction of a text, are escaped. Which those
    are is in Python's Unicode tables, which may be a version older or newer than Go's.
    """
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escape(character) for character in text) + '"'


def printable(text: str) -> str:
    """*text* with its control characters escaped, for messages in which Go does not quote it."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def printable_lines(text: str) -> str:
    """*text* with control characters escaped, but for the ends of its lines."""
    return "\n".join(map(printable, text.split("\n")))


def _escape(character: str) -> str:
    if short := _SHORT_ESCAPES.get(character):
        return short
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, of the name of a file for instance
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(value: Any) -> str:
    """*value* as ``json.Marshal`` writes it: no blanks, ``<``, ``>`` and ``&`` escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_HTML)


def round_to_float32(number: float) -> float:
    """The 32-bit float nearest to *number*.

    Raises:
        OverflowError: it is too big for 32 bits.
    """
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded


def _shortest(number: float, bits: int) -> tuple[str, int]:
    """The fewest digits that read back as *number*, and the power of ten of the first one."""
    shortest = Decimal(repr(abs(number)))
    if bits == 32:
        # Nine digits always suffice.
        exact = Decimal(f"{abs(number):.8e}")
        candidates = (Decimal(f"{abs(number):.{precision}e}") for precision in range(8))
        shortest = next((text for text in candidates if _is_float32(text, abs(number))), exact)
    shortest = shortest.normalize()
    return "".join(map(str, shortest.as_tuple().digits)), shortest.adjusted() if shortest else 0


def _is_float32(digits: Decimal, number: float) -> bool:
    """Whether *digits* read back as the 32-bit float *number*."""
    try:
        return round_to_float32(float(digits)) == number
    except OverflowError:
        return False


def _positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


def _scientific(digits: str, exponent: int, *, width: int) -> str:
    fraction = f".{digits[1:]}" if digits[1:] else ""
    return f"{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):0{width}d}"


def json_float(number: float, *, bits: int = 64) -> str:
    """A finite float as ``json.Marshal`` writes it: positional from 1e-6 up to 1e21."""
    sign = "-" if math.copysign(1, number) < 0 else ""
    digits, exponent = _shortest(number, bits)
    if -6 <= exponent < 21:
        return sign + _positional(digits, exponent)
    return sign + _scientific(digits, exponent, width=1)


def general_float(number: float, *, bits: int = 64) -> str:
    """A finite float in the shortest ``%g`` form: positional from 1e-4 up to 1e6."""
    sign = "-" if math.copysign(1, number) < 0 else ""
    digits, exponent = _shortest(number, bits)
    if -4 <= exponent < 6:
        return sign + _positional(digits, exponent)
    return sign + _scientific(digits, exponent, width=2)


def go_syntax(value: Any) -> str:
    """A decoded YAML value in Go syntax, as the ``%#v`` verb prints it."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return general_float(value)
        case str():
            return quote(value)
        case dict():
            pairs = sorted(value.items(), key=lambda pair: (type(pair[0]).__name__, str(pair[0])))
            return (
                "map[interface {}]interface {}{" + ", ".join(f"{go_syntax(k)}:{go_syntax(v)}" for k, v in pairs) + "}"
            )
        case Sequence():
            return "[]interface {}{" + ", ".join(map(go_syntax, value)) + "}"
    raise TypeError(f"not a YAML value: {value!r}")
