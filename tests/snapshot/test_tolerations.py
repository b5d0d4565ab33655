"""What is tolerated, and that many tolerations are not asked one after the other."""

import pytest
from call_count import count_calls
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.objects.taint import Taint, Toleration
from trio_sched.snapshot.tolerations import Tolerations

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
    assert Tolerations([toleration]).tolerate(TAINT) is tolerates


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
    assert Tolerations([toleration], numeric=True).tolerate(taint) is tolerates
    assert not Tolerations([toleration]).tolerate(taint)


KEYS = st.sampled_from(["", "a", "b"])
EFFECTS = st.sampled_from(["", "NoSchedule", "NoExecute"])
VALUES = st.sampled_from(["", "x", "-5", "3", "7", "07", "99999999999999999999"])
OPERATORS = st.sampled_from(["", "Equal", "Exists", "Lt", "Gt", "Near"])
TOLERATIONS = st.lists(st.builds(Toleration, KEYS, OPERATORS, VALUES, EFFECTS), max_size=6)


@given(TOLERATIONS, st.builds(Taint, KEYS, VALUES, EFFECTS), st.booleans())
def test_they_tolerate_what_one_of_them_tolerates(tolerations: list[Toleration], taint: Taint, numeric: bool) -> None:
    expected = any(Tolerations([one], numeric=numeric).tolerate(taint) for one in tolerations)
    assert Tolerations(tolerations, numeric=numeric).tolerate(taint) is expected


def test_a_taint_is_not_compared_with_each_of_many_tolerations() -> None:
    def calls(count: int) -> int:
        many = [Toleration(f"k{n}", "Equal", "v", "NoSchedule") for n in range(count)]
        many += [Toleration("k", "Lt", f"{n}") for n in range(count)]
        indexed = Tolerations(many, numeric=True)
        return count_calls(lambda: indexed.tolerate(Taint("k", "1000", "NoSchedule")))

    assert calls(100) == calls(10)
