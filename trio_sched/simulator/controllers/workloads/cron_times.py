"""When the schedule of a CronJob is due next."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final

from trio_sched.simulator.validation.batch.cron import Schedule

_LONGEST_DAYS: Final = 5 * 366


def time_zone(name: str | None) -> tzinfo:
    """The time zone of that name; UTC without one, and for one that this machine does not know."""
    if not name:
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # few CronJobs have one

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def next_time(schedule: Schedule, after: datetime, zone: tzinfo) -> datetime | None:
    """The first moment after *after* at which *schedule* is due; None if there is none within five years."""
    if schedule.every_seconds is not None:
        return after.replace(microsecond=0) + timedelta(seconds=schedule.every_seconds)
    minutes, hours, days, months, weekdays = schedule.fields
    date = after.astimezone(zone).date()
    for _day in range(_LONGEST_DAYS):
        by_day, by_weekday = date.day in days, date.isoweekday() % 7 in weekdays
        fits = (by_day and by_weekday) if any(schedule.any_day) else (by_day or by_weekday)
        if fits and date.month in months:
            moments = (
                moment
                for hour in sorted(hours)
                for minute in sorted(minutes)
                for moment in _moments(datetime.combine(date, time(hour, minute)), zone)
                if moment > after
            )
            found = min(moments, default=None)
            if found is not None:
                return found
        try:
            date += timedelta(days=1)
        except OverflowError:
            return None
    return None


def _moments(local: datetime, zone: tzinfo) -> Iterator[datetime]:
    """The moments at which the clocks of *zone* show *local*: none or two when they are changed."""
    seen = set()
    for fold in (0, 1):
        moment = local.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        if moment not in seen and moment.astimezone(zone).replace(tzinfo=None, fold=0) == local:
            seen.add(moment)
            yield moment
