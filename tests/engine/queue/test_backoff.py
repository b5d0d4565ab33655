import math

import pytest

from trio_sched.engine.queue.backoff import Backoff


def test_the_backoff_doubles_up_to_the_maximum() -> None:
    backoff = Backoff()
    assert [backoff.duration(failures) for failures in range(8)] == [0, 1, 2, 4, 8, 10, 10, 10]
    assert backoff.duration(10_000) == 10
    assert Backoff(0.5, 3.0).duration(2) == 1.0


def test_a_maximum_backoff_of_zero_disables_backoff() -> None:
    off = Backoff(max_seconds=0)
    assert off.duration(5) == 0
    assert off.expiry(12.3, 5) == -math.inf
    assert off.is_over(off.expiry(12.3, 5), 12.3)


def test_backoff_ends_are_cut_to_whole_seconds_so_that_priority_decides_within_one() -> None:
    backoff = Backoff()
    expiry = backoff.expiry(12.3, 1)
    assert expiry == 13
    assert [backoff.is_over(expiry, now) for now in (12.9, 13.0, 13.9, 14.0)] == [False, False, False, True]
    assert backoff.next_check(expiry) == 14


def test_without_windows_backoff_ends_are_exact_and_exclusive() -> None:
    exact = Backoff(align_to_window=False)
    expiry = exact.expiry(12.3, 1)
    assert expiry == pytest.approx(13.3)
    assert [exact.is_over(expiry, now) for now in (13.2, 13.3, 13.4)] == [False, False, True]
    assert exact.next_check(expiry) == expiry


def test_the_first_attempt_has_no_backoff() -> None:
    assert Backoff().expiry(5.0, 0) == -math.inf
