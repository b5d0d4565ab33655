"""Rates and quantiles from counters at two times."""

import pytest

from trio_sched.engine.hooks.histogram import Histogram
from trio_sched.live_page.history import MOST_STEPS, History
from trio_sched.live_page.rates import Buckets, Counters, RecentRates

BOUNDS = (1.0, 2.0, 4.0)
SIZES = {"active": 1, "backoff": 2, "unschedulable": 3, "gated": 4}


def buckets(*values: float) -> Buckets:
    histogram = Histogram(BOUNDS)
    for value in values:
        histogram.observe(value)
    return Buckets.of([histogram])


def counters(at: float, binds: int, *seconds: float) -> Counters:
    return Counters(at=at, totals={"binds": binds, "preemptions": 0}, bind_seconds=buckets(*seconds))


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ((), 0.5, None),
        ((1.5, 1.5), 0.5, 1.5),
        ((0.5, 0.5, 3.0, 3.0), 0.5, 1.0),
        ((0.5, 0.5, 3.0, 3.0), 0.75, 3.0),
        ((9.0,), 0.99, 4.0),
    ],
)
def test_a_quantile_lies_within_its_bucket(values: tuple[float, ...], share: float, expected: float | None) -> None:
    assert buckets(*values).quantile(share) == expected


def test_what_was_there_before_does_not_count_unless_the_counting_has_begun_again() -> None:
    before, now = buckets(0.5, 0.5), buckets(0.5, 0.5, 3.0)
    assert now.since(before).quantile(1.0) == 4.0
    assert now.since(before).counts.tolist() == [0, 0, 1, 0]
    assert buckets(3.0).since(before).counts.tolist() == [0, 0, 1, 0]
    assert now.since(Buckets()).counts.tolist() == [2, 0, 1, 0]


def test_rates_are_those_of_some_seconds_and_quantiles_of_a_minute() -> None:
    rates = RecentRates()
    assert rates.add(counters(0.0, 100))["binds_per_second"] == 0.0
    assert rates.add(counters(2.0, 120))["binds_per_second"] == 10.0
    for second in range(3, 200):
        found = rates.add(counters(float(second), 120 + 4 * second, *([0.5] * 10)))
    assert found["binds_per_second"] == 4.0
    assert (found["bind_p50"], found["preemptions_per_second"]) == (None, 0.0)  # nothing was bound in the last minute
    assert rates.add(counters(200.0, 0))["binds_per_second"] == 0.0  # a reset


def test_the_history_keeps_an_hour_and_begins_with_the_second_count() -> None:
    history = History()
    for step in range(MOST_STEPS + 10):
        history.add(step * 10.0, counters(step * 10.0, step * 20), SIZES)
    shown = history.shown()
    assert (len(shown["seconds"]), shown["seconds"][-1]) == (MOST_STEPS, (MOST_STEPS + 9) * 10)
    assert set(shown["series"]["binds"]) == {2.0}
    assert {name: shown["series"][name][0] for name in SIZES} == SIZES
    first = History()
    first.add(0.0, counters(0.0, 5), SIZES)
    assert first.shown()["seconds"] == []
