"""Types for the attributes of a plugin's ``Args`` whose values are written as Kubernetes writes them.

Each is a plain number to the plugin and to type checkers; only the way it stands in the file is special::

    @frozen(kw_only=True)
    class Args:
        grace: Duration = 90.0            # grace: 90s
        spare_memory: WholeQuantity = 0   # spareMemory: 8Gi
        spare_cpu: MilliQuantity = 0      # spareCpu: 500m
"""

from collections.abc import Callable, Mapping
from datetime import time, timedelta
from typing import Annotated, Any, Final

from attrs import frozen

from trio_sched.go.durations import InvalidDuration, format_duration, parse_duration
from trio_sched.objects.amounts.quantity import NANO, parse_nano
from trio_sched.objects.amounts.quantity_text import QuantityStyle, format_nano
from trio_sched.objects.timestamps import SECOND_NS

DURATION_PATTERN: Final = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
_DURATION_WORDS: Final = "a duration: 90s, 5m or 1h30m for instance"
_QUANTITY: Final = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+|[KMGTPE]i|[numkMGTPE])?$"


@frozen
class WrittenAs:
    """How values of an attribute of ``Args`` are written in the file; stands in an ``Annotated``."""

    words: str
    """What is expected, for errors: "a duration like 90s or 5m" for instance."""
    read: Callable[[str | int | float], Any]
    """From what the file has, a text or a number, to the value; raises ValueError, whose text is shown."""
    write: Callable[[Any], str | int | float]
    """From the value to what a file would have."""
    pattern: str = ""
    """A regular expression for the texts that are read, for the JSON schema; empty for any text."""
    takes_numbers: bool = True
    """Whether it may be written as a number too."""


def _read_seconds(written: str | float) -> float:
    if not isinstance(written, str):
        return float(written)
    try:
        return parse_duration(written) / SECOND_NS
    except InvalidDuration as error:
        raise ValueError(str(error)) from None


def _write_seconds(seconds: float) -> str:
    if not isinstance(seconds, int | float):  # a text, multiplied, would be as long as memory goes
        raise TypeError
    return format_duration(round(seconds * SECOND_NS))


def _read_whole(written: str | float) -> int:
    return -(-parse_nano(written) // NANO)


def _read_milli(written: str | float) -> int:
    return -(-parse_nano(written) * 1000 // NANO)


def _write_milli(milli: int) -> str:
    if not isinstance(milli, int):
        raise TypeError
    return format_nano(milli * NANO // 1000, QuantityStyle.DECIMAL)


Duration = Annotated[float, WrittenAs(_DURATION_WORDS, _read_seconds, _write_seconds, DURATION_PATTERN)]
"""Seconds, written as a duration (``90s``, ``5m``, ``1h30m``) or as a number of seconds."""

WholeQuantity = Annotated[
    int, WrittenAs("a quantity: 8Gi, 500M or 3 for instance", _read_whole, lambda whole: whole, _QUANTITY)
]
"""A quantity in whole units, rounded up: bytes of memory, numbers of devices."""

MilliQuantity = Annotated[int, WrittenAs("a quantity: 500m or 2 for instance", _read_milli, _write_milli, _QUANTITY)]
"""A quantity in thousandths of a unit, rounded up: milli-CPU."""


def _read_timedelta(written: str | float) -> timedelta:
    return timedelta(seconds=_read_seconds(written))


_CLOCK: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$"


def _read_time(written: str | float) -> time:
    text = str(written)
    if not 5 <= len(text) <= 8 or text[2] != ":":
        raise ValueError("hours and minutes have two digits each")
    if text.startswith("24"):  # which Python 3.14 takes for 00:00
        raise ValueError("hour must be in 0..23")
    return time.fromisoformat(text)


NOTATIONS: Final[Mapping[type, WrittenAs]] = {
    timedelta: WrittenAs(
        _DURATION_WORDS, _read_timedelta, lambda value: _write_seconds(value.total_seconds()), DURATION_PATTERN
    ),
    time: WrittenAs(
        "a time of day: 22:30 for instance",
        _read_time,
        lambda value: value.isoformat("minutes" if not value.second else "seconds"),
        _CLOCK,
        takes_numbers=False,
    ),
}
"""Types of the standard library that are written as texts."""
