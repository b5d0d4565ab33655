"""A family with its series, as read for one scrape."""

from __future__ import annotations

from attrs import frozen

from trio_sched.daemon.metrics.families.families import Family
from trio_sched.engine.hooks.histogram import Histogram

Value = float | Histogram
Series = tuple[tuple[str, ...], Value]
"""The values of the labels, in the order of the family's labels; and the value."""


@frozen(eq=False)
class Exposed:
    """One family in one scrape; without series it is left out."""

    family: Family
    series: list[Series]


def is_empty(value: Value) -> bool:
    """Whether there is a histogram without observations."""
    return isinstance(value, Histogram) and not any(value.counts)
