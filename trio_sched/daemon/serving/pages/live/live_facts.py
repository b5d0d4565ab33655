"""What the live page shows of the daemon besides nodes and pods."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import define, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.metrics.series.scheduler_series import POINTS
from trio_sched.engine.hooks.histogram import Histogram
from trio_sched.live_page.live_state import CLUSTER, LiveSource
from trio_sched.live_page.rates import Buckets, Counters, RecentRates
from trio_sched.live_page.shared_work import SharedWork
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import parse_time

if TYPE_CHECKING:
    from trio_sched.daemon.sharding.sharding import Sharding  # only where there is some

_DEFAULTS: Final = "defaults"
_SCHEDULED_CONDITION: Final = "PodScheduled"


def counters_of(assembly: Assembly) -> Counters:
    """What metrics have counted up to now."""
    recorder = assembly.metrics.recorder
    totals: Counter[str] = Counter()
    for (result, _profile), histogram in recorder.attempts.by_key.items():
        totals[result] += histogram.count
    totals["binds"] = totals["scheduled"]
    totals["preemptions"] = recorder.victims.count
    return Counters(at=trio.current_time(), totals=totals, bind_seconds=Buckets.of(recorder.sli.by_key.values()))


def plugin_times(assembly: Assembly) -> list[dict[str, Any]]:
    """How long the calls of each plugin took, of the sampled attempts since the start, and how often it failed."""
    by_point: dict[tuple[str, str], list[Histogram]] = {}
    failures: Counter[tuple[str, str]] = Counter()
    for (plugin, hook, _status), histogram in assembly.scheduler.measurements.plugin_times.by_hook.items():
        by_point.setdefault((plugin, POINTS.get(hook, hook)), []).append(histogram)
    for (plugin, hook), count in assembly.scheduler.plugin_failures.totals.items():
        failures[plugin, POINTS.get(hook, hook)] += count
    rows = []
    for plugin, point in sorted(by_point.keys() | failures.keys()):
        times = Buckets.of(by_point.get((plugin, point), ()))
        quantiles = {"p50": times.quantile(0.5), "p99": times.quantile(0.99)}
        rows.append({"name": plugin, "point": point, **quantiles, "failures": failures[plugin, point]})
    return rows


def shared_work(sharding: Sharding) -> SharedWork:
    """Where the page of a replica that shares the work gets what it shows of that."""
    elector = sharding.elector

    def held() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {"ready": [], "taking_over": [], "giving_back": []}
        for shard, one in sorted(elector.held.items()):
            found["giving_back" if one.is_leaving else "ready" if one.is_ready else "taking_over"].append(shard)
        return found

    return SharedWork(
        owned=sharding.owned,
        held=held,
        replicas=lambda: len(elector.group.alive),
        kept_elsewhere=lambda: sharding.places().elsewhere.keys(),
    )


@define(eq=False)
class LiveFacts:
    """The entries of the summary that the daemon knows."""

    assembly: Assembly
    kind: str = "scheduler"
    _rates: RecentRates = field(init=False, factory=RecentRates)

    def source(self) -> LiveSource:
        """What the page shows."""
        assembly = self.assembly
        return LiveSource(
            kind=self.kind,
            name=", ".join(assembly.scheduler.profiles),
            scheduler=assembly.scheduler,
            now=self.now,
            message_of=self._message_of,
            on_permit=assembly.waiting.by_uid,
            facts=self.facts,
            shared_work=None if assembly.sharding is None else shared_work(assembly.sharding),
        )

    def now(self) -> float:
        """The time of day in seconds since 1970."""
        return self.assembly.wall_clock().timestamp()

    def wall_time(self, at: float) -> float:
        """The time of day at a moment of trio's clock, to the millisecond."""
        return round(self.now() - (trio.current_time() - at), 3)

    def facts(self) -> dict[str, Any]:
        """The entries as they are now."""
        if self.kind == CLUSTER:
            unknown = (*self.count()[1], "leader", "configuration")
            return {**dict.fromkeys(unknown), "watches": self._watches(), "paused": False}
        return {
            **self.count()[1],
            "leader": self._leader(),
            "configuration": self._configuration(),
            "watches": self._watches(),
            "paused": False,
        }

    def count(self) -> tuple[Counters, dict[str, float | None]]:
        """What was counted up to now, and the rates and quantiles that come of it; to be called now and then."""
        counters = counters_of(self.assembly)
        return counters, self._rates.add(counters)

    def reloads(self) -> list[dict[str, Any]]:
        """The last reloads, the oldest first; of one that failed the reason."""
        return [
            {
                "time": self.wall_time(one.at),
                "worked": not one.problem,
                "changed": [one.problem] if one.problem else list(one.changed),
            }
            for one in self.assembly.reloads.results
        ]

    def _message_of(self, pod: Pod) -> str:
        attempts = self.assembly.attempts.of(pod.uid)
        if attempts:
            return attempts[-1].message
        conditions = pod.status.conditions or ()
        return next((one.message for one in conditions if one.type == _SCHEDULED_CONDITION), "")

    def _leader(self) -> dict[str, Any] | None:
        elector = self.assembly.elector
        lease = None if elector is None else elector.observed_lease
        if elector is None or lease is None or not lease.holder_identity:
            return None
        return {
            "name": lease.holder_identity,
            "is_self": lease.holder_identity == elector.identity,
            "since": parse_time(lease.acquire_time or ""),
        }

    def _configuration(self) -> dict[str, Any]:
        assembly = self.assembly
        worked = [one.at for one in assembly.reloads.results if not one.problem]
        serving = assembly.settings.serving
        path = "" if serving is None else serving.flags.get("config", "")
        return {
            "name": path or _DEFAULTS,
            "loaded": round(assembly.started_at if not worked else self.wall_time(worked[-1])),
            "error": assembly.reloads.last_problem,
        }

    def _watches(self) -> list[dict[str, Any]]:
        return [self._watch(reflector) for reflector in self.assembly.watches.reflectors]

    def _watch(self, reflector: Any) -> dict[str, Any]:
        is_fresh = reflector.is_up_to_date
        silent = trio.current_time() - reflector.last_received_at
        return {
            "kind": reflector.kind.type.__name__,
            "state": "fresh" if is_fresh else "stale" if reflector.has_listed else "down",
            "age": 0 if is_fresh or not reflector.lists else round(silent),
        }
