import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.json_reader import read_json
from trio_sched.documents.tree import Number, Object, compact, plain

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_python_writes_is_read_as_the_same_value(value: Any) -> None:
    assert plain(read_json(json.dumps(value))) == value


def test_every_pair_and_the_text_of_numbers_are_kept() -> None:
    tree = read_json('{"a": 7.0, "a": 1e1}')
    assert tree == Object((("a", Number("7.0")), ("a", Number("1e1"))))
    assert compact(tree) == '{"a":7.0,"a":1e1}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[,]", "invalid character ',' looking for beginning of value"),
        ('{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
        ('{"a":01}', "invalid character '1' after object key:value pair"),
        ('{"a":1.}', "invalid character '}' after decimal point in numeric literal"),
        ('{"a":-}', "invalid character '}' in numeric literal"),
        ('{"a":1e+}', "invalid character '}' in exponent of numeric literal"),
        ('{"a":"\\x"}', "invalid character 'x' in string escape code"),
        ('{"a":"\\u12g4"}', "invalid character 'g' in \\u hexadecimal character escape"),
        ('{"a":"\n"}', "invalid character '\\n' in string literal"),
        ("{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
        ('{"a":1} x', "invalid character 'x' after top-level value"),
        ('{"a":"b', "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
    ],
)
def test_malformed_json_is_refused_in_gos_words(text: str, problem: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_json(text)
    assert str(caught.value) == problem
