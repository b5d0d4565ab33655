"""TimeWindows: pods start only while one of their windows is open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from attrs import Attribute, field, frozen, validators

from trio_sched.plugin_api import (
    Action,
    CycleState,
    Duration,
    EventRegistration,
    Handle,
    LabelSelector,
    Pod,
    Resource,
    Status,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched_time_windows.deadlines import Teller, limit_of, matcher
from trio_sched_time_windows.windows import BadWindow, Schedule, read_windows, read_zone

WINDOWS: Final = "time-windows.trio-sched.dev/windows"
"""Annotation: the windows of a pod, instead of those in the arguments."""
_MAX_SCHEDULES: Final = 1_000
DAY: Final = 86_400.0


def _is_zone(_args: object, attribute: Attribute[str], name: str) -> None:
    try:
        read_zone(name)
    except BadWindow as problem:
        raise ValueError(f"{attribute.name}: {problem}") from None


def _are_windows(_args: object, attribute: Attribute[tuple[str, ...]], texts: tuple[str, ...]) -> None:
    try:
        if texts:
            read_windows(texts, read_zone("UTC"))
    except BadWindow as problem:
        raise ValueError(f"{attribute.name}: {problem}") from None


@frozen(kw_only=True)
class TimeWindowsArgs:
    """What ``pluginConfig`` says."""

    windows: tuple[str, ...] = field(default=(), validator=_are_windows)
    """When pods that *selector* matches may start: ``Mon-Fri 22:00-06:00``, with a time zone or without."""
    selector: LabelSelector | None = None
    """Which pods *windows* are for; none if it is missing. The annotation counts for every pod."""
    time_zone: str = field(default="UTC", validator=_is_zone)
    """The time zone of windows that name none."""
    max_delay: Duration = field(default=7 * DAY, validator=validators.ge(0.0))
    """How long after its creation a pod starts anyway, unless its annotation ``start-by`` names a time."""


class TimeWindows:
    """Keeps pods out of the queue while none of their windows is open; see `TimeWindowsArgs`."""

    name: ClassVar[str] = "TimeWindows"
    Args: ClassVar[type[TimeWindowsArgs]] = TimeWindowsArgs

    def __init__(self, args: TimeWindowsArgs, handle: Handle) -> None:
        self._args, self._handle, self._teller = args, handle, Teller(handle)
        self._zone = read_zone(args.time_zone)
        self._selected = matcher(args.selector)
        self._default = Schedule(read_windows(args.windows, self._zone)) if args.windows else None
        self._schedules: dict[str, Schedule | BadWindow] = {}
        self._delays = handle.metrics.counter("delays_total", "How often pods were told to wait for a window.")

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gate the pod until a window opens."""
        return self._wait(pod, tell=True)

    @hookimpl
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """The window may have closed while the pod was in the queue."""
        return self._wait(pod, tell=False)

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Its annotations and labels; windows that open are no event, but `Handle.retry_after`."""
        return [on(Resource.UNSCHEDULABLE_POD, Action.UPDATE)]

    def _wait(self, pod: Pod, *, tell: bool) -> Status | None:
        written = (pod.metadata.annotations or {}).get(WINDOWS)
        if written is None and (self._default is None or not self._selected.matches(pod.labels)):
            return None
        schedule, problem = self._schedule(written, pod)
        now = self._handle.wall_seconds()
        limit = limit_of(pod, self._args.max_delay, now)
        problems = [one for one in (problem, limit.problem) if one]
        if tell and problems:
            self._teller.bad_annotation(pod, "; ".join(problems))
        opens_at = None if schedule is None else schedule.opens_at(now)
        if schedule is None or opens_at is None or now >= limit.ends_at:
            return None
        until = min(opens_at, limit.ends_at)
        self._handle.retry_after(pod, max(0.0, until - now))
        self._delays.inc()
        message = f"outside of its time windows until {schedule.describe(until, now)}"
        if tell:
            self._teller.waits(pod, "WaitingForWindow", message)
        return unschedulable(message)

    def _schedule(self, written: str | None, pod: Pod) -> tuple[Schedule | None, str]:
        """The schedule of a pod with this annotation; if that is bad the one in the arguments, if it is for the pod."""
        default = self._default if self._selected.matches(pod.labels) else None
        if written is None:
            return default, ""
        found = self._schedules.get(written)
        if found is None:
            if len(self._schedules) >= _MAX_SCHEDULES:
                self._schedules.clear()
            try:
                found = Schedule(read_windows(written, self._zone))
            except BadWindow as problem:
                found = problem
            self._schedules[written] = found
        if isinstance(found, BadWindow):
            return default, f"annotation {WINDOWS}: {found}"
        return found, ""
