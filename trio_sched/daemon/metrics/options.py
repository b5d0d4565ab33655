"""Which metrics are shown, and with which values of labels: what the flags about metrics say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from trio_sched.daemon.metrics.families.exposed import Exposed, Series
from trio_sched.daemon.metrics.families.families import Type
from trio_sched.engine.hooks.histogram import Histogram

UNEXPECTED: Final = "unexpected"
"""What stands for values of a label that are not allowed."""


@frozen(kw_only=True)
class MetricsOptions:
    """What was asked for."""

    disabled: frozenset[str] = frozenset()
    """Names of families that are not shown."""
    allowed_values: Mapping[tuple[str, str], frozenset[str]] = field(factory=dict)
    """(family, label) → the values that are shown as they are."""
    watch_event_loop: bool = False
    """Measure how late the event loop comes round, by the wall clock."""

    @property
    def constrained(self) -> frozenset[str]:
        """The families with labels that may not have all values."""
        return frozenset(family for family, _label in self.allowed_values)


def constrain(exposed: Exposed, options: MetricsOptions) -> tuple[Exposed, float]:
    """*exposed* with the allowed values of its labels; series that become equal are added up.

    Returns:
        The family, and how many observations have a value that is not allowed.
    """
    family = exposed.family
    allowed = [options.allowed_values.get((family.name, label)) for label in family.labels]
    if all(values is None for values in allowed):
        return exposed, 0.0
    merged: dict[tuple[str, ...], float | Histogram] = {}
    unexpected = 0.0
    for values, value in exposed.series:
        shown = tuple(
            text if only is None or text in only else UNEXPECTED for text, only in zip(values, allowed, strict=True)
        )
        if shown != values:
            unexpected += _observations(family.type, value)
        merged[shown] = add_values(merged.get(shown), value)
    series: list[Series] = list(merged.items())
    return Exposed(family, series), unexpected


def _observations(type_: Type, value: float | Histogram) -> float:
    if isinstance(value, Histogram):
        return value.count
    return value if type_ is Type.COUNTER else 1.0


def add_values(one: float | Histogram | None, other: float | Histogram) -> float | Histogram:
    """The sum of two values of a family; a new histogram, as others go on counting."""
    if isinstance(other, Histogram):
        total = Histogram(other.bounds)
        total.counts, total.sum = list(other.counts), other.sum
        if isinstance(one, Histogram):
            total.counts = [a + b for a, b in zip(one.counts, total.counts, strict=True)]
            total.sum += one.sum
        return total
    return other if one is None or isinstance(one, Histogram) else one + other
