import gc
import json
from typing import Any

import pytest

from trio_sched.documents.deep_json import MAX_DEPTH, depth_of, elements, place_of_member, pruned
from trio_sched.kube_client.decoding.decoding import Codec, Undecoded
from trio_sched.kube_client.errors import UndecodableObject
from trio_sched.kube_client.kinds import POD_KIND, Kind
from trio_sched.objects.any_object import AnyObject

ANY_KIND = Kind(group="example.dev", version="v1", plural="widgets", namespaced=True, type=AnyObject)
TOO_DEEP = 300_000  # newer Pythons decode what their stack has room for
"""Deeper than any Python decodes."""


def deep(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"1" + closing * depth


def pod_json(name: str, inside: bytes = b"1") -> bytes:
    return b'{"metadata":{"name":"%s","namespace":"d","resourceVersion":"7"},"spec":{"unknown":%s}}' % (
        name.encode(),
        inside,
    )


def list_json(*items: bytes) -> bytes:
    return b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[%s]}' % b",".join(items)


@pytest.mark.parametrize("kind", [POD_KIND, ANY_KIND], ids=["fields that are skipped", "fields that are kept"])
@pytest.mark.parametrize(
    "inside", [deep(MAX_DEPTH - 2), deep(MAX_DEPTH - 2, b'{"a":', b"}")], ids=["arrays", "objects"]
)
def test_what_an_api_server_stores_is_decoded(kind: Kind[Any], inside: bytes) -> None:
    codec = Codec(kind)
    assert codec.object(pod_json("deep", inside)).metadata.name == "deep"
    page = codec.page(list_json(pod_json("a"), pod_json("deep", inside), pod_json("b")))
    assert [one.metadata.name for one in page.objects] == ["a", "deep", "b"]
    lines = b"".join(b'{"type":"ADDED","object":%s}\n' % one for one in (pod_json("a"), pod_json("deep", inside)))
    assert [event.object.metadata.name for event in codec.events(lines)] == ["a", "deep"]  # type: ignore[union-attr]


def test_an_object_that_is_too_deep_is_left_out_and_the_others_are_not() -> None:
    codec = Codec(POD_KIND)
    bad = pod_json("bad", deep(TOO_DEEP))
    with pytest.raises(UndecodableObject, match=r"^pods d/bad left out: nested too deep$"):
        codec.object(bad)
    page = codec.page(list_json(pod_json("a"), bad, pod_json("b")))
    assert page.metadata.resource_version == "9"
    assert [one.name for one in page.objects] == ["a", "b"]
    assert [(one.namespace, one.name, one.resource_version) for one in page.undecoded] == [("d", "bad", "7")]


def test_an_event_whose_object_is_too_deep_names_it() -> None:
    lines = b"".join(
        b'{"type":"MODIFIED","object":%s}\n' % one for one in (pod_json("a"), pod_json("bad", deep(TOO_DEEP)))
    )
    good, bad = Codec(POD_KIND).events(lines)
    assert good.object.name == "a"  # type: ignore[union-attr]
    assert bad.type == "MODIFIED"
    assert isinstance(bad.object, Undecoded)
    assert (bad.object.name, str(bad.object.error)) == ("bad", "pods d/bad left out: nested too deep")


@pytest.mark.parametrize(
    "broken", [deep(TOO_DEEP), b'{"metadata":%s}' % deep(TOO_DEEP), b'{"items":' + b"[" * TOO_DEEP]
)
def test_what_is_no_list_is_an_error_however_deep(broken: bytes) -> None:
    codec = Codec(POD_KIND)
    try:
        page = codec.page(broken)
    except UndecodableObject:
        return
    assert page.objects == []


def test_pruning_keeps_json_and_drops_what_is_deep() -> None:
    value = {"a": [1, {"b": ["x]{", {"c": '\\"'}]}, 2], "d": {"e": {"f": {}}}, "g": "[[["}
    text = json.dumps(value).encode()
    assert json.loads(pruned(text, 9)) == value
    assert json.loads(pruned(text, 2)) == {"a": [1, None, 2], "d": {"e": None}, "g": "[[["}
    assert json.loads(pruned(text, 0)) is None
    assert depth_of(text) == 5


def test_members_and_elements_are_found_behind_texts_with_brackets() -> None:
    text = b'{"items":"[","x":{"items":[9]}, "a\\"}":1, "items" : [ {"b":"},{"} , 2,[3,4], "," ], "z":[0]}'
    assert elements(text[place_of_member(text, "items")]) == [b'{"b":"},{"}', b"2", b"[3,4]", b'","']
    assert text[place_of_member(text, "missing")] == b""
    assert elements(b"[ ]") == elements(b"") == []


def test_text_that_is_not_utf_8_is_named_without_words_of_python() -> None:
    with pytest.raises(
        UndecodableObject, match=r"^pods without a readable name left out: it contains text .* not UTF-8$"
    ):
        Codec(POD_KIND).object(b'{"metadata":{"name":"\xff"}}')


BAD_POD = pod_json("bad").replace(b'"spec":{', b'"spec":{"nodeName":7,')


@pytest.mark.parametrize(
    "line", [b'{"type":"ADDED","object":%s}\n' % BAD_POD, b'{"type":"ADDED","object":]\n', b"no event\n", b"\xff\n"]
)
def test_nothing_of_events_that_cannot_be_decoded_stays(line: bytes) -> None:
    codec = Codec(POD_KIND)

    def errors() -> int:
        gc.collect()
        return sum(isinstance(one, UndecodableObject) for one in gc.get_objects())

    before = errors()
    for _ in range(10):
        found = codec.events(line)
        assert isinstance(found[0].object, Undecoded)
    del found
    assert errors() == before


def test_an_error_that_is_kept_does_not_keep_the_list_that_it_is_about() -> None:
    (bad,) = Codec(POD_KIND).page(list_json(pod_json("a"), BAD_POD)).undecoded
    kept = [bad.error]
    for error in kept:
        kept += [other for other in (error.__cause__, error.__context__) if other is not None and other not in kept]
    assert len(kept) > 1
    assert [error.__traceback__ for error in kept] == [None] * len(kept)
