"""Resource quantities: ``"500m"``, ``"1Gi"``, ``"12e9"`` as exact integers.

A quantity is held as a whole number of *nano* units (10^-9), the finest that Kubernetes keeps, so sums and comparisons
are exact; rounding happens once, at the end, and always up.

Source: ``resource.Quantity`` of Kubernetes: grammar, suffixes, rounding away from zero at 10^-9, clamping of binary
values.
"""

import re
from functools import lru_cache

from attrs import frozen

from trio_sched.errors import TrioSchedError

Quantity = str | int | float
"""A quantity as decoded from JSON: text, or a number."""

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
NANO = 10**9
_HUGE = 10**64
_SHORT = 64
"""Characters of a text that is kept with its value, and digits that are read of a number."""

_SYNTAX = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*)([+-]?[0-9]*)", re.ASCII)
_SHAPE_TEXT = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(TrioSchedError, ValueError):
    """A text that is no quantity; the message is Kubernetes' own."""


def parse_nano(quantity: Quantity) -> int:
    """Return *quantity* in whole nano units, rounded away from zero.

    Raises:
        QuantityError: the text is no quantity.
    """
    if type(quantity) is int:
        return max(-_HUGE, min(quantity, _HUGE)) * NANO
    text = quantity if type(quantity) is str else repr(quantity)
    return _parse_short(text) if len(text) <= _SHORT else _parse_text(text)


@frozen
class WrittenQuantity:
    """A quantity as it is written: ``whole.fraction`` times a power of ten, or of two."""

    is_negative: bool
    whole: str
    """Digits without leading zeros."""
    fraction: str
    exponent: int
    is_binary: bool
    """*exponent* is one of two: the suffix is one of ``Ki``, ``Mi``, …"""


def split_quantity(text: str) -> WrittenQuantity:
    """What *text* consists of.

    Raises:
        QuantityError: it is no quantity.
    """
    match = _SYNTAX.fullmatch(text)
    if match is None or not text:
        raise QuantityError(_SHAPE_TEXT)
    sign, whole, fraction, suffix, exponent_digits = match.groups(default="")
    exponent, is_binary = 0, suffix in _BINARY and not exponent_digits
    if is_binary:
        exponent = _BINARY[suffix]
        if suffix in ("Pi", "Ei") and not whole + fraction:
            raise QuantityError("unable to parse numeric part of quantity")  # with other suffixes that is 0
    elif suffix in ("e", "E") and exponent_digits.lstrip("+-"):
        exponent = int(exponent_digits[:_SHORT])
    elif exponent_digits or suffix not in _DECIMAL:
        raise QuantityError("unable to parse quantity's suffix")
    else:
        exponent = _DECIMAL[suffix]
    return WrittenQuantity(sign == "-", whole.lstrip("0"), fraction, exponent, is_binary)


def _parse_text(text: str) -> int:
    written = split_quantity(text.strip())
    digits, dropped = _leading_digits(written.whole + written.fraction)
    exponent = dropped - len(written.fraction)
    if written.is_binary:
        magnitude = min(_scale_up(digits << written.exponent, exponent + 9), INT64_MAX * NANO)
    else:
        magnitude = _scale_up(digits, exponent + written.exponent + 9)
    return -magnitude if written.is_negative else magnitude


_parse_short = lru_cache(maxsize=65536)(_parse_text)


def _leading_digits(text: str) -> tuple[int, int]:
    """The number in the first of many digits, rounded up, and how many digits were dropped behind it.

    What is dropped is far finer than a nano unit, or the number is far beyond what all callers clamp to.
    """
    text = text.lstrip("0")
    if len(text) <= _SHORT:
        return int(text or "0"), 0
    rest = text[_SHORT:]
    return int(text[:_SHORT]) + bool(rest.strip("0")), len(rest)


def _scale_up(digits: int, exponent: int) -> int:
    """``digits * 10**exponent``, rounded up to a whole number."""
    if exponent >= 0:
        # An exponent of thousands would give a huge integer, and all callers clamp to int64 anyway.
        return digits * int(10 ** min(exponent, 64))
    if -exponent > 4096:
        return 1 if digits else 0
    return -(-digits // int(10**-exponent))


def clamp_int64(number: int) -> int:
    """Keep *number* within what Kubernetes' integers can hold."""
    return INT64_MAX if number > INT64_MAX else INT64_MIN if number < INT64_MIN else number


def _ceil_away(nano: int, unit: int) -> int:
    return -(-nano // unit) if nano >= 0 else nano // unit


def to_units(nano: int) -> int:
    """Whole units, rounded up (bytes, counts); negative numbers are rounded away from zero."""
    return clamp_int64(_ceil_away(nano, NANO))


def to_milli(nano: int) -> int:
    """Thousandths, rounded up (CPU); negative numbers are rounded away from zero."""
    return clamp_int64(_ceil_away(nano, NANO // 1000))
