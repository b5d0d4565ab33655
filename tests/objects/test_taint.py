import pytest

from trio_sched.objects.taint import Taint, Toleration, canonical_int64

TAINT = Taint(key="k", value="v", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration(key="k", value="v", effect="NoSchedule"), True),
        (Toleration(key="k", operator="Equal", value="v"), True),
        (Toleration(key="k", operator="Equal", value="w"), False),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="k", operator="OfTheFuture", value="v"), False),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(value="v"), True),
        (Toleration(value="w"), False),
        (Toleration(), False),
    ],
)
def test_effect_key_and_value_must_all_fit(toleration: Toleration, tolerates: bool) -> None:
    assert toleration.tolerates(TAINT) is tolerates


@pytest.mark.parametrize(
    ("operator", "wanted", "found", "tolerates"),
    [
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Gt", "-7", "-6", True),
        ("Gt", "5", "06", False),
        ("Gt", "+5", "6", False),
        ("Lt", "5", "four", False),
    ],
)
def test_numbers_are_compared_where_the_feature_is_on(operator: str, wanted: str, found: str, tolerates: bool) -> None:
    toleration = Toleration(key="k", operator=operator, value=wanted)  # type: ignore[arg-type]
    taint = Taint(key="k", value=found, effect="NoExecute")
    assert toleration.tolerates(taint, numeric=True) is tolerates
    assert not toleration.tolerates(taint)


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
