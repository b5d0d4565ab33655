from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_sched.objects.amounts.quantity import (
    INT64_MAX,
    INT64_MIN,
    NANO,
    QuantityError,
    clamp_int64,
    parse_nano,
    to_milli,
    to_units,
)
from trio_sched.objects.amounts.quantity_text import QuantityStyle, style_of

REPEATABLE = settings(derandomize=True, deadline=None, database=None, max_examples=150)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("500m", Fraction(1, 2)),
        ("-500m", Fraction(-1, 2)),
        ("+3", 3),
        ("5.", 5),
        (".5", Fraction(1, 2)),
        ("1.5Gi", 3 * 2**29),
        ("0.1Ki", Fraction(1024, 10)),
        ("1k", 1000),
        ("2M", 2_000_000),
        ("3G", 3 * 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("2E", 2 * 10**18),
        ("1Ei", 2**60),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("12e9", 12 * 10**9),
        ("12E9", 12 * 10**9),
        ("1e-3", Fraction(1, 1000)),
        ("1E+3", 1000),
        ("100n", Fraction(100, 10**9)),
        ("1500300u", Fraction(1500300, 10**6)),
        (" 7 ", 7),
        ("+", 0),
        ("Gi", 0),
        ("-k", 0),
        ("e5", 0),
        ("-", 0),
        (".", 0),
        (3, 3),
        (0.5, Fraction(1, 2)),
    ],
)
def test_every_suffix_has_its_factor(text: str | float, value: int | Fraction) -> None:
    assert parse_nano(text) == value * NANO


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "quantities must match the regular expression"),
        ("abc", "quantities must match the regular expression"),
        ("1 Gi", "quantities must match the regular expression"),
        ("1B", "quantities must match the regular expression"),
        ("1.2.3", "quantities must match the regular expression"),
        ("Pi", "unable to parse numeric part of quantity"),
        (".Ei", "unable to parse numeric part of quantity"),
        ("1ki", "unable to parse quantity's suffix"),
        ("1K", "unable to parse quantity's suffix"),
        ("1mi", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        ("1m5", "unable to parse quantity's suffix"),
    ],
)
def test_what_is_no_quantity_is_refused_in_kubernetes_words(text: str, message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        parse_nano(text)


def test_finer_than_nano_is_rounded_away_from_zero() -> None:
    assert parse_nano("0.1n") == 1
    assert parse_nano("-0.1n") == -1
    assert parse_nano("1e-5000") == 1
    assert parse_nano("0e-5000") == 0


def test_binary_amounts_are_clamped_and_decimal_ones_are_not() -> None:
    assert parse_nano("16Ei") == INT64_MAX * NANO
    assert parse_nano("-16Ei") == -INT64_MAX * NANO
    assert parse_nano("20E") == 20 * 10**18 * NANO
    assert to_units(parse_nano("20E")) == INT64_MAX


def test_a_monstrous_exponent_is_cut_to_what_fits_nowhere_anyway() -> None:
    assert to_units(parse_nano("1e100000")) == INT64_MAX


@pytest.mark.parametrize(
    ("text", "units", "milli"),
    [("1", 1, 1000), ("1m", 1, 1), ("100u", 1, 1), ("1100u", 1, 2), ("-1m", -1, -1), ("-1100u", -1, -2), ("0", 0, 0)],
)
def test_rounding_goes_up_once_and_away_from_zero(text: str, units: int, milli: int) -> None:
    assert to_units(parse_nano(text)) == units
    assert to_milli(parse_nano(text)) == milli


def test_integers_stay_within_64_bits() -> None:
    assert clamp_int64(2**70) == INT64_MAX
    assert clamp_int64(-(2**70)) == INT64_MIN
    assert clamp_int64(-5) == -5


@REPEATABLE
@given(st.integers(0, 10**9), st.integers(0, 6), st.sampled_from(["", "k", "M", "Ki", "Gi", "m"]))
def test_a_number_with_a_fraction_means_what_it_says(digits: int, places: int, suffix: str) -> None:
    factor = {"": 1, "k": 1000, "M": 10**6, "Ki": 1024, "Gi": 2**30, "m": Fraction(1, 1000)}[suffix]
    text = str(digits).rjust(places + 1, "0")
    number = f"{text[:-places]}.{text[-places:]}" if places else text
    exact = Fraction(digits, 10**places) * factor * NANO
    assert parse_nano(number + suffix) == -(-exact.numerator // exact.denominator)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("9" * 100_000, INT64_MAX),
        ("-" + "9" * 100_000, INT64_MIN),
        ("0" * 100_000 + "7", 7),
        ("7." + "0" * 100_000, 7),
        ("7." + "0" * 100_000 + "1", 8),
        ("0." + "1" * 100_000, 1),
        ("5" + "0" * 100 + "e-100", 5),
        ("5" + "0" * 99 + "1e-100", 6),
        ("1" * 5000 + "Ki", INT64_MAX),
        ("1e" + "9" * 5000, INT64_MAX),
        ("1e-" + "9" * 5000, 1),
        (10**5000, INT64_MAX),
        (-(10**5000), INT64_MIN),
        (12, 12),
    ],
    ids=range(14),
)
def test_numbers_of_any_length_are_read(text: str | int, units: int) -> None:
    assert to_units(parse_nano(text)) == units


def test_blanks_around_a_quantity_change_neither_its_value_nor_its_style() -> None:
    assert parse_nano(" 5Gi\n") == parse_nano("5Gi")
    assert style_of(" 5Gi\n") is QuantityStyle.BINARY
    assert style_of("\n-\n") is style_of("-")
