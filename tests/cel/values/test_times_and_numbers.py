"""Times, numbers and addresses agree with what Python's own libraries make of them."""

import ipaddress
import math
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.values.network import parse_cidr, parse_ip
from trio_sched.cel.values.numbers import double_text, fixed_text, parse_float, parse_int, parse_uint
from trio_sched.cel.values.times import (
    Duration,
    Timestamp,
    civil,
    local_seconds,
    parse_cel_duration,
    parse_timestamp,
    timestamp_of,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31), timezones=OFFSETS)


def seconds_of(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(seconds=1)


@given(MOMENTS)
def test_timestamps_are_read_and_written_as_they_are(moment: datetime) -> None:
    found = parse_timestamp(moment.isoformat())
    assert found == Timestamp(seconds_of(moment), moment.microsecond * 1000)
    assert found is not None
    assert parse_timestamp(str(found)) == found
    assert datetime.fromisoformat(str(found)) == moment


@given(MOMENTS)
def test_the_parts_of_a_day_are_those_of_the_calendar(moment: datetime) -> None:
    moment = moment.astimezone(UTC)
    year, month, day, of_year, of_week, second = civil(seconds_of(moment))
    assert (year, month, day) == (moment.year, moment.month, moment.day)
    assert of_year == moment.timetuple().tm_yday
    assert of_week == moment.isoweekday() % 7
    assert second == moment.hour * 3600 + moment.minute * 60 + moment.second


@given(MOMENTS, st.sampled_from(["America/New_York", "Europe/Berlin", "Asia/Kolkata", "UTC"]))
def test_zones_are_those_of_the_database(moment: datetime, zone: str) -> None:
    there = moment.astimezone(ZoneInfo(zone))
    expected = (there.replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
    assert local_seconds(Timestamp(seconds_of(moment)), zone) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01 00:00:00Z", "2024-01-01t00:00:00z"),
        *("2024-13-01T00:00:00Z", "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-01-01T24:00:00Z"),
        *("2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z", "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00+0100"),
        *("2024-01-01T00:00:00+25:00", "20240-01-01T00:00:00Z", "2024-01-01T00:00:00Zx", "２024-01-01T00:00:00Z"),
    ],
)
def test_what_go_does_not_take_for_a_timestamp_is_none(text: str) -> None:
    assert parse_timestamp(text) is None


def test_timestamps_stay_within_the_years_1_to_9999() -> None:
    for text in ("0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"):
        with pytest.raises(EvaluationError, match="timestamp overflow"):
            parse_timestamp(text)
    last = timestamp_of(253_402_300_799, 999_999_999)
    assert str(last) == "9999-12-31T23:59:59.999999999Z"
    with pytest.raises(EvaluationError, match="timestamp overflow"):
        last.plus(1)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_duration_is_written_in_seconds(nanoseconds: int) -> None:
    text = str(Duration(nanoseconds))
    assert text.endswith("s")
    assert math.isclose(float(text[:-1]), nanoseconds / 1e9, rel_tol=1e-15)
    if abs(nanoseconds) < 1 << 52:  # below that, floating point is exact enough to read it back
        assert parse_cel_duration(text) in (Duration(nanoseconds), Duration(nanoseconds - 1), Duration(nanoseconds + 1))


@given(st.floats(allow_nan=False))
def test_doubles_are_written_so_that_they_are_read_back(number: float) -> None:
    assert parse_float(double_text(number)) == number
    if not math.isinf(number):
        assert float(fixed_text(number)) == number
        assert "e" not in fixed_text(number)


@given(st.text(alphabet="0123456789+-._eEpPxXinfa", max_size=12))
def test_no_text_breaks_the_readers_of_numbers(text: str) -> None:
    number = parse_int(text)
    assert number is None or number == int(text)
    unsigned = parse_uint(text)
    assert unsigned is None or unsigned == int(text)
    double = parse_float(text)
    assert double is None or "x" in text.lower() or double == float(text) or double != double


@given(st.ip_addresses(), st.integers(0, 32))
def test_addresses_and_networks_are_those_of_the_standard_library(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, bits: int
) -> None:
    if getattr(address, "ipv4_mapped", None) is not None:
        with pytest.raises(EvaluationError, match="is not allowed"):
            parse_ip(str(address))
        return
    ip = parse_ip(str(address))
    assert (str(ip), ip.family, ip.size) == (str(address), address.version, address.max_prefixlen // 8)
    cidr = parse_cidr(f"{address}/{bits}")
    network = ipaddress.ip_network(f"{address}/{bits}", strict=False)
    assert cidr.masked.address == network.network_address
    assert cidr.contains_ip(ip)
    assert cidr.contains_cidr(cidr.masked)
