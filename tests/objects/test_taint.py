import pytest

from trio_sched.objects.taint import canonical_int64


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-1", -1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("", None),
        ("-", None),
        ("-0", None),
        ("01", None),
        ("+1", None),
        ("1.0", None),
        (" 1", None),
        ("٣", None),
    ],
)
def test_only_the_canonical_way_to_write_a_number_counts(text: str, number: int | None) -> None:
    assert canonical_int64(text) == number
