"""Moments and durations as Kubernetes writes them: RFC 3339 in UTC, and durations in nanoseconds."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

SECOND_NS: Final = 1_000_000_000
"""Nanoseconds in a second: durations of the configuration are exact integers, as they are in the file format."""


def format_time(moment: datetime) -> str:
    """*moment*, which has a time zone, as ``metav1.Time`` is written: in whole seconds."""
    return _utc(moment).isoformat(timespec="seconds") + "Z"


@lru_cache(maxsize=1)  # many events are recorded at one instant
def format_micro_time(moment: datetime) -> str:
    """*moment*, which has a time zone, as ``metav1.MicroTime`` is written: with six digits after the point."""
    return _utc(moment).isoformat(timespec="microseconds") + "Z"


def format_seconds(seconds: float) -> str:
    """The moment *seconds* after the beginning of 1970, as ``metav1.Time`` is written."""
    return format_time(datetime.fromtimestamp(seconds, UTC))


def parse_time(text: str) -> float | None:
    """Seconds from the beginning of 1970 to the moment that ``metav1.Time`` *text* is; None if it is none."""
    try:
        if "T24" in text:  # which Python 3.13 takes for the day after
            return None
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _utc(moment: datetime) -> datetime:
    """*moment* in UTC, without its zone, which ``isoformat`` would write as an offset."""
    return moment.astimezone(UTC).replace(tzinfo=None)
