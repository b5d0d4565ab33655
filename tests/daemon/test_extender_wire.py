import json
from typing import Any

import pytest

from trio_sched.daemon.extender_wire import (
    InvalidResponse,
    MetaVictims,
    read_bind_error,
    read_filter_result,
    read_priorities,
    read_victims,
    request_about_nodes,
    request_about_victims,
    request_to_bind,
)
from trio_sched.testing import node, pod


def test_requests_have_the_keys_of_go_and_omit_none() -> None:
    nodes = {name: node(name) for name in ("a", "b")}
    by_name = json.loads(request_about_nodes(pod("p"), nodes, names_only=True))
    assert (by_name["Nodes"], by_name["NodeNames"]) == (None, ["a", "b"])
    assert by_name["Pod"]["metadata"]["name"] == "p"
    whole = json.loads(request_about_nodes(pod("p"), nodes, names_only=False))
    assert whole["NodeNames"] is None
    assert [item["metadata"]["name"] for item in whole["Nodes"]["items"]] == ["a", "b"]
    assert json.loads(request_to_bind(pod("p", namespace="n", uid="u"), "a")) == {
        "PodName": "p",
        "PodNamespace": "n",
        "PodUID": "u",
        "Node": "a",
    }


def test_victims_are_sent_as_uids_or_as_objects() -> None:
    victims = {"a": ([pod("v", uid="1"), pod("w", uid="2")], 1), "b": ([], 0)}
    named = json.loads(request_about_victims(pod("p"), victims, uids_only=True))
    assert named["NodeNameToVictims"] is None
    assert named["NodeNameToMetaVictims"] == {
        "a": {"Pods": [{"UID": "1"}, {"UID": "2"}], "NumPDBViolations": 1},
        "b": {"Pods": [], "NumPDBViolations": 0},
    }
    whole = json.loads(request_about_victims(pod("p"), victims, uids_only=False))
    assert whole["NodeNameToMetaVictims"] is None
    assert [one["metadata"]["name"] for one in whole["NodeNameToVictims"]["a"]["Pods"]] == ["v", "w"]


def test_answers_are_read_with_keys_of_any_case() -> None:
    answer = read_filter_result(
        b'{"nodenames":["a"],"NODES":{"Items":[{"metadata":{"name":"b"},"spec":{}}]},"failedNodes":{"C":"why"},'
        b'"FailedAndUnresolvableNodes":{"d":"never"},"error":null,"more":1}'
    )
    assert (answer.names, answer.listed, answer.error) == (("a",), ("b",), "")
    assert (answer.failed, answer.unresolvable) == ({"C": "why"}, {"d": "never"})
    assert read_priorities(b'[{"host":"a","SCORE":7},{"Host":"b"}]') == [("a", 7), ("b", 0)]
    assert read_bind_error(b'{"ERROR":"no"}') == "no"
    assert read_victims(b'{"nodeNameToMetaVictims":{"N":{"pods":[{"uid":"1"}],"numPDBViolations":2},"M":null}}') == {
        "N": MetaVictims(("1",), 2),
        "M": MetaVictims((), 0),
    }


def test_a_missing_key_is_none_and_null_is_an_answer() -> None:
    for body in (b"{}", b"null", b'{"Nodes":null,"NodeNames":null,"FailedNodes":null}'):
        answer = read_filter_result(body)
        assert (answer.names, answer.listed, answer.failed, answer.unresolvable) == (None, None, {}, {})
    assert read_filter_result(b'{"Nodes":{"items":null}}').listed == ()
    assert read_priorities(b"null") == []
    assert read_bind_error(b"{}") == ""
    assert read_victims(b"{}") == {}


@pytest.mark.parametrize("read", [read_filter_result, read_priorities, read_bind_error, read_victims])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "EOF"),
        (b" \n", "EOF"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b'"text"', "Expected"),
        (b"[1", ""),
        (b'{"a', ""),
        (b"\xff", "invalid character"),
        (b'{"x":' + b"[" * 100_000, ""),
    ],
)
def test_an_invalid_answer_is_refused(read: Any, body: bytes, text: str) -> None:
    with pytest.raises(InvalidResponse) as caught:
        read(body)
    assert str(caught.value).startswith(text)


def test_scores_have_64_bits() -> None:
    assert read_priorities(b'[{"Host":"a","Score":9223372036854775807}]') == [("a", 2**63 - 1)]
    with pytest.raises(InvalidResponse):
        read_priorities(b'[{"Host":"a","Score":9223372036854775808}]')
