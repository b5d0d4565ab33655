from datetime import datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest
from trio_sched_time_windows.windows import BadWindow, Schedule, read_windows

BERLIN, UTC = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")


def at(text: str, zone: ZoneInfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def opens(windows: str, now: float) -> float | None:
    return Schedule(read_windows(windows, BERLIN)).opens_at(now)


@pytest.mark.parametrize(
    ("windows", "now", "expected"),
    [
        ("22:00-06:00", "2026-03-10T21:59", "2026-03-10T22:00"),
        ("22:00-06:00", "2026-03-10T22:00", None),
        ("22:00-06:00", "2026-03-11T05:59", None),
        ("22:00-06:00", "2026-03-11T06:00", "2026-03-11T22:00"),
        ("Fri 22:00-06:00", "2026-03-14T05:00", None),  # Saturday morning belongs to Friday
        ("Fri 22:00-06:00", "2026-03-14T07:00", "2026-03-20T22:00"),
        ("Sat-Sun 00:00-24:00", "2026-03-13T12:00", "2026-03-14T00:00"),
        ("Sat-Sun 00:00-24:00", "2026-03-15T23:59", None),
        ("Sat,Mon 08:00-09:00", "2026-03-14T09:00", "2026-03-16T08:00"),
        ("Fri-Mon 08:00-09:00", "2026-03-15T08:30", None),
        ("08:00-09:00; 07:00-07:30", "2026-03-15T07:40", "2026-03-15T08:00"),
        ("daily 08:00-08:00", "2026-03-15T23:00", None),  # a whole day
        ("02:30-03:30", "2026-03-29T03:10", None),  # 02:30 does not exist on that night
        ("02:15-02:45", "2026-10-25T01:00", "2026-10-25T02:15"),
    ],
)
def test_when_windows_open(windows: str, now: str, expected: str | None) -> None:
    assert opens(windows, at(now)) == (None if expected is None else at(expected))


def test_an_hour_that_is_there_twice_is_open_from_the_first_to_the_last() -> None:
    begin = datetime(2026, 10, 25, 2, 15, tzinfo=BERLIN).timestamp()
    assert opens("02:15-02:45", begin) is None
    assert opens("02:15-02:45", begin + 89 * 60) is None
    assert opens("02:15-02:45", begin + 90 * 60) == at("2026-10-26T02:15")


def test_a_window_is_at_the_same_local_time_in_winter_and_summer() -> None:
    assert at("2026-03-30T22:00") - at("2026-03-28T22:00") == 47 * 3600
    assert opens("22:00-23:00", at("2026-03-28T23:00")) == at("2026-03-29T22:00")


def test_a_window_may_name_its_zone() -> None:
    assert opens("08:00-09:00 Asia/Tokyo", at("2026-03-10T00:30", UTC)) == at("2026-03-10T23:00", UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";;",
        "22-06",
        "25:00-26:00",
        "Mo 22:00-23:00",
        "22:00-23:00 Mars/Base",
        "22:00-23:00 ../etc",
        "x" * 2000,
        "24:00-06:00",
        "-, 22:00-23:00",
        "22:00-23:00 /etc/passwd",
    ],
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(BadWindow):
        read_windows(text, UTC)


def test_what_is_remembered_is_right() -> None:
    """A schedule that is asked again and again, with the clock also set back, says what a new one says."""
    chance = Random(3)
    for text in ("Mon-Fri 22:00-06:00; Sat 12:00-13:00", "02:30-03:00", "daily 00:00-00:00"):
        kept, now = Schedule(read_windows(text, BERLIN)), at("2026-03-20T00:00")
        for _ in range(400):
            now += timedelta(minutes=chance.randint(-300, 400)).total_seconds()
            fresh = Schedule(read_windows(text, BERLIN)).opens_at(now)
            assert kept.opens_at(now) == fresh
            assert fresh is None or now < fresh < now + 8 * 86_400


def test_the_moment_is_told_in_local_time() -> None:
    schedule = Schedule(read_windows("22:00-06:00", BERLIN))
    now = at("2026-03-10T12:00")
    assert schedule.describe(at("2026-03-10T22:00"), now) == "22:00 Europe/Berlin"
    assert schedule.describe(at("2026-03-14T22:00"), now) == "Sat 2026-03-14 22:00 Europe/Berlin"
