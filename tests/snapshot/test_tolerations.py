"""Indexed tolerations, compared with asking one after the other."""

from call_count import count_calls
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.objects.taint import Taint, Toleration
from trio_sched.snapshot.tolerations import Tolerations

KEYS = st.sampled_from(["", "a", "b"])
EFFECTS = st.sampled_from(["", "NoSchedule", "NoExecute"])
VALUES = st.sampled_from(["", "x", "-5", "3", "7", "07", "99999999999999999999"])
OPERATORS = st.sampled_from(["", "Equal", "Exists", "Lt", "Gt", "Near"])
TOLERATIONS = st.lists(st.builds(Toleration, KEYS, OPERATORS, VALUES, EFFECTS), max_size=6)


@given(TOLERATIONS, st.builds(Taint, KEYS, VALUES, EFFECTS), st.booleans())
def test_they_tolerate_what_one_of_them_tolerates(tolerations: list[Toleration], taint: Taint, numeric: bool) -> None:
    expected = any(one.tolerates(taint, numeric=numeric) for one in tolerations)
    assert Tolerations(tolerations, numeric=numeric).tolerate(taint) is expected


def test_a_taint_is_not_compared_with_each_of_many_tolerations() -> None:
    def calls(count: int) -> int:
        many = [Toleration(f"k{n}", "Equal", "v", "NoSchedule") for n in range(count)]
        many += [Toleration("k", "Lt", f"{n}") for n in range(count)]
        indexed = Tolerations(many, numeric=True)
        return count_calls(lambda: indexed.tolerate(Taint("k", "1000", "NoSchedule")))

    assert calls(100) == calls(10)
