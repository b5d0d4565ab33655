import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.go.base64 import InvalidBase64, decode_base64


@given(st.binary())
def test_bytes_come_back_whatever_the_line_length(data: bytes) -> None:
    assert decode_base64(base64.encodebytes(data).decode()) == data


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("!!!", 0),
        ("Zm9v!", 4),
        ("Zg", 0),
        ("Zm9vZ", 4),
        ("=", 0),
        ("Zg=", 3),
        ("Zg=x", 2),
        ("Zm8=Zm8=", 4),
        ("Zg==\n=", 5),
    ],
)
def test_the_first_wrong_byte_is_named(text: str, wrong: int) -> None:
    with pytest.raises(InvalidBase64) as caught:
        decode_base64(text)
    assert str(caught.value) == f"illegal base64 data at input byte {wrong}"
