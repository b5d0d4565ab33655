"""Quantities, as capacities of devices and ``quantity()`` have them.

Their values are exact, but whether one is a whole number is decided by how it is stored, as in Kubernetes: a few digits
and a power of ten as they were written, or what did not fit into that.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from attrs import frozen

from trio_sched.cel.errors import EvaluationError
from trio_sched.objects.amounts.quantity import INT64_MAX, INT64_MIN, QuantityError, parse_nano, split_quantity

_MAX_EXPONENT: Final = 1_000
"""Larger ones count as this one: the numbers would take too much memory and time."""
_MAX_DIGITS: Final = 18
_FINEST: Final = -9
_BINARY_DIGITS: Final = 14


@frozen(eq=False)
class CelQuantity:
    """``digits * 10**exponent``."""

    digits: int
    exponent: int
    is_small: bool
    """It is stored as 64-bit digits: only then can it be found to be a whole number."""
    is_sum: bool = False
    """``add`` or ``sub`` returned it; on the right of ``==`` it equals nothing."""

    def compare(self, other: CelQuantity) -> Literal[-1, 0, 1]:
        """Which one is larger."""
        exponent = min(self.exponent, other.exponent)
        mine, others = self._at(exponent), other._at(exponent)
        return -1 if mine < others else 1 if mine > others else 0

    def __str__(self) -> str:
        if self.exponent >= 0:
            return str(self._at(0))
        digits = str(abs(self.digits)).rjust(1 - self.exponent, "0")
        text = f"{digits[: self.exponent]}.{digits[self.exponent :]}".rstrip("0").rstrip(".")
        return f"-{text}" if self.digits < 0 else text

    @property
    def sign(self) -> Literal[-1, 0, 1]:
        """The sign of its value."""
        return -1 if self.digits < 0 else 1 if self.digits > 0 else 0

    @property
    def integer(self) -> int | None:
        """Its value; None if it is not stored as a whole number that fits 64 bits."""
        if not self.is_small or self.exponent < 0:
            return None
        return _within_64_bits(self._at(0))

    @property
    def approximate_float(self) -> float:
        """About its value; the digits are multiplied by a power of ten in floating point, as in Kubernetes."""
        digits = _float(self.digits)
        return digits * _power_of_ten(self.exponent) if self.exponent else digits

    def add(self, other: CelQuantity) -> CelQuantity:
        """The sum."""
        if self.is_small and other.is_small:
            if not other.digits:
                return CelQuantity(self.digits, self.exponent, is_small=True, is_sum=True)
            if not self.digits:
                return CelQuantity(other.digits, other.exponent, is_small=True, is_sum=True)
        exponent = min(self.exponent, other.exponent)
        mine, others = self._at(exponent), other._at(exponent)
        parts = (mine, others, mine + others)
        is_small = self.is_small and other.is_small and None not in map(_within_64_bits, parts)
        return CelQuantity(mine + others, exponent, is_small=is_small, is_sum=True)

    def subtract(self, other: CelQuantity) -> CelQuantity:
        """The difference."""
        return self.add(CelQuantity(-other.digits, other.exponent, other.is_small))

    def _at(self, exponent: int) -> int:
        return self.digits * int(10 ** (self.exponent - exponent))


def quantity_of(number: int) -> CelQuantity:
    """A whole number."""
    return CelQuantity(number, 0, is_small=True)


def parse_quantity(text: str) -> CelQuantity:
    """The quantity that *text* is.

    Raises:
        EvaluationError: it is none.
    """
    try:
        written = split_quantity(text)
        whole, fraction = written.whole or "0", written.fraction
        count, exponent = len(whole) + len(fraction), min(written.exponent, _MAX_EXPONENT) - len(fraction)
        digits: int | None = None
        if not written.is_binary:
            if count <= _MAX_DIGITS and exponent >= _FINEST:
                digits = int(whole + fraction)
        elif not fraction and len(whole) + written.exponent * 3 // 10 <= _BINARY_DIGITS:
            digits, exponent = int(whole) << written.exponent, 0
        if digits is not None:
            return CelQuantity(-digits if written.is_negative else digits, exponent, is_small=True)
        return CelQuantity(parse_nano(text), _FINEST, is_small=False)
    except QuantityError as error:
        raise EvaluationError(str(error)) from error


def _float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


def _power_of_ten(exponent: int) -> float:
    try:
        return float(10.0**exponent)
    except OverflowError:
        return math.inf


def _within_64_bits(number: int) -> int | None:
    return number if INT64_MIN <= number <= INT64_MAX else None
