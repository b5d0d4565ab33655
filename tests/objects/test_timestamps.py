from datetime import UTC, datetime, timedelta, timezone

import pytest

from trio_sched.objects.timestamps import format_micro_time, format_time

MOMENT = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)


def test_a_time_is_cut_to_whole_seconds() -> None:
    assert format_time(MOMENT) == "2026-03-04T05:06:07Z"


@pytest.mark.parametrize(("microseconds", "digits"), [(890123, "890123"), (5, "000005"), (0, "000000")])
def test_a_micro_time_always_has_six_digits(microseconds: int, digits: str) -> None:
    assert format_micro_time(MOMENT.replace(microsecond=microseconds)) == f"2026-03-04T05:06:07.{digits}Z"


def test_moments_in_other_zones_are_written_in_utc() -> None:
    there = MOMENT.astimezone(timezone(timedelta(hours=-7, minutes=-30)))
    assert format_time(there) == "2026-03-04T05:06:07Z"
    assert format_micro_time(there) == "2026-03-04T05:06:07.890123Z"


def test_years_have_four_digits() -> None:
    assert format_time(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"
