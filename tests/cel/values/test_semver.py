"""Versions are parsed and compared as in Kubernetes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.values.semver import parse_semver


@pytest.mark.parametrize("text", ["0.0.0", "1.2.3", "1.2.3-rc.1", "1.2.3+b.7", "1.2.3-a-b.0+001", f"{2**64 - 1}.0.0"])
def test_versions_are_written_as_they_are_read(text: str) -> None:
    assert str(parse_semver(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [("v1", "1.0.0"), ("1.2", "1.2.0"), ("v01.002.0003", "1.2.3"), ("1.2.03-rc.1", "1.2.3-rc.1"), ("00.0.0", "0.0.0")],
)
def test_short_versions_are_completed_on_demand(text: str, expected: str) -> None:
    assert str(parse_semver(text, normalize=True)) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("v3.1.2", 'Invalid character(s) found in major number "v3"'),
        ("03.1.2", 'Major number must not contain leading zeroes "03"'),
        ("3.x.2", 'Invalid character(s) found in minor number "x"'),
        ("3.1.2.4", 'Invalid character(s) found in patch number "2.4"'),
        ("3..2", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("18446744073709551616.0.0", 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-a..b", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3-ä", 'Invalid character(s) found in prerelease "ä"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+a_b", 'Invalid character(s) found in build meta data "a_b"'),
    ],
)
def test_what_is_wrong_is_named(text: str, problem: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        parse_semver(text)
    assert str(caught.value) == problem


def test_a_short_version_with_more_is_refused() -> None:
    with pytest.raises(EvaluationError, match="short version cannot contain PreRelease/Build meta data"):
        parse_semver("1.2-rc", normalize=True)


ORDERED = ("1.0.0-0", "1.0.0-2", "1.0.0-10", "1.0.0-a", "1.0.0-a.1", "1.0.0-b", "1.0.0", "1.0.1", "1.2.0", "1.10.0")


@given(st.integers(0, len(ORDERED) - 1), st.integers(0, len(ORDERED) - 1))
def test_they_are_ordered_by_the_rules_of_semantic_versions(one: int, other: int) -> None:
    first, second = parse_semver(ORDERED[one] + "+x"), parse_semver(ORDERED[other] + "+y")
    assert (first < second, first == second) == (one < other, one == other)
    assert one != other or hash(first) == hash(second)


@given(st.text(alphabet="0123456789.+-vab", max_size=20))
def test_any_text_is_a_version_or_refused(text: str) -> None:
    for normalize in (False, True):
        try:
            version = parse_semver(text, normalize=normalize)
        except EvaluationError:
            continue
        assert parse_semver(str(version)) == version
