"""All metrics of one daemon in one place: what counts them, and the families made of these for a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from attrs import define, field

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.daemon.metrics import client_series, component, plugin_metrics, process, scheduler_series
from trio_sched.daemon.metrics.client_families import CLIENT_FAMILIES
from trio_sched.daemon.metrics.component_families import COMPONENT_FAMILIES
from trio_sched.daemon.metrics.exposed import Exposed, Series, is_empty
from trio_sched.daemon.metrics.families import Family, by_name
from trio_sched.daemon.metrics.options import MetricsOptions, constrain
from trio_sched.daemon.metrics.own_families import OWN_FAMILIES
from trio_sched.daemon.metrics.pages import AllMetricsPage, MetricsPages, ResourcesPage, SliPage
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.metrics.requests import RequestLog
from trio_sched.daemon.metrics.scheduler_families import SCHEDULER_FAMILIES
from trio_sched.daemon.metrics.serving import HealthChecks, ServingMetrics
from trio_sched.daemon.metrics.serving_families import SERVING_FAMILIES
from trio_sched.daemon.work_pool import WorkPool
from trio_sched.engine.scheduler import Scheduler
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.watch import Reflector
from trio_sched.objects.pod import Pod

FAMILIES = by_name(SCHEDULER_FAMILIES, CLIENT_FAMILIES, SERVING_FAMILIES, COMPONENT_FAMILIES, OWN_FAMILIES)
"""Every family of ``/metrics`` by name, in the order of the page."""


@define(eq=False, kw_only=True)
class Metrics:
    """What is counted in one daemon."""

    options: MetricsOptions
    gates: FeatureGates
    scheduler: Scheduler
    clients: Mapping[str, KubeClient]
    """By their names in metrics."""
    pools: Mapping[str, WorkPool]
    """Likewise."""
    binding: Callable[[], int]
    """Returns how many pods are in their binding cycle."""
    unsent_events: Callable[[], int]
    dropped_events: Callable[[], int]
    recorder: MetricRecorder = field(factory=MetricRecorder)
    serving: ServingMetrics = field(factory=ServingMetrics)
    health_checks: HealthChecks = field(factory=HealthChecks)
    reflectors: list[Reflector[Any]] = field(factory=list)
    """Of all kinds that are watched."""
    pods: Reflector[Pod] | None = None
    """The one of pods, once it runs."""
    pages: MetricsPages = field(init=False)
    families: Mapping[str, Family] = field(init=False)
    """Those whose feature gates are on, by name."""
    _logs: list[RequestLog] = field(factory=list, init=False)
    _shows_information: bool = field(default=True, init=False)

    def __attrs_post_init__(self) -> None:
        self.families = {
            name: family for name, family in FAMILIES.items() if all(map(self.gates.enabled, family.gates))
        }
        for client in self.clients.values():
            client.observer = log = RequestLog(client.settings.server.partition("://")[2].partition("/")[0])
            self._logs.append(log)
        disabled = self.options.disabled
        self.pages = MetricsPages(
            AllMetricsPage(self.collect, self.reset),
            ResourcesPage(self._known_pods, disabled),
            SliPage(self.health_checks, disabled),
            self.health_checks.record,
        )

    def _known_pods(self) -> Iterable[Pod] | None:
        return self.pods.objects if self.pods is not None and self.recorder.has_led else None

    def collect(self) -> Iterator[Exposed]:
        """The families of ``/metrics`` in the order of the page, each with its series in order.

        Counters and gauges are read at the beginning, histograms when their family is asked for.
        """
        values = dict(self._collect())
        constrained = {name: constrain(self._exposed(name, values), self.options) for name in self.options.constrained}
        unexpected = sum(count for _exposed, count in constrained.values())
        disabled = self.options.disabled
        values.update(component.registered(self.families.values(), disabled=len(disabled), unexpected=unexpected))
        of_plugins = {one.family.name: one for one in plugin_metrics.collect(FAMILIES)}
        for name in sorted({*self.families, *of_plugins} - disabled):
            exposed = of_plugins.get(name)
            if exposed is None:
                exposed = constrained[name][0] if name in constrained else self._exposed(name, values)
            series = [(labels, value) for labels, value in exposed.series if not is_empty(value) or not labels]
            yield Exposed(exposed.family, sorted(series, key=_by_labels))

    def _exposed(self, name: str, values: Mapping[str, list[Series]]) -> Exposed:
        family = self.families.get(name)
        return Exposed(FAMILIES[name], values.get(name, [])) if family is not None else _NOTHING

    def _collect(self) -> Iterator[tuple[str, list[Series]]]:
        scheduler, recorder = self.scheduler, self.recorder
        measurements = scheduler.measurements
        yield from chain(
            scheduler_series.attempts(recorder, measurements),
            scheduler_series.cycles(measurements, scheduler.plugin_failures.totals),
            scheduler_series.queue(scheduler.queue),
            scheduler_series.cache(scheduler, recorder),
            scheduler_series.tasks(self.binding, self.pools),
            scheduler_series.watches(self.reflectors),
            client_series.requests(self._logs),
            client_series.clients(self.clients),
            client_series.election(recorder),
            self.serving.collect(),
            process.collect(),
        )
        yield "trio_sched_event_loop_lag_seconds", [((), recorder.loop_lag)]
        yield "trio_sched_events_unsent", [((), float(self.unsent_events()))]
        yield "trio_sched_events_dropped_total", [((), float(self.dropped_events()))]
        if self._shows_information:
            yield from component.information(self.gates)

    def reset(self) -> None:
        """Forget what was counted under labels, as kube-scheduler does, and what describes this build."""
        self._shows_information = False
        self.scheduler.measurements.reset()
        self.scheduler.plugin_failures.totals.clear()
        self.scheduler.queue.counters.incoming.clear()
        self.recorder.reset()
        self.serving.reset()
        for log in self._logs:
            log.reset()


def _by_labels(series: Series) -> tuple[str, ...]:
    return series[0]


_NOTHING = Exposed(by_name(OWN_FAMILIES)["trio_sched_events_unsent"], [])
