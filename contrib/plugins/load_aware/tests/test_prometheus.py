from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from trio_sched_load_aware.prometheus import UnusableData, read_token, read_vector

from trio_sched.plugin_api import HttpResponse


def response(body: bytes | str, status: int = 200) -> HttpResponse:
    return HttpResponse(status=status, body=body.encode() if isinstance(body, str) else body)


def vector(*series: str) -> HttpResponse:
    return response('{"status":"success","data":{"resultType":"vector","result":[' + ",".join(series) + "]}}")


def one(node: str, value: str, label: str = "instance") -> str:
    return f'{{"metric":{{"{label}":"{node}"}},"value":[1,{value}]}}'


def test_a_value_per_node_without_its_port() -> None:
    found = read_vector(vector(one("a:9100", '"0.25"'), one("b", '"0.5"'), one("fe80::1", '"0.1"')), "instance")
    assert found == {"a": 0.25, "b": 0.5, "fe80:": 0.1}


def test_of_several_series_of_a_node_the_highest_counts() -> None:
    assert read_vector(vector(one("a", '"0.2"'), one("a", '"0.7"'), one("a", '"0.3"')), "instance") == {"a": 0.7}


def test_what_is_no_number_costs_its_node_only() -> None:
    bad = [one("n", value) for value in ('"NaN"', '"+Inf"', "null", "{}", '"x"', '"1e999"')]
    bad += ["1", "null", '{"metric":[]}', '{"metric":{"instance":5},"value":[1,"1"]}', '{"value":[1,"1"]}']
    assert read_vector(vector(*bad, one("a", '"0.5"'), one("b", '"-0.1"'), one("c", '"1.3"')), "instance") == {
        "a": 0.5,
        "b": 0.0,
        "c": 1.0,
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (response("{"), "no JSON"),
        (response("[" * 200_000), "no JSON"),
        (response("[]"), "none of the Prometheus API"),
        (response("null", 503), "status 503"),
        (response('{"status":"error","error":"parse error"}', 400), "status 400: parse error"),
        (response('{"status":"success","data":{"resultType":"matrix","result":[]}}'), "no instant vector"),
        (response('{"status":"success","data":7}'), "no instant vector"),
        (response(b" " * (5 * 2**20)), "5.0 MiB, at most 4 MiB"),
        (response(b"\xff\xfe"), "no JSON"),
        (vector(), "no series: check query and nodeLabel"),
        (vector(one("a", '"0.1"', label="node")), "none of 1 series has a label 'instance'"),
        (vector(one("a", '"63.2"')), "divide per cents by 100"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_used_is_named(given: HttpResponse, said: str) -> None:
    with pytest.raises(UnusableData, match=said.replace("(", r"\(")):
        read_vector(given, "instance")


def test_a_token_is_read_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    cases: Mapping[str, Any] = {
        "not there": None,
        "empty": b"",
        "two lines": b"secret\nx: secret",
        "binary": b"\xffsecret",
        "long": b"secret" * 9999,
    }
    for content in cases.values():
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(UnusableData) as raised:
            read_token(str(file))
        assert "secret" not in str(raised.value)
        assert str(file) in str(raised.value)
    file.write_bytes(b"abc\n")
    assert read_token(str(file)) == "abc"
