import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.go.durations import InvalidDuration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds", "shown"),
    [
        ("15s", 15_000_000_000, "15s"),
        ("1h30m0.5s", 5_400_500_000_000, "1h30m0.5s"),
        ("1.5h", 5_400_000_000_000, "1h30m0s"),
        (".5s", 500_000_000, "500ms"),
        ("5.s", 5_000_000_000, "5s"),
        ("-10m", -600_000_000_000, "-10m0s"),
        ("1µs", 1_000, "1µs"),
        ("0.1234567891234567891234567891234s", 123_456_789, "123.456789ms"),
        ("00015s", 15_000_000_000, "15s"),
        ("0", 0, "0s"),
        ("2562047h47m16.854775807s", (1 << 63) - 1, "2562047h47m16.854775807s"),
    ],
)
def test_a_duration_is_read_exactly_and_shown_as_go_shows_it(text: str, nanoseconds: int, shown: str) -> None:
    assert parse_duration(text) == nanoseconds
    assert format_duration(nanoseconds) == shown


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'time: invalid duration ""'),
        ("s", 'time: invalid duration "s"'),
        ("15", 'time: missing unit in duration "15"'),
        ("15x", 'time: unknown unit "x" in duration "15x"'),
        ("1e3s", 'time: unknown unit "e" in duration "1e3s"'),
        ("1 m", 'time: unknown unit " m" in duration "1 m"'),
        ("9223372037s", 'time: invalid duration "9223372037s"'),
        ("9" * 5000 + "ns", f'time: invalid duration "{"9" * 200}… (5002 characters)"'),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, problem: str) -> None:
    with pytest.raises(InvalidDuration) as caught:
        parse_duration(text)
    assert str(caught.value) == problem


@given(st.integers(min_value=-(1 << 63) + 1, max_value=(1 << 63) - 1))
def test_every_shown_duration_reads_back(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds
