"""Snapshots of what lies behind: how many are kept, and which one is shown."""

import os

import pytest

from trio_sched.live_page.frames import Frames


def frames_at(*times: float, most: int = 600, most_bytes: int = 1 << 20, size: int = 0) -> Frames:
    frames = Frames(most=most, most_bytes=most_bytes)
    for time in times:
        frames.add(time, b"%d " % time + os.urandom(size))
    return frames


def number(frames: Frames, time: float) -> int | None:
    frame = frames.at(time)
    return None if frame is None else int(frame.snapshot.split(b" ")[0])


def test_the_last_one_at_or_before_a_time_is_shown() -> None:
    frames = frames_at(10, 20, 30)
    found = [number(frames, time) for time in (9.9, 10, 19.9, 20, 30, 1e300)]
    assert found == [None, 10, 10, 20, 30, 30]
    assert (frames.begin, frames.end) == (10, 30)


def test_its_time_is_the_one_asked_for_as_long_as_nothing_changes() -> None:
    frames = frames_at(10, 20.2)
    shown = [frame.time for time in (10, 15, 20.1, 20.2, 99) if (frame := frames.at(time))]
    assert shown == [10, 15, 20, 20.2, 20.2]  # behind 20 something may have happened


def test_of_one_step_the_last_one_is_kept() -> None:
    frames = frames_at(10, 11.01, 11.02)
    assert len(frames) == 2
    assert frames.end == 11.02


def test_of_too_many_those_at_even_distances_are_kept() -> None:
    frames = frames_at(*range(1000), most=100)
    kept = {number(frames, time) for time in range(16, 1000)}
    assert frames.step == 16
    assert len(frames) == 63
    assert kept == {*range(15, 999, 16), 999}


def test_of_those_that_are_too_large_together_fewer_are_kept() -> None:
    frames = frames_at(*range(100), most_bytes=20_000, size=1000)
    assert 8 <= len(frames) <= 20
    assert frames.size <= 20_000
    assert number(frames, 1e9) == 99


@pytest.mark.parametrize("last", [100.0, 253_402_300_799.0])
def test_one_is_kept_however_large_it_is(last: float) -> None:
    frames = frames_at(0, last, most_bytes=10, size=1000)
    assert len(frames) == 1
    assert number(frames, last) == last
