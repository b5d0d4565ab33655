"""Rates and quantiles of what is counted anyway: the difference of counters at two times."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from attrs import define, field, frozen

from trio_sched.engine.hooks.histogram import Histogram
from trio_sched.snapshot.arrays import Int64Array

_RATE_SECONDS: Final = 5.0
_QUANTILE_SECONDS: Final = 60.0
_LEAST_GAP_SECONDS: Final = 1.0


@frozen(eq=False)
class Buckets:
    """Histograms with the same bounds, added up."""

    bounds: Sequence[float] = ()
    counts: Int64Array = field(factory=lambda: np.zeros(1, dtype=np.int64))
    """Shape (bounds + 1,): observations in each bucket alone."""

    @classmethod
    def of(cls, histograms: Iterable[Histogram]) -> Buckets:
        """The sum of *histograms*."""
        found = list(histograms)
        if not found:
            return cls()
        return cls(found[0].bounds, np.array([one.counts for one in found], dtype=np.int64).sum(axis=0))

    def since(self, before: Buckets) -> Buckets:
        """What was observed after *before*; all of it if the counting has begun again meanwhile."""
        if len(before.counts) != len(self.counts) or (self.counts < before.counts).any():
            return self
        return Buckets(self.bounds, self.counts - before.counts)

    def quantile(self, share: float) -> float | None:
        """The value that *share* of the observations do not exceed, within its bucket evenly; None without any."""
        total = int(self.counts.sum())
        if not total:
            return None
        wanted = share * total
        reached = np.cumsum(self.counts)
        bucket = int(np.searchsorted(reached, wanted))
        if bucket >= len(self.bounds):
            return float(self.bounds[-1])
        lower = self.bounds[bucket - 1] if bucket else 0.0
        inside = int(self.counts[bucket])
        position = (wanted - (int(reached[bucket]) - inside)) / inside if inside else 1.0
        return round(lower + (self.bounds[bucket] - lower) * position, 6)


@frozen(kw_only=True)
class Counters:
    """What was counted up to a moment."""

    at: float
    """In seconds of the scheduler's clock."""
    totals: Mapping[str, int]
    """By name; they only grow, or begin again."""
    bind_seconds: Buckets
    """From the queue to the bind."""

    def per_second(self, name: str, before: Counters) -> float:
        """How many of *name* there were a second since *before*."""
        count, former = self.totals.get(name, 0), before.totals.get(name, 0)
        seconds = self.at - before.at
        return round((count - former if count >= former else count) / seconds, 3) if seconds > 0 else 0.0


@define(eq=False)
class RecentRates:
    """Rates over some seconds and quantiles over a minute; kept while somebody reads them."""

    _past: deque[Counters] = field(init=False, factory=deque)

    def add(self, now: Counters) -> dict[str, float | None]:
        """Entries of the summary after *now*."""
        past = self._past
        if not past or now.at - past[-1].at >= _LEAST_GAP_SECONDS:
            past.append(now)
        while len(past) > 1 and now.at - past[1].at >= _QUANTILE_SECONDS:
            past.popleft()
        recent = next((one for one in reversed(past) if now.at - one.at >= _RATE_SECONDS), past[0])
        bound = now.bind_seconds.since(past[0].bind_seconds)
        return {
            "binds_per_second": now.per_second("binds", recent),
            "bind_p50": bound.quantile(0.5),
            "bind_p99": bound.quantile(0.99),
            "preemptions_per_second": now.per_second("preemptions", recent),
        }
