import json
from typing import Any

import pytest

from trio_sched.daemon.extenders.extender_wire import (
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


def test_a_null_in_a_list_or_map_is_an_empty_value_as_for_go() -> None:
    assert read_filter_result(b'{"NodeNames":["a",null]}').names == ("a", "")
    answer = read_filter_result(b'{"FailedNodes":{"a":null},"FailedAndUnresolvableNodes":{"b":null}}')
    assert (answer.failed, answer.unresolvable) == ({"a": ""}, {"b": ""})
    items = b'[null,{"metadata":null},{"metadata":{"name":null}},{"metadata":{"name":"a"}}]'
    assert read_filter_result(b'{"Nodes":{"items":%b}}' % items).listed == ("", "", "", "a")
    assert read_priorities(b'[null,{"Host":null,"Score":null}]') == [("", 0), ("", 0)]
    assert read_victims(b'{"NodeNameToMetaVictims":{"n":{"Pods":[null]}}}') == {"n": MetaVictims(("",), 0)}


@pytest.mark.parametrize("read", [read_filter_result, read_priorities, read_bind_error, read_victims])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "EOF"),
        (b" \n", "EOF"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b'"text"', "json: cannot unmarshal string into Go value of type v1."),
        (b"[1", "unexpected EOF"),
        (b'{"a', "unexpected EOF"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b"\xff", "invalid character '\u00ff' looking for beginning of value"),
        (b"\xef\xbb\xbf{}", "invalid character '\u00ef' looking for beginning of value"),
        (b'{"x":' + b"[" * 100_000, "exceeded max depth"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "exceeded max depth"),
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


@pytest.mark.parametrize(
    ("read", "body", "text"),
    [
        (read_filter_result, b"[]", "array into Go value of type v1.ExtenderFilterResult"),
        (read_priorities, b"{}", "object into Go value of type v1.HostPriorityList"),
        (read_bind_error, b"5", "number into Go value of type v1.ExtenderBindingResult"),
        (read_victims, b"true", "bool into Go value of type v1.ExtenderPreemptionResult"),
        (
            read_filter_result,
            b'{"nodenames":"a"}',
            "string into Go struct field ExtenderFilterResult.NodeNames of type []string",
        ),
        (
            read_filter_result,
            b'{"NodeNames":["a",7]}',
            "number into Go struct field ExtenderFilterResult.NodeNames of type string",
        ),
        (
            read_filter_result,
            b'{"Nodes":{"items":[{"metadata":{"name":{}}}]}}',
            "object into Go struct field ObjectMeta.Nodes.items.metadata.name of type string",
        ),
        (
            read_filter_result,
            b'{"FailedNodes":["a"]}',
            "array into Go struct field ExtenderFilterResult.FailedNodes of type v1.FailedNodesMap",
        ),
        (read_priorities, b"[1]", "number into Go value of type v1.HostPriority"),
        (read_priorities, b'[{"Score":7.0}]', "number 7.0 into Go struct field HostPriority.Score of type int64"),
        (
            read_priorities,
            b'[{"Score":9223372036854775808}]',
            "number 9223372036854775808 into Go struct field HostPriority.Score of type int64",
        ),
        (read_priorities, b'[{"Score":"7"}]', "string into Go struct field HostPriority.Score of type int64"),
        (
            read_victims,
            b'{"NodeNameToMetaVictims":{"n":{"Pods":{}}}}',
            "object into Go struct field MetaVictims.NodeNameToMetaVictims.Pods of type []*v1.MetaPod",
        ),
    ],
)
def test_an_answer_of_another_type_is_refused_in_the_words_of_go(read: Any, body: bytes, text: str) -> None:
    with pytest.raises(InvalidResponse) as caught:
        read(body)
    assert str(caught.value) == f"json: cannot unmarshal {text}"


def test_what_follows_the_first_value_is_not_read() -> None:
    for rest in (b"\n", b"{}", b"]]", b" trailing", b"\xff"):
        assert read_filter_result(b'{"NodeNames":["a}"]}' + rest).names == ("a}",)
        assert read_priorities(b' [{"Host":"a"}]' + rest) == [("a", 0)]
        assert read_bind_error(b"null " + rest) == ""
    assert read_bind_error(b"null.") == ""


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    assert read_bind_error(b'{"Error":"a\xff\xe2\x82b\xed\xa0\x80"}') == "a\ufffd\ufffd\ufffdb\ufffd\ufffd\ufffd"
    assert read_bind_error(rb'{"Error":"\ud800 \udc00 \ud83d\ude00 \\ud800"}') == "\ufffd \ufffd \U0001f600 \\ud800"
    assert read_filter_result(b'{"FailedNodes":{"a":"\xfc"}} more').failed == {"a": "\ufffd"}


def test_an_answer_may_be_nested_as_deep_as_go_reads() -> None:
    assert read_filter_result(b'{"NodeNames":["a"],"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}").names == ("a",)
