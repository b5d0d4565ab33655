"""The families of ``/metrics`` with their series, made of what was counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from attrs import define, field

from trio_sched.daemon.logs.log_queue import dropped_lines
from trio_sched.daemon.metrics.families.client_families import CLIENT_FAMILIES
from trio_sched.daemon.metrics.families.component_families import COMPONENT_FAMILIES
from trio_sched.daemon.metrics.families.exposed import Exposed, Series, is_empty
from trio_sched.daemon.metrics.families.families import Family, by_name
from trio_sched.daemon.metrics.families.own_families import OWN_FAMILIES
from trio_sched.daemon.metrics.families.scheduler_families import SCHEDULER_FAMILIES
from trio_sched.daemon.metrics.families.serving_families import SERVING_FAMILIES
from trio_sched.daemon.metrics.options import constrain
from trio_sched.daemon.metrics.series import client_series, component, plugin_metrics, process, scheduler_series
from trio_sched.daemon.metrics.series.sources import Sources

FAMILIES: Final = by_name(SCHEDULER_FAMILIES, CLIENT_FAMILIES, SERVING_FAMILIES, COMPONENT_FAMILIES, OWN_FAMILIES)
"""Every family of ``/metrics`` by name, in the order of the page."""
_PAUSE: Final = Exposed(FAMILIES["trio_sched_events_unsent"], [])
"""Shows nothing; between two steps of a collection, where other tasks may run."""


@define(eq=False)
class Collection:
    """Makes the families for one scrape after the other."""

    sources: Sources
    families: Mapping[str, Family] = field(init=False)
    """Those whose feature gates are on, by name."""
    _information: list[tuple[str, list[Series]]] = field(init=False)
    """What never changes."""

    def __attrs_post_init__(self) -> None:
        gates = self.sources.gates
        self._information = list(component.information(self.sources.gates))
        self.families = {
            name: family.at(gates.version)
            for name, family in FAMILIES.items()
            if family.is_in(gates.version) and all(map(gates.enabled, family.gates))
        }

    def collect(self) -> Iterator[Exposed]:
        """The families in the order of the page, each with its series in order; some without series in between.

        Counters and gauges are read at the beginning, histograms when their family is asked for.
        """
        options = self.sources.options
        values: dict[str, list[Series]] = {}
        for name, series in self._collect():
            values[name] = series
            yield _PAUSE
        constrained = {name: constrain(self._exposed(name, values), options) for name in options.constrained}
        unexpected = sum(count for _exposed, count in constrained.values())
        disabled = options.disabled
        values.update(component.registered(self.families.values(), disabled=len(disabled), unexpected=unexpected))
        yield _PAUSE
        of_handles = {one.family.name: one for one in self.sources.of_plugins.collect()}
        of_plugins = {one.family.name: one for one in plugin_metrics.collect({*FAMILIES, *of_handles})} | of_handles
        for name in sorted({*self.families, *of_plugins} - disabled):
            exposed = of_plugins.get(name)
            if exposed is None:
                exposed = constrained[name][0] if name in constrained else self._exposed(name, values)
            series = [(labels, value) for labels, value in exposed.series if not is_empty(value) or not labels]
            yield Exposed(exposed.family, sorted(series, key=_by_labels))

    def _exposed(self, name: str, values: Mapping[str, list[Series]]) -> Exposed:
        family = self.families.get(name)
        return Exposed(family, values.get(name, [])) if family is not None else _PAUSE

    def _collect(self) -> Iterator[tuple[str, list[Series]]]:
        sources = self.sources
        scheduler, recorder = sources.scheduler, sources.recorder
        yield from chain(
            scheduler_series.attempts(recorder, scheduler.measurements),
            scheduler_series.cycles(scheduler.measurements, scheduler.plugin_failures.totals),
            scheduler_series.queue(scheduler.queue),
            scheduler_series.cache(scheduler, recorder),
            scheduler_series.tasks(sources.binding, sources.pools),
            scheduler_series.watches(sources.reflectors),
            client_series.requests(sources.requests.by_host.values()),
            client_series.clients(sources.clients),
            client_series.informers(sources.reflectors, recorder),
            client_series.election(recorder),
            sources.serving.collect(),
            process.collect(),
        )
        skipped = scheduler.plugin_failures.skipped
        yield "trio_sched_plugin_skipped", [((plugin,), float(is_skipped)) for plugin, is_skipped in skipped.items()]
        checks, drift = sources.cache_checks()
        wrong = {"rejectedChange": recorder.cache_errors, **drift}
        yield "trio_sched_cache_drift_total", [((what,), float(count)) for what, count in wrong.items()]
        yield "trio_sched_cache_checks_total", [((), float(checks))]
        reloads, is_in_force = sources.reloads()
        counted: list[Series] = [((result,), float(count)) for result, count in reloads.items() if count]
        yield "trio_sched_configuration_reloads_total", counted
        yield "trio_sched_configuration_last_reload_successful", [((), float(is_in_force))]
        is_recording, left_out = sources.recording()
        yield "trio_sched_recording", [((), float(is_recording))]
        yield "trio_sched_recording_left_out_total", [((), float(left_out))]
        yield "trio_sched_event_loop_lag_seconds", [((), recorder.loop_lag)]
        yield "trio_sched_events_unsent", [((), float(sources.unsent_events()))]
        yield "trio_sched_events_dropped_total", [((), float(sources.dropped_events()))]
        yield "trio_sched_log_lines_dropped_total", [((), float(dropped_lines()))]
        if sources.shadow is not None:
            yield from scheduler_series.shadow(sources.shadow)
        if sources.shards is not None:
            yield from scheduler_series.shards(sources.shards())
        if sources.shows_information:
            yield from self._information


def _by_labels(series: Series) -> tuple[str, ...]:
    return series[0]
