"""CarbonAware: pods that may wait start when electricity is clean, and run where it is cleanest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar, Final

import numpy as np
import trio
from attrs import Attribute, field, frozen, validators

from trio_sched.plugin_api import (
    Action,
    CycleState,
    Duration,
    EventRegistration,
    Handle,
    Input,
    Int64Array,
    LabelSelector,
    NodeColumns,
    Pod,
    QueueState,
    Resource,
    Status,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched_time_windows.carbon_source import (
    HOUR,
    FetchedForecasts,
    Forecast,
    UnusableData,
    at_path,
    fetch,
    forecast_at,
    intensity,
    of_table,
)
from trio_sched_time_windows.deadlines import Teller, limit_of, matcher
from trio_sched_time_windows.windows import BadWindow, describe, read_zone

_LOG_SECONDS: Final = 3600.0


@frozen(kw_only=True)
class Endpoint:
    """A server that responds with JSON, one request per zone."""

    url: str = field(validator=validators.matches_re(r"https?://.+"))
    """``{zone}`` in it is replaced."""
    path: str = field(validator=validators.min_len(1))
    """Where the present intensity is, in g/kWh: names and positions with dots, ``data.0.carbonIntensity``."""
    forecast_path: str = ""
    """Where the list of predictions is, if there is one."""
    forecast_time: str = "datetime"
    """Where the time of an entry in it is."""
    forecast_value: str = "carbonIntensity"
    """Where the intensity of an entry in it is."""
    interval: Duration = field(default=900.0, validator=validators.ge(10.0))
    """How often it is asked."""
    timeout: Duration = field(default=10.0, validator=validators.gt(0.0))
    """How long a request may take."""
    max_age: Duration = field(default=2 * HOUR, validator=validators.ge(10.0))
    """How long a response counts."""
    token_file: str = ""
    """A file with a token; it is read again for every request."""
    token_header: str = field(default="authorization", validator=validators.matches_re(r"[A-Za-z][A-Za-z0-9-]*"))
    """In which header it is sent; in ``authorization`` as a bearer token."""
    ca_file: str = ""
    """Certificates to trust instead of the usual ones."""


def _are_hours(
    _args: object, attribute: Attribute[dict[str, tuple[float, ...]]], table: Mapping[str, tuple[float, ...]]
) -> None:
    for zone, hours in table.items():
        if len(hours) != 24 or not all(0.0 <= hour <= 100_000.0 for hour in hours):
            raise ValueError(f"{attribute.name}: {zone!r} must have 24 numbers in g/kWh, one per hour of the day")


def _is_zone(_args: object, attribute: Attribute[str], name: str) -> None:
    try:
        read_zone(name)
    except BadWindow as problem:
        raise ValueError(f"{attribute.name}: {problem}") from None


@frozen(kw_only=True)
class CarbonAwareArgs:
    """What ``pluginConfig`` says."""

    zones: dict[str, str] = field(factory=dict)
    """Value of *zoneLabel* → name of the zone at the endpoint."""
    endpoint: Endpoint | None = None
    """Where intensities come from; counts before *table*."""
    table: dict[str, tuple[float, ...]] = field(factory=dict, validator=_are_hours)
    """Value of *zoneLabel* → 24 intensities in g/kWh, by the hour of the day in *timeZone*."""
    time_zone: str = field(default="UTC", validator=_is_zone)
    """The time zone of *table*, and of the times in messages."""
    zone_label: str = field(default="topology.kubernetes.io/zone", validator=validators.min_len(1))
    """The node label with the zone."""
    selector: LabelSelector | None = None
    """Which pods may wait; none if it is missing."""
    threshold: float = field(default=200.0, validator=validators.ge(0.0))
    """From how many g/kWh on pods wait, if it will be less in time."""
    max_delay: Duration = field(default=24 * HOUR, validator=validators.ge(0.0))
    """How long after its creation a pod starts anyway, unless its annotation ``start-by`` names a time."""


class CarbonAware:
    """Has pods wait for clean electricity, and prefers zones with less carbon; see `CarbonAwareArgs`."""

    name: ClassVar[str] = "CarbonAware"
    Args: ClassVar[type[CarbonAwareArgs]] = CarbonAwareArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(self, args: CarbonAwareArgs, handle: Handle) -> None:
        self._args, self._handle, self._teller = args, handle, Teller(handle)
        self._zone = read_zone(args.time_zone)
        self._may_wait = matcher(args.selector)
        self._fetched = FetchedForecasts(args.endpoint.max_age if args.endpoint else 0.0)
        self._names = sorted({*args.zones, *args.table})
        self._scored: dict[str, float] = {}
        """Zone → intensity, as scores use it until `run` sees another one."""
        self._logged_at = float("-inf")
        self._delays = handle.metrics.counter("delays_total", "How often pods were told to wait for less carbon.")
        self._fetches = handle.metrics.counter("fetches_total", "Requests for intensities.", ["zone", "result"])
        self._shown = handle.metrics.gauge("intensity_grams_per_kwh", "Carbon intensity that counts now.", ["zone"])

    # --- the data -----------------------------------------------------------------------------------------------------

    @hookimpl
    async def run(self) -> None:
        """Fetch intensities, and take note when they change."""
        while True:
            if self._args.endpoint is not None:
                for zone, name in self._args.zones.items():
                    await self._fetch(self._args.endpoint, zone, name)
            self._take_note()
            now = self._handle.wall_seconds()
            to_next_hour = HOUR - now % HOUR
            interval = self._args.endpoint.interval if self._args.endpoint else HOUR
            await trio.sleep(max(1.0, min(to_next_hour, interval)))

    async def _fetch(self, endpoint: Endpoint, zone: str, name: str) -> None:
        try:
            document = await fetch(
                self._handle.http,
                endpoint.url,
                name,
                token_header=endpoint.token_header,
                token_file=endpoint.token_file,
                ca_file=endpoint.ca_file,
                timeout_seconds=endpoint.timeout,
            )
            now = self._handle.wall_seconds()
            forecast = [(now, intensity(at_path(document, endpoint.path)))]
            if endpoint.forecast_path:
                later = forecast_at(document, endpoint.forecast_path, endpoint.forecast_time, endpoint.forecast_value)
                forecast += [one for one in later if one[0] > now]
            self._fetched.put(zone, forecast, now)
            self._fetches.inc(zone=zone, result="fetched")
        except UnusableData as problem:
            self._fetches.inc(zone=zone, result="failed")
            now = self._handle.now()
            if now - self._logged_at >= _LOG_SECONDS:
                self._logged_at = now
                self._handle.log.warning("the carbon intensity of zone %s could not be fetched: %s", zone, problem)

    def _take_note(self) -> None:
        now = self._handle.wall_seconds()
        current = {zone: forecast[0][1] for zone in self._names if (forecast := self._forecast(zone, now, now))}
        self._shown.clear()
        for zone, value in current.items():
            self._shown.set(value, zone=zone)
        if current != self._scored:
            self._scored = current
            self._handle.invalidate()
            for one in self._handle.pending_pods():  # what they wait for may have changed
                if one.state is QueueState.GATED and self.name in one.rejected_by:
                    self._handle.retry_after(one.pod, 0.0)

    def _forecast(self, zone: str, now: float, until: float) -> Forecast:
        if self._args.endpoint is not None and zone in self._args.zones:
            found = self._fetched.get(zone, now)
            if found or zone not in self._args.table:
                return found
        hours = self._args.table.get(zone)
        return () if hours is None else of_table(hours, self._zone, now, until)

    # --- waiting ------------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gate the pod while there is too much carbon in every zone that it can run in."""
        if not self._may_wait.matches(pod.labels):
            return None
        now = self._handle.wall_seconds()
        limit = limit_of(pod, self._args.max_delay, now)
        if limit.problem:
            self._teller.bad_annotation(pod, limit.problem)
        if now >= limit.ends_at:
            return None
        selected = (pod.spec.node_selector or {}).get(self._args.zone_label)
        zones = self._names if selected is None else [selected]
        forecasts = [found for zone in zones if (found := self._forecast(zone, now, limit.ends_at))]
        if not forecasts or min(found[0][1] for found in forecasts) < self._args.threshold:
            return None  # clean enough, or nothing is known
        best = self._best_start(forecasts, limit.ends_at)
        if best is None or best <= now:
            return None
        self._handle.retry_after(pod, best - now)
        self._delays.inc()
        lowest = min(found[0][1] for found in forecasts)
        message = f"{lowest:g} g/kWh of carbon, waits until {describe(best, now, self._zone)} at the latest"
        self._teller.waits(pod, "WaitingForLessCarbon", message)
        return unschedulable(message)

    def _best_start(self, forecasts: list[Forecast], latest: float) -> float | None:
        """The first moment below the threshold, else the one with least carbon; without forecast the latest one."""
        coming = sorted(one for found in forecasts for one in found if one[0] <= latest)
        clean = next((moment for moment, value in coming if value < self._args.threshold), None)
        if clean is not None:
            return clean
        if all(len(found) == 1 for found in forecasts):
            return latest
        return min(coming, key=lambda one: (one[1], one[0]))[0] if coming else None

    # --- zones --------------------------------------------------------------------------------------------------------

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """Scores are the same for all pods."""
        return ""

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """Less for more carbon, in tenths of g/kWh; a node of a zone without data is as good as the mean."""
        if not self._scored:
            return np.zeros(len(nodes), dtype=np.int64)
        mean = sum(self._scored.values()) / len(self._scored)
        vocabulary = nodes.label_vocabulary(self._args.zone_label)
        of_value = np.array([-round(10 * self._scored.get(zone or "", mean)) for zone in vocabulary], dtype=np.int64)
        scores: Int64Array = of_value[nodes.label_values(self._args.zone_label)]
        return scores

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """0 for the zone with most carbon, 100 for the one with least."""
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            return np.zeros(len(scores), dtype=np.int64)
        scaled: Int64Array = (scores - lowest) * 100 // (highest - lowest)
        return scaled

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Its annotations and labels; less carbon is no event, but `Handle.retry_after`."""
        return [on(Resource.UNSCHEDULABLE_POD, Action.UPDATE)]
