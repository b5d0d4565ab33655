"""Numbers as Go reads and writes them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.values.literals import INT_LIMIT, UINT_LIMIT
from trio_sched.go.text import general_float, quote

_SIGNED: Final = re.compile(r"[+-]?[0-9]+\Z")
_UNSIGNED: Final = re.compile(r"[0-9]+\Z")
_FLOAT: Final = re.compile(
    r"[+-]?(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?\Z"
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX]_?(?=[0-9a-fA-F.])(?:[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)?\.?(?:[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)?[pP][+-]?[0-9]+(?:_[0-9]+)*\Z"
)
_NAMED: Final = re.compile(r"(?:[+-]?inf(?:inity)?|nan)\Z", re.IGNORECASE)
_MAX_DIGITS: Final = 20


def parse_int(text: str) -> int | None:
    """The 64-bit int that *text* is."""
    if not _SIGNED.match(text):
        return None
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS:
        return None
    number = -int(digits) if text[0] == "-" else int(digits)
    return number if -INT_LIMIT <= number < INT_LIMIT else None


def parse_uint(text: str) -> int | None:
    """The unsigned 64-bit number that *text* is."""
    if not _UNSIGNED.match(text):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MAX_DIGITS and int(digits) < UINT_LIMIT else None


def parse_float(text: str) -> float | None:
    """The double that *text* is; None also if it is too large."""
    if _NAMED.match(text):
        return float(text)
    if _FLOAT.match(text):
        number = float(text.replace("_", ""))
    elif _HEXADECIMAL.match(text):
        try:
            number = float.fromhex(text.replace("_", ""))
        except (OverflowError, ValueError):
            return None
    else:
        return None
    return None if math.isinf(number) else number


def go_atoi(text: str) -> int:
    """A number as it is read from a time zone.

    Raises:
        EvaluationError: it is none.
    """
    number = parse_int(text)
    if number is None:
        problem = "value out of range" if _SIGNED.match(text) else "invalid syntax"
        raise EvaluationError(f"strconv.Atoi: parsing {quote(text)}: {problem}")
    return number


def double_text(number: float) -> str:
    """The shortest text that is read as *number*; with an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return general_float(number)


def fixed_text(number: float) -> str:
    """The shortest text that is read as the finite *number*, without exponent."""
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
