"""Quantities are exact; what counts as a whole number depends on how they are stored."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.values.quantity import parse_quantity, quantity_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7),
        ("1.5k", 1500),
        ("80Gi", 80 * 2**30),
        ("10e1", 100),
        ("50Ti", 50 * 2**40),
        ("100Ti", None),
        ("1Pi", None),
        ("80.0Gi", None),
        ("0.5Gi", None),
        ("2000m", None),
        ("1.0", None),
        ("10e-1", None),
        ("9E", 9 * 10**18),
        ("10E", None),
        ("123456789012345678", 123456789012345678),
        ("1234567890123456789", None),
        ("-3k", -3000),
        ("0", 0),
        ("Gi", 0),
    ],
)
def test_whole_numbers_are_what_is_stored_as_such(text: str, expected: int | None) -> None:
    assert parse_quantity(text).integer == expected


def test_sums_keep_the_smaller_exponent() -> None:
    assert parse_quantity("1500m").add(parse_quantity("500m")).integer is None
    assert parse_quantity("50Ti").add(parse_quantity("50Ti")).integer == 100 * 2**40
    assert parse_quantity("1k").subtract(quantity_of(1)).integer == 999
    assert parse_quantity("9E").add(parse_quantity("9E")).integer is None


def test_floats_are_as_approximate_as_in_kubernetes() -> None:
    assert parse_quantity("2.3").approximate_float == 2.3000000000000003
    assert parse_quantity("100Ti").approximate_float == 100.0 * 2**40
    assert parse_quantity("1.5k").approximate_float == 1500.0


@pytest.mark.parametrize("text", ["", "1K", "1ki", "1e", " 1", "1.2.3", "x", "Pi"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(EvaluationError):
        parse_quantity(text)


def test_numbers_of_any_size_take_no_time() -> None:
    huge = parse_quantity("1e2147483647")
    assert huge.compare(parse_quantity("1" + "0" * 50)) == 1
    assert huge.add(huge).compare(huge) == 1
    assert parse_quantity("1e-2147483647").sign == 1


NUMBERS = st.builds("{}{}".format, st.integers(-(10**6), 10**6), st.sampled_from(["", ".5", ".125"]))
SUFFIXES: dict[str, int | Fraction] = {
    "": 1,
    "k": 1000,
    "M": 10**6,
    "m": Fraction(1, 1000),
    "Ki": 2**10,
    "Ti": 2**40,
    "e3": 1000,
}


@given(NUMBERS, st.sampled_from(sorted(SUFFIXES)), NUMBERS, st.sampled_from(sorted(SUFFIXES)))
def test_comparisons_and_sums_are_exact(one: str, one_suffix: str, other: str, other_suffix: str) -> None:
    values = [Fraction(one) * SUFFIXES[one_suffix], Fraction(other) * SUFFIXES[other_suffix]]
    parsed = [parse_quantity(one + one_suffix), parse_quantity(other + other_suffix)]
    total, difference = parsed[0].add(parsed[1]), parsed[0].subtract(parsed[1])
    assert parsed[0].compare(parsed[1]) == (values[0] > values[1]) - (values[0] < values[1])
    assert Fraction(total.digits) * Fraction(10) ** total.exponent == values[0] + values[1]
    assert difference.sign == (values[0] > values[1]) - (values[0] < values[1])
