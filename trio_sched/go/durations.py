"""Durations as Go writes them (``1h30m0.5s``), held as whole nanoseconds.

Source: Go's ``time.ParseDuration`` and ``Duration.String``, whose texts kube-scheduler shows.
"""

import re
from typing import Final

from trio_sched.errors import TrioSchedError
from trio_sched.go.text import quote, shortened

_SECOND_NS: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5
    "μs": 1_000,  # U+03BC
    "ms": 1_000_000,
    "s": _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "h": 3600 * _SECOND_NS,
}
_LIMIT: Final = 1 << 63
_MAX_DIGITS: Final = 19
_TERM: Final = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^.0-9]*)")


class InvalidDuration(TrioSchedError):
    """A text that is no duration, in the words of Go."""


def parse_duration(text: str) -> int:
    """Return *text* in nanoseconds.

    Raises:
        InvalidDuration: the text is no duration, or more than about 292 years.
    """
    shown = quote(shortened(text))
    invalid = InvalidDuration(f"time: invalid duration {shown}")
    rest = text[1:] if text[:1] in ("+", "-") else text
    negative = text.startswith("-")
    if rest == "0":
        return 0
    if not rest:
        raise invalid
    total = 0
    while rest:
        match = _TERM.match(rest)
        assert match is not None  # every part of the pattern may be empty
        whole, point, fraction, unit = match.groups(default="")
        if not whole and not (point and fraction):
            raise invalid
        if not unit:
            raise InvalidDuration(f"time: missing unit in duration {shown}")
        if unit not in _UNITS:
            raise InvalidDuration(f"time: unknown unit {quote(shortened(unit))} in duration {shown}")
        scale = _UNITS[unit]
        digits = whole.lstrip("0")
        if len(digits) > _MAX_DIGITS:
            raise invalid
        total += int(digits or "0") * scale + _fraction(fraction, scale)
        if total > _LIMIT:
            raise invalid
        rest = rest[match.end() :]
    if total == _LIMIT and not negative:
        raise invalid
    return -total if negative else total


def _fraction(digits: str, scale: int) -> int:
    """Nanoseconds of a decimal fraction; in floating point and with digits beyond 64 bits dropped, as Go does it."""
    number, divisor = 0, 1.0
    for digit in digits:
        if number > ((1 << 63) - 1 - int(digit)) // 10:
            break
        number = number * 10 + int(digit)
        divisor *= 10
    return int(number * (scale / divisor))


def format_duration(nanoseconds: int) -> str:
    """Write *nanoseconds* the way the completed configuration shows them: ``15s``, ``1h30m0.5s``, ``100ms``."""
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    magnitude = abs(nanoseconds)
    if magnitude < 1_000_000_000:
        unit = "ns" if magnitude < 1_000 else "µs" if magnitude < 1_000_000 else "ms"
        return f"{sign}{_decimal(magnitude, _UNITS[unit])}{unit}"
    minutes, remainder = divmod(magnitude, _UNITS["m"])
    seconds = f"{_decimal(remainder, _UNITS['s'])}s"
    if not minutes:
        return sign + seconds
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}h{minutes}m{seconds}" if hours else f"{sign}{minutes}m{seconds}"


def _decimal(value: int, scale: int) -> str:
    whole, fraction = divmod(value, scale)
    if not fraction:
        return str(whole)
    return f"{whole}.{str(fraction).zfill(len(str(scale)) - 1).rstrip('0')}"
