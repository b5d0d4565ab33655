"""Schedules of CronJobs: when they are due, and what is wrong with one.

Source: the standard parser of ``robfig/cron``, which CronJobs are read with.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from trio_sched.go.durations import InvalidDuration, parse_duration

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)
_SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class InvalidSchedule(ValueError):
    """A text that is no schedule; says what is wrong with it."""


@frozen
class Schedule:
    """When a CronJob is due.

    Attributes:
        fields: the minutes, hours, days of the month, months and days of the week that fit.
        any_day: whether every day of the month fits, and every day of the week: if neither, either one is enough.
        every_seconds: instead of fields, how long after the last time.
    """

    fields: tuple[frozenset[int], ...] = ()
    any_day: tuple[bool, bool] = (True, True)
    every_seconds: float | None = None


def schedule_problem(text: str) -> str | None:
    """What is wrong with a schedule; None if nothing is."""
    try:
        parse_schedule(text)
    except InvalidSchedule as error:
        return str(error)
    return None


def parse_schedule(text: str) -> Schedule:
    """The schedule that *text* stands for.

    Raises:
        InvalidSchedule: it is none.
    """
    if text.startswith("@every "):
        try:
            nanoseconds = parse_duration(text.removeprefix("@every "))
        except InvalidDuration as error:
            raise InvalidSchedule(f"failed to parse duration {text}: {error}") from error
        return Schedule(every_seconds=max(1.0, nanoseconds // 10**9))
    if text.startswith("@"):
        if text not in _SHORTHANDS:
            raise InvalidSchedule(f"unrecognized descriptor: {text}")
        text = _SHORTHANDS[text]
    parts = text.split()
    if len(parts) != len(_BOUNDS):
        raise InvalidSchedule(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    fields = tuple(_field(part, *bounds) for part, bounds in zip(parts, _BOUNDS, strict=True))
    return Schedule(fields, (parts[2][0] in "*?", parts[4][0] in "*?"))


def _field(text: str, what: str, low: int, high: int, words: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        if not part:
            continue
        found |= _range(part, what, low, high, words)
    return frozenset(found)


def _range(text: str, what: str, low: int, high: int, words: tuple[str, ...]) -> set[int]:
    span, slash, step_text = text.partition("/")
    first, dash, last = span.partition("-")
    if "/" in step_text:
        raise InvalidSchedule(f"too many slashes: {text}")
    if "-" in last:
        raise InvalidSchedule(f"too many hyphens: {text}")
    if first in ("*", "?"):
        start, end = low, high
        if dash:
            raise InvalidSchedule(f"failed to parse int from {first}: {text}")
    else:
        start = _number(first, text, low, words)
        end = _number(last, text, low, words) if dash else start
    step = 1
    if slash:
        if not re.fullmatch("[0-9]{1,9}", step_text):
            raise InvalidSchedule(f"failed to parse int from {step_text}: {text}")
        step = int(step_text)
        if not dash:
            end = high
    if start < low:
        raise InvalidSchedule(f"beginning of range ({start}) below minimum ({low}): {text}")
    if end > high:
        raise InvalidSchedule(f"end of range ({end}) above maximum ({high}): {text}")
    if start > end:
        raise InvalidSchedule(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if not step:
        raise InvalidSchedule(f"step of range should be a positive number: {text}")
    return set(range(start, end + 1, step))


def _number(text: str, whole: str, low: int, words: tuple[str, ...]) -> int:
    if text.casefold() in words:
        return words.index(text.casefold()) + low
    if not re.fullmatch("[0-9]{1,9}", text):
        raise InvalidSchedule(f"failed to parse int from {text}: {whole}")
    return int(text)
