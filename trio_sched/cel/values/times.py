"""Timestamps and durations, to the nanosecond and with Go's texts."""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final

from attrs import field, frozen

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.values.literals import INT_LIMIT
from trio_sched.cel.values.numbers import fixed_text, go_atoi
from trio_sched.go.durations import InvalidDuration, parse_duration

SECOND: Final = 1_000_000_000
_MIN_SECONDS: Final = -62_135_596_800
_MAX_SECONDS: Final = 253_402_300_799
_DAY: Final = 86_400
_EPOCH: Final = 719_468
"""Days from the first of March of the year 0 to the epoch."""
_RFC_3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))\Z"
)


@frozen(order=True)
class Duration:
    """Nanoseconds; within 64 bits."""

    nanoseconds: int

    def __str__(self) -> str:
        seconds, rest = divmod(abs(self.nanoseconds), SECOND)
        number = float(seconds) + rest / 1e9
        return f"{fixed_text(-number if self.nanoseconds < 0 else number)}s"


@total_ordering
@frozen(eq=False)
class Timestamp:
    """An instant of the years 1 to 9999; *offset* seconds east of UTC is how it is written."""

    seconds: int
    nanoseconds: int = 0
    offset: int = field(default=0, kw_only=True)

    @property
    def _instant(self) -> tuple[int, int]:
        return self.seconds, self.nanoseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self._instant == other._instant

    def __lt__(self, other: Timestamp) -> bool:
        return self._instant < other._instant

    def __hash__(self) -> int:
        return hash(self._instant)

    def __str__(self) -> str:
        year, month, day, _of_year, _of_week, second = civil(self.seconds + self.offset)
        fraction = f".{self.nanoseconds:09}".rstrip("0") if self.nanoseconds else ""
        zone = "Z"
        if self.offset:
            hours, minutes = divmod(abs(self.offset) // 60, 60)
            zone = f"{'-' if self.offset < 0 else '+'}{hours:02}:{minutes:02}"
        time = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        return f"{year:04}-{month:02}-{day:02}T{time}{fraction}{zone}"

    def plus(self, nanoseconds: int) -> Timestamp:
        """The instant so much later.

        Raises:
            EvaluationError: that is beyond the year 9999, or before the year 1.
        """
        seconds, rest = divmod(self.nanoseconds + nanoseconds, SECOND)
        return timestamp_of(self.seconds + seconds, rest, self.offset)

    def since(self, other: Timestamp) -> Duration:
        """How much later than *other*.

        Raises:
            EvaluationError: more than a duration can be.
        """
        between = (self.seconds - other.seconds) * SECOND + self.nanoseconds - other.nanoseconds
        if not -INT_LIMIT <= between < INT_LIMIT:
            raise EvaluationError("integer overflow")
        return Duration(between)


def timestamp_of(seconds: int, nanoseconds: int = 0, offset: int = 0) -> Timestamp:
    """The instant so long after the epoch.

    Raises:
        EvaluationError: it is beyond the year 9999, or before the year 1.
    """
    if not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
        raise EvaluationError("timestamp overflow")
    return Timestamp(seconds, nanoseconds, offset=offset)


def civil(seconds: int) -> tuple[int, int, int, int, int, int]:
    """Year, month, day, day of the year (from 1), day of the week (from Sunday, 0), second of the day."""
    days, second = divmod(seconds, _DAY)
    era, day_of_era = divmod(days + _EPOCH, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)  # from the first of March
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day, days - _days(year, 1, 1) + 1, (days + 4) % 7, second


def _days(year: int, month: int, day: int) -> int:
    """Days since the epoch."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - _EPOCH


def parse_timestamp(text: str) -> Timestamp | None:
    """The instant that *text* is, as Go reads RFC 3339; None if it is none.

    Raises:
        EvaluationError: it is out of range.
    """
    match = _RFC_3339.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, utc, sign, zone_hours, zone_minutes = match.groups()[6:]
    if not (1 <= month <= 12 and hour < 24 and minute < 60 and second < 60):
        return None
    following = _days(year + month // 12, month % 12 + 1, 1)
    if not 1 <= day <= following - _days(year, month, 1):
        return None
    offset = 0
    if not utc:
        if int(zone_hours) > 24 or int(zone_minutes) > 60:
            return None
        offset = (int(zone_hours) * 60 + int(zone_minutes)) * (-60 if sign == "-" else 60)
    seconds = _days(year, month, day) * _DAY + hour * 3600 + minute * 60 + second - offset
    return timestamp_of(seconds, int((fraction or "0")[:9].ljust(9, "0")), offset)


def parse_cel_duration(text: str) -> Duration | None:
    """The duration that *text* is; None if it is none."""
    try:
        return Duration(parse_duration(text))
    except InvalidDuration:
        return None


def local_seconds(timestamp: Timestamp, zone: str) -> int:
    """Seconds since the epoch that the clocks of *zone*, a name or ``[+-]hh:mm``, would show.

    Raises:
        EvaluationError: there is no such zone.
    """
    if ":" not in zone:
        return timestamp.seconds + _offset_of(zone, timestamp.seconds)
    hours, _, minutes = zone.partition(":")
    offset = go_atoi(hours) * 60
    offset += -go_atoi(minutes) if zone[0] == "-" else go_atoi(minutes)
    return timestamp.seconds + offset * 60


def _offset_of(zone: str, seconds: int) -> int:
    if zone in ("", "UTC", "Local"):
        return 0
    if ".." in zone or zone[0] in "/\\" or "\\" in zone:
        raise EvaluationError("time: invalid location name")
    from datetime import UTC, datetime, timedelta  # needed by few expressions
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    within = min(max(seconds, _MIN_SECONDS + 2 * _DAY), _MAX_SECONDS - 2 * _DAY)
    try:
        found = ZoneInfo(zone)
        instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=within)
        offset = instant.astimezone(found).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise EvaluationError(f"unknown time zone {zone}") from error
    return int(offset.total_seconds()) if offset is not None else 0
