"""Series of events: what is kept of an event that may be repeated, within limits and without the pod it is about."""

from __future__ import annotations

from collections import OrderedDict
from sys import getsizeof

from attrs import define, field

from trio_sched.daemon.limits import (
    MAX_EVENT_SERIES,
    MAX_EVENT_SERIES_BYTES,
    SERIES_QUIET_SECONDS,
    SERIES_REFRESH_SECONDS,
)
from trio_sched.objects.event import Event

SeriesKey = tuple[str, str, str, str, str, str]
_OVERHEAD_BYTES = 1000
"""What an event or a series takes besides its texts: the objects themselves, and the entry in a table."""


def held_bytes(*texts: str) -> int:
    """About how much memory an event with these *texts* takes, or a series of it."""
    return _OVERHEAD_BYTES + sum(map(getsizeof, texts))


def size_of(event: Event) -> int:
    """About how much memory *event* takes, or a series of it."""
    about = event.regarding
    described = (event.note, event.reason, event.action, event.reporting_controller, event.metadata.name)
    return held_bytes(*described, about.namespace, about.name, about.uid, about.resource_version)


@define(eq=False)
class Series:
    """An event, and how often it was repeated."""

    event: Event
    """As it was recorded first; it refers to the pod, and its note is cut."""
    last_seen: float
    sent_at: float
    count: int = 1
    sent_count: int = 1
    is_created: bool = False
    """Whether the first event has been sent: an event that does not exist cannot be patched."""
    is_count_due: bool = False
    """Whether the count is to be sent then."""
    size: int = field(init=False)
    """About how many bytes of memory it takes."""

    def __attrs_post_init__(self) -> None:
        self.size = size_of(self.event)

    @property
    def is_count_unsent(self) -> bool:
        """Whether there were repetitions since the count was sent."""
        return self.count > self.sent_count


@define(eq=False)
class SeriesTable:
    """The series that go on, those without a repetition for the longest time first.

    Beyond `MAX_EVENT_SERIES` and `MAX_EVENT_SERIES_BYTES` these end early: their next repetition is a new event.
    """

    _series: OrderedDict[SeriesKey, Series] = field(factory=OrderedDict)
    _held_bytes: int = 0

    def __len__(self) -> int:
        return len(self._series)

    def repeated(self, key: SeriesKey, *, now: float) -> Series | None:
        """Count a repetition at the time *now*; None if there is no series."""
        series = self._series.get(key)
        if series is not None:
            series.count += 1
            series.last_seen = now
            self._series.move_to_end(key)
        return series

    def add(self, key: SeriesKey, series: Series) -> list[Series]:
        """Begin a *series*; returns those that end because of it and have a count to send."""
        self._series[key] = series
        self._held_bytes += series.size
        ended: list[Series] = []
        while len(self._series) > MAX_EVENT_SERIES or self._held_bytes > MAX_EVENT_SERIES_BYTES:
            ended.append(self._end(next(iter(self._series))))
        return [one for one in ended if one.is_count_unsent]

    def sweep(self, *, now: float) -> list[Series]:
        """End what is over; returns what of it, and of what goes on for long, has a count to send.

        An event without a repetition is a series of one: it is only removed from the table.
        """
        found: list[Series] = []
        for key, series in list(self._series.items()):
            if now - series.last_seen > SERIES_QUIET_SECONDS:
                found.append(self._end(key))
            elif now - series.sent_at > SERIES_REFRESH_SECONDS:
                found.append(series)
        return [one for one in found if one.is_count_unsent]

    def _end(self, key: SeriesKey) -> Series:
        series = self._series.pop(key)
        self._held_bytes -= series.size
        return series
