"""Time windows: read from text, and asked whether they are open at a moment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from attrs import define, field, frozen

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MAX_TEXT: Final = 1_000
_LOOK_AHEAD_DAYS: Final = 15
"""Every window opens within a week; a second one finds those of a week with a change of the clock."""
_is_window = re.compile(
    r"(?:(?P<days>[A-Za-z,-]+)\s+)?(?P<from>\d\d:\d\d)\s*-\s*(?P<to>\d\d:\d\d)(?:\s+(?P<zone>[A-Za-z0-9_+/-]+))?"
).fullmatch
_HOW: Final = "write it like 'Mon-Fri 22:00-06:00 Europe/Berlin'"


class BadWindow(ValueError):
    """A text is no window; says how to write one."""


@frozen
class Window:
    """The times from *begin* to *end* of some days; with an *end* that is not later they cross midnight."""

    days: frozenset[int]
    """On which they begin; Monday is 0."""
    begin: time
    end: time | None
    """None: midnight at the end of the day."""
    zone: ZoneInfo

    def spans(self, around: float) -> Iterator[tuple[float, float]]:
        """From and to, in seconds since 1970, of those from the day before *around* on, in order."""
        today = datetime.fromtimestamp(around, self.zone).date()
        for number in range(-2, _LOOK_AHEAD_DAYS):
            day = today + timedelta(days=number)
            if day.weekday() in self.days:
                next_day = self.end is None or self.end <= self.begin
                begin = self._moment(day, self.begin, fold=0)
                end = self._moment(day + timedelta(days=int(next_day)), self.end or time(0), fold=1)
                yield begin, max(begin, end)

    def _moment(self, day: date, at: time, *, fold: int) -> float:
        """An hour that the clock shows twice begins the first time and ends the second; one that it skips is over."""
        local = datetime.combine(day, at, self.zone)
        first, second = (local.replace(fold=one).astimezone(UTC).timestamp() for one in (0, 1))
        if first <= second:
            return second if fold else first
        before, after = second, first  # the clock is put forward somewhere between them
        offset = datetime.fromtimestamp(after, self.zone).utcoffset()
        while after - before > 0.5:
            middle = (before + after) / 2
            if datetime.fromtimestamp(middle, self.zone).utcoffset() == offset:
                after = middle
            else:
                before = middle
        return float(round(after))


@define(eq=False)
class Schedule:
    """Some windows, of which one must be open; remembers what it found out until that changes."""

    windows: tuple[Window, ...]
    _since: float = field(default=0.0, init=False)
    _until: float = field(default=0.0, init=False)
    _open: bool = field(default=False, init=False)

    def opens_at(self, now: float) -> float | None:
        """When the next one opens, in seconds since 1970; None if one is open."""
        if not self._since <= now < self._until:
            self._look(now)
        return None if self._open else self._until

    def _look(self, now: float) -> None:
        spans = sorted(span for window in self.windows for span in window.spans(now))
        end = max((to for begin, to in spans if begin <= now < to), default=None)
        if end is not None:
            self._since, self._until, self._open = now, end, True
            return
        self._since, self._open = now, False
        self._until = min((begin for begin, to in spans if now < begin < to), default=now + 86_400.0)

    def describe(self, moment: float, now: float) -> str:
        """*moment* for users: ``22:00 Europe/Berlin``, with the day if it is not within a day from *now*."""
        zone = self.windows[0].zone if self.windows else ZoneInfo("UTC")
        return describe(moment, now, zone)


def describe(moment: float, now: float, zone: ZoneInfo) -> str:
    """See `Schedule.describe`."""
    local = datetime.fromtimestamp(moment, zone)
    # Not strftime, whose names of days follow the locale of the process.
    day = "" if moment - now < 86_400 else f"{_DAYS[local.weekday()]} {local.date().isoformat()} "
    return f"{day}{local:%H:%M} {zone.key}"


def read_windows(text: str | Iterable[str], zone: ZoneInfo) -> tuple[Window, ...]:
    """The windows in *text*, separated by semicolons; those that name no zone are in *zone*.

    Raises:
        BadWindow: one cannot be read, or there is none.
    """
    parts = text.split(";") if isinstance(text, str) else list(text)
    if sum(map(len, parts)) > _MAX_TEXT:
        raise BadWindow(f"it has more than {_MAX_TEXT} characters")
    found = tuple(_read_window(part.strip(), zone) for part in parts if part.strip())
    if not found:
        raise BadWindow(f"there is no window; {_HOW}")
    return found


def _read_window(text: str, zone: ZoneInfo) -> Window:
    match = _is_window(text)
    if match is None:
        raise BadWindow(f"{text!r} is no window; {_HOW}")
    begin, end = _read_time(match["from"], text), match["to"]
    return Window(
        days=frozenset(range(7)) if match["days"] is None else _read_days(match["days"], text),
        begin=begin,
        end=None if end == "24:00" else _read_time(end, text),
        zone=read_zone(match["zone"]) if match["zone"] else zone,
    )


def _read_time(text: str, window: str) -> time:
    try:
        if text.startswith("24"):  # which Python 3.14 takes for 00:00
            raise ValueError(text)
        return time.fromisoformat(text)
    except ValueError:
        raise BadWindow(f"{text!r} in {window!r} is no time of day; {_HOW}") from None


def _read_days(text: str, window: str) -> frozenset[int]:
    if text.lower() == "daily":
        return frozenset(range(7))
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin, end = _day(first, window), _day(last if dash else first, window)
        found.update((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    return frozenset(found)


def _day(text: str, window: str) -> int:
    name = text.strip().capitalize()
    if name not in _DAYS:
        raise BadWindow(f"{text!r} in {window!r} is no day: take {', '.join(_DAYS)}; {_HOW}")
    return _DAYS.index(name)


def read_zone(name: str) -> ZoneInfo:
    """The time zone *name*.

    Raises:
        BadWindow: there is none.
    """
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise BadWindow(f"{name!r} is no time zone; take a name like Europe/Berlin or UTC") from None
