import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.go.text import general_float, go_syntax, json_float, json_text, quote, round_to_float32


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a"b\\c', r'"a\"b\\c"'),
        ("a\nb\tc\x01", r'"a\nb\tc\x01"'),
        ("h\u00e9\u4e16", '"h\u00e9\u4e16"'),
        ("\u200b", r'"\u200b"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("esc\x1b[31m", r'"esc\x1b[31m"'),
        ("\x00\x7f\x80\x9b", r'"\x00\x7f\u0080\u009b"'),
        ("\a\b\f\r\v", r'"\a\b\f\r\v"'),
        ("a\u00a0b\u2003c\u3000", r'"a\u00a0b\u2003c\u3000"'),
        ("x\u2028y\u2029", r'"x\u2028y\u2029"'),
        ("\u202eabc\u2066\u200d\ufeff\u00ad", r'"\u202eabc\u2066\u200d\ufeff\u00ad"'),
        ("\ue000\uffff\U0010ffff", r'"\ue000\uffff\U0010ffff"'),
        ("e\u0301\ufffd\U0001f600 '", '"e\u0301\ufffd\U0001f600 \'"'),
        (b"a\xffb\x80".decode(errors="surrogateescape"), r'"a\xffb\x80"'),
    ],
)
def test_text_is_quoted_as_go_quotes_it(text: str, shown: str) -> None:
    assert quote(text) == shown


def test_json_escapes_what_would_be_html() -> None:
    assert json_text({"a": "<&>", "b": [1, None]}) == r'{"a":"\u003c\u0026\u003e","b":[1,null]}'


@pytest.mark.parametrize(
    ("number", "in_json", "in_general"),
    [
        (0.1, "0.1", "0.1"),
        (50.0, "50", "50"),
        (1e6, "1000000", "1e+06"),
        (1234567.5, "1234567.5", "1.2345675e+06"),
        (1e20, "100000000000000000000", "1e+20"),
        (1e21, "1e+21", "1e+21"),
        (1e-6, "0.000001", "1e-06"),
        (1.5e-7, "1.5e-7", "1.5e-07"),
        (-0.0, "-0", "-0"),
    ],
)
def test_floats_are_written_as_go_writes_them(number: float, in_json: str, in_general: str) -> None:
    assert json_float(number) == in_json
    assert general_float(number) == in_general


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_32_bit_float_is_written_with_digits_that_read_back(number: float) -> None:
    text = json_float(number, bits=32)
    assert struct.pack("<f", round_to_float32(float(text))) == struct.pack("<f", number)
    assert len(text.replace("-", "").replace(".", "").strip("0").partition("e")[0]) <= 9


def test_values_are_shown_in_go_syntax() -> None:
    value = {"b": [1, "x", None], "a": True}
    assert go_syntax(value) == ('map[interface {}]interface {}{"a":true, "b":[]interface {}{1, "x", <nil>}}')
