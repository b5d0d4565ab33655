"""The metrics that plugins count in through their handles; one registry for all of them, which reloads leave alone."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from attrs import define, evolve, field

from trio_sched.daemon.limits import MAX_PLUGIN_LABEL_CHARACTERS, MAX_PLUGIN_METRICS, MAX_PLUGIN_SERIES
from trio_sched.daemon.metrics.families.exposed import Exposed, Series, Value
from trio_sched.daemon.metrics.families.families import Family, Type
from trio_sched.daemon.metrics.families.own_families import OWN_FAMILIES
from trio_sched.daemon.metrics.recorder import ATTEMPT_BUCKETS
from trio_sched.engine.hooks.histogram import Histogram
from trio_sched.go.text import shortened

log = logging.getLogger(__name__)

PREFIX: Final = "trio_sched_plugin_"
MAX_BUCKETS: Final = 200
"""The most buckets of a histogram; each of its series has them."""
OTHER: Final = "other"
"""The value of all labels of what is counted beyond `MAX_PLUGIN_SERIES`."""
_TAKEN: Final = frozenset(family.name for family in OWN_FAMILIES)
_is_name = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,199}").fullmatch
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

M = TypeVar("M", bound="PluginMetric")


@define(eq=False)
class PluginMetric:
    """One metric; see `trio_sched.plugin_api.metrics` for what plugins can do with it."""

    plugin: str
    name: str
    """As the plugin gave it."""
    family: Family
    labels: tuple[str, ...]
    """In the order in which the plugin gave them."""
    values: dict[tuple[str, ...], Value] = field(factory=dict, init=False)
    """By the values of the labels in the order of the family."""
    _has_warned: bool = field(default=False, init=False)

    def key(self, labels: Mapping[str, object]) -> tuple[str, ...] | None:
        """The key of a series in *values*; None if there are too many to add it.

        Raises:
            ValueError: these are not the labels of the metric.
        """
        names = self.family.labels
        if labels.keys() != set(names):
            wanted = f"the labels {', '.join(self.labels)}" if names else "no labels"
            raise ValueError(f"metric {self.family.name} takes {wanted}, not {', '.join(labels) or 'none'}")
        key = tuple([_label_value(labels[name]) for name in names])
        if key in self.values or len(self.values) < MAX_PLUGIN_SERIES:
            return key
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "metric %s has too many sets of label values; further ones are not shown apart",
                self.family.name,
                extra={"plugin": self.plugin, "limit": MAX_PLUGIN_SERIES},
            )
        return None

    def exposed(self) -> Exposed:
        """Its series now."""
        series: list[Series] = list(self.values.items())
        return Exposed(self.family, series)

    def clear(self) -> None:
        """Forget all values."""
        self.values.clear()

    def _others(self) -> tuple[str, ...]:
        return (OTHER,) * len(self.family.labels)


class PluginCounter(PluginMetric):
    """See `trio_sched.plugin_api.metrics.Counter`."""

    def inc(self, amount: float = 1.0, /, **labels: object) -> None:
        """Count."""
        number = _number(self.family, amount)
        if not 0 <= number < math.inf:  # also NaN, from which it would never come back
            raise ValueError(f"counter {self.family.name} only grows, so it cannot count {amount!r}; use a gauge")
        key = self.key(labels)
        key = self._others() if key is None else key
        self.values[key] = self.values.get(key, 0.0) + number  # type: ignore[operator]  # all of it are floats


class PluginGauge(PluginMetric):
    """See `trio_sched.plugin_api.metrics.Gauge`."""

    def set(self, value: float, /, **labels: object) -> None:
        """Set."""
        number, key = _number(self.family, value), self.key(labels)
        if key is not None:
            self.values[key] = number

    def inc(self, amount: float = 1.0, /, **labels: object) -> None:
        """Add."""
        number, key = _number(self.family, amount), self.key(labels)
        if key is not None:
            self.values[key] = self.values.get(key, 0.0) + number  # type: ignore[operator]  # all of it are floats


class PluginHistogram(PluginMetric):
    """See `trio_sched.plugin_api.metrics.Histogram`."""

    def observe(self, value: float, /, **labels: object) -> None:
        """Count."""
        number, key = _number(self.family, value), self.key(labels)
        if math.isnan(number):
            raise ValueError(f"histogram {self.family.name} cannot count NaN")
        key = self._others() if key is None else key
        found = self.values.get(key)
        if found is None:
            found = self.values[key] = Histogram(self.family.buckets)
        found.observe(number)  # type: ignore[union-attr]  # all of it are histograms


@define(eq=False)
class PluginMetricRegistry:
    """The metrics of all plugins, by full name."""

    metrics: dict[str, PluginMetric] = field(factory=dict, init=False)

    def of_plugin(self, plugin: str) -> PluginMetrics:
        """What the handle of *plugin* offers."""
        return PluginMetrics(plugin, self)

    def collect(self) -> Iterator[Exposed]:
        """The families with their series."""
        for metric in list(self.metrics.values()):
            yield metric.exposed()

    def value(self, name: str, labels: Mapping[str, object], plugin: str = "") -> float:
        """What has been counted in the metric *name*, of *plugin* or of any; of a histogram the number of observations.

        Raises:
            LookupError: no plugin has made such a metric, or two have.
            ValueError: the metric has other labels.
        """
        made = [metric for metric in self.metrics.values() if plugin in ("", metric.plugin)]
        found = [metric for metric in made if metric.name == name]
        if len(found) != 1:
            names = ", ".join(metric.name for metric in made) or "none"
            who = f"plugin {plugin!r} has not made" if plugin else f"{len(found) or 'no'} plugins have made"
            raise LookupError(f"{who} a metric {name!r}; there are: {names}")
        value = found[0].values.get(found[0].key(labels) or (), 0.0)
        return float(value.count) if isinstance(value, Histogram) else value

    def reset(self) -> None:
        """Forget all values."""
        for metric in self.metrics.values():
            metric.clear()

    def metric(self, plugin: str, name: str, of: type[M], family: Family, labels: tuple[str, ...]) -> M:
        """The metric of this *family*, made if there is none.

        Raises:
            ValueError: the name is taken, or there are too many metrics.
        """
        known = self.metrics.get(family.name)
        if known is not None:
            if type(known) is of and evolve(known.family, text=family.text) == family:
                known.family = family  # a help may be put right
                return known
            raise ValueError(
                f"metric {family.name} is used in two ways: {_described(known.family)}, and {_described(family)}; "
                "give one of them another name, or restart the scheduler if it has just been changed"
            )
        if family.name in _TAKEN:
            raise ValueError(f"metric {family.name} is one of the scheduler's own; give it another name")
        if len(self.metrics) >= MAX_PLUGIN_METRICS:
            raise ValueError(f"metric {family.name} is one more than the {MAX_PLUGIN_METRICS} that plugins can have")
        made = self.metrics[family.name] = of(plugin, name, family, labels)
        return made


@define(eq=False)
class PluginMetrics:
    """The metrics of one plugin; see `trio_sched.plugin_api.metrics.Metrics`."""

    _plugin: str
    _registry: PluginMetricRegistry

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> PluginCounter:
        """A counter."""
        return self._metric(PluginCounter, Type.COUNTER, name, help, labels)

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> PluginGauge:
        """A gauge."""
        return self._metric(PluginGauge, Type.GAUGE, name, help, labels)

    def histogram(
        self, name: str, help: str, labels: Sequence[str] = (), buckets: Sequence[float] | None = None
    ) -> PluginHistogram:
        """A histogram."""
        bounds = ATTEMPT_BUCKETS if buckets is None else _bounds(name, buckets)
        return self._metric(PluginHistogram, Type.HISTOGRAM, name, help, labels, bounds)

    def _metric(
        self, of: type[M], type_: Type, name: str, help_: str, labels: Sequence[str], buckets: tuple[float, ...] = ()
    ) -> M:
        _check_name("metric", name)
        if isinstance(labels, str) or not isinstance(labels, Sequence):
            raise ValueError(f"labels of metric {name} must be a tuple of names, not {labels!r}")
        for label in labels:
            _check_name("label", label)
            if label == "le" or label.startswith("__"):
                raise ValueError(f"label {label!r} of metric {name} means something else to Prometheus; rename it")
        if len(set(labels)) < len(labels):
            raise ValueError(f"metric {name} has a label twice: {', '.join(labels)}")
        if not isinstance(help_, str) or not help_:
            raise ValueError(f"metric {name} needs a help: a sentence that says what it shows")
        help_ = _clean(help_)
        family = Family(f"{PREFIX}{_snake(self._plugin)}_{name}", type_, help_, tuple(labels), "", buckets)
        return self._registry.metric(self._plugin, name, of, family, tuple(labels))


def _snake(plugin: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]+", "_", _WORDS.sub("_", plugin)).strip("_").lower()


def _check_name(what: str, name: Any) -> None:
    if not isinstance(name, str) or not _is_name(name):
        fix = re.sub(r"[^a-zA-Z0-9_]", "_", name[:200]) if isinstance(name, str) and name else ""
        meant = f"; write {fix!r}" if fix and _is_name(fix) else ""
        shown = shortened(repr(name))
        raise ValueError(f"{what} {shown} must be of at most 200 letters, digits and _, a letter first{meant}")


def _bounds(name: str, buckets: Sequence[float]) -> tuple[float, ...]:
    try:
        bounds = tuple(float(bound) for bound in islice(buckets, MAX_BUCKETS + 1))
    except (TypeError, ValueError, OverflowError) as problem:
        raise ValueError(f"buckets of metric {name} must be numbers: {problem}") from None
    if len(bounds) > MAX_BUCKETS:
        raise ValueError(f"metric {name} has more than {MAX_BUCKETS} buckets")
    if not bounds or any(not math.isfinite(bound) for bound in bounds) or list(bounds) != sorted(set(bounds)):
        raise ValueError(f"buckets of metric {name} must be finite and rise, not {buckets!r}")
    return bounds


def _number(family: Family, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as problem:
        raise ValueError(f"metric {family.name} takes numbers: {problem}") from None


def _label_value(value: object) -> str:
    return _clean(value if type(value) is str else str(value))


def _clean(text: str) -> str:
    """Without halves of surrogate pairs, and not longer than it has to be."""
    return text[:MAX_PLUGIN_LABEL_CHARACTERS].encode("utf-8", "replace").decode()


def _described(family: Family) -> str:
    labels = f"the labels {', '.join(family.labels)}" if family.labels else "no labels"
    buckets = f" and the buckets {', '.join(map(str, family.buckets))}" if family.buckets else ""
    return f"{family.type.value} with {labels}{buckets}"
