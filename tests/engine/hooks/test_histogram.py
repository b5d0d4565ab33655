from hypothesis import given
from hypothesis import strategies as st

from trio_sched.engine.hooks.histogram import Histogram, exponential_buckets


def test_bounds_round_as_those_of_prometheus() -> None:
    assert exponential_buckets(0.00001, 1.5, 3) == (1e-05, 1.5000000000000002e-05, 2.2500000000000005e-05)
    assert exponential_buckets(1, 2, 3) == (1, 2, 4)


def test_a_bound_belongs_to_its_own_bucket() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 3.0):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 1]
    assert (histogram.count, histogram.sum) == (5, 8.0)


@given(st.lists(st.floats(0, 10), max_size=20))
def test_every_observation_is_in_one_bucket(values: list[float]) -> None:
    histogram = Histogram(exponential_buckets(0.1, 2, 5))
    for value in values:
        histogram.observe(value)
    assert histogram.count == len(values)
    for position, bound in enumerate(histogram.bounds):
        assert sum(histogram.counts[: position + 1]) == sum(value <= bound for value in values)


def test_many_equal_observations_count_as_one_after_the_other() -> None:
    one, other = Histogram((1.0,)), Histogram((1.0,))
    one.observe_many(0.25, 4)
    for _ in range(4):
        other.observe(0.25)
    assert (one.counts, one.sum) == (other.counts, other.sum)


def test_a_reset_leaves_the_object_in_use() -> None:
    histogram = Histogram((1.0,))
    counts = histogram.counts
    histogram.observe(0.5)
    histogram.reset()
    histogram.observe(2.0)
    assert histogram.counts is counts
    assert counts == [0, 1]


@given(st.lists(st.floats(0, 10), max_size=20))
def test_a_finer_histogram_counts_as_its_observations(values: list[float]) -> None:
    coarse, alone, finer = Histogram((0.2, 3.2)), Histogram((0.2, 3.2)), Histogram((0.1, 0.2, 0.4, 3.2, 6.4))
    coarse.observe(1.0)
    alone.observe(1.0)
    for value in values:
        finer.observe(value)
        alone.observe(value)
    coarse.add_finer(finer)
    assert coarse.counts == alone.counts
    assert coarse.count == len(values) + 1
