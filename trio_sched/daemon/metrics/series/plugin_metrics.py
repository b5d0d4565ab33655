"""The metrics of plugins that use prometheus-client: what is in its default registry is shown as well.

It is asked only if a plugin has imported it. Families of a name that is taken are left out, so are those that
prometheus-client has of itself about the process.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from trio_sched.daemon.metrics.families.exposed import Exposed, Series
from trio_sched.daemon.metrics.families.families import Family, Type
from trio_sched.engine.hooks.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import Metric

log = logging.getLogger(__name__)

MAX_SERIES: Final = 100_000
"""The most series of one family; a label with ever new values must not take up all memory."""
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_PLAIN_TYPES: Final = {"counter": Type.COUNTER, "gauge": Type.GAUGE}


def collect(taken: Container[str]) -> Iterator[Exposed]:
    """The families in the default registry of prometheus-client, except those whose names are *taken*."""
    client = sys.modules.get("prometheus_client")
    if client is None:
        return
    try:
        metrics = list(client.REGISTRY.collect())
    except Exception as problem:  # a collector of a plugin may raise anything
        log.error("the metrics of plugins are left out: a collector has failed: %r", problem)
        return
    for metric in metrics:
        try:
            for exposed in _families(metric):
                if exposed.family.name not in taken:
                    yield exposed
        except Exception as problem:
            log.error("a metric of a plugin is left out: %r", problem, extra={"metric": _shown_name(metric)})


def _shown_name(metric: Any) -> str:
    try:
        return str(metric.name)[:200]
    except Exception:
        return "?"


def _families(metric: Metric) -> Iterator[Exposed]:
    if metric.type == "histogram":
        yield from _histogram(metric)
        return
    by_name: dict[str, list[Any]] = {}
    for sample in metric.samples[:MAX_SERIES]:
        if not sample.name.endswith("_created"):
            by_name.setdefault(sample.name, []).append(sample)
    for name, samples in by_name.items():
        labels = tuple(sorted(samples[0].labels))
        family = Family(name, _PLAIN_TYPES.get(metric.type, Type.UNTYPED), metric.documentation, labels, "")
        series: list[Series] = [
            (_values(sample.labels, labels), float(sample.value))
            for sample in samples
            if sample.labels.keys() == samples[0].labels.keys()
        ]
        yield from _checked(family, series)


def _histogram(metric: Metric) -> Iterator[Exposed]:
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in metric.samples[:MAX_SERIES]:
        key = tuple(sorted((name, str(value)) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(key, []).append((float(sample.labels["le"]), float(sample.value)))
        elif sample.name.endswith("_sum"):
            sums[key] = float(sample.value)
    if not buckets:
        return
    labels = tuple(name for name, _ in next(iter(buckets)))
    series: list[Series] = []
    for key, found in buckets.items():
        if tuple(name for name, _ in key) != labels:
            continue
        found.sort()
        histogram = Histogram([bound for bound, _ in found[:-1]])
        before = 0.0
        for position, (_, count) in enumerate(found):
            histogram.counts[position] = int(count - before)
            before = count
        histogram.sum = sums.get(key, 0.0)
        series.append((tuple(value for _, value in key), histogram))
    yield from _checked(Family(metric.name, Type.HISTOGRAM, metric.documentation, labels, ""), series)


def _values(labels: dict[str, str], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(labels[name]) for name in names)


def _checked(family: Family, series: list[Series]) -> Iterator[Exposed]:
    if all(_NAME.fullmatch(name) for name in (family.name, *family.labels)):
        yield Exposed(family, series)
