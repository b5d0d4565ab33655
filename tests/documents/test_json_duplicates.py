"""Keys that are there twice, in small texts and in large ones, where keys are only counted."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.documents.json_duplicates import duplicate_keys
from trio_sched.documents.plain import read_plain

LARGE = {f"key {number}": {"a": ['": ', {"b": "x" * 1000}]} for number in range(1000)}


def twice(text: str) -> list[str]:
    (document,) = read_plain(text)
    return [str(one) for one in document.duplicates]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("rest", [{}, LARGE])
def test_a_key_that_is_there_twice_is_found(rest: dict[str, object], indent: int | None) -> None:
    text = json.dumps({"list": [1, {"a": {"b": 1, "c": {"b": 2}}}], **rest}, indent=indent)
    assert twice(text) == []
    line = text[: text.index('"c"')].count("\n") + 1
    assert twice(text.replace('"c"', '"\\u0062"')) == [f'line {line}: duplicate field "list[1].a.b"']


@pytest.mark.parametrize("other", ['"c" : 1', '"c\\\\": 1', '"c"\n:1'])
def test_a_key_that_is_counted_otherwise_hides_none_in_a_large_text(other: str) -> None:
    text = json.dumps(LARGE).replace("{", f'{{"b": 1, "b": 2, {other}, ', 1)
    assert twice(text) == ['line 1: duplicate field "b"']


values = st.recursive(
    st.none() | st.integers(-5, 5) | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
)


@given(values)
def test_nothing_is_found_where_nothing_is_twice(value: object) -> None:
    assert list(duplicate_keys(json.dumps(value), 0, 1)) == []
