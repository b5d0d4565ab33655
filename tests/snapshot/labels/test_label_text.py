import pytest

from trio_sched.snapshot.labels.label_text import is_label_value, parse_int64


@pytest.mark.parametrize(
    ("text", "number"), [("+5", 5), ("-5", -5), ("005", 5), ("5_0", None), ("", None), ("5 ", None), ("9" * 19, None)]
)
def test_numbers_in_labels_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


def test_label_values_may_be_empty_but_not_just_anything() -> None:
    assert [is_label_value(text) for text in ("", "a", "a-b_c.d", "-a", "a" * 63, "a" * 64)] == [
        True,
        True,
        True,
        False,
        True,
        False,
    ]
