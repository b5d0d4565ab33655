import gzip
import json
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_server import Exchange, StartServer

from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.decoding import streamed_list
from trio_sched.kube_client.decoding.decoding import Codec, Page
from trio_sched.kube_client.decoding.streamed_list import StreamedList
from trio_sched.kube_client.errors import ConnectionFailed, NotAnApiServer, UndecodableObject
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.kube_client.verbs import list_from_cache
from trio_sched.kube_client.watch import list_and_watch
from trio_sched.objects.pod import Pod

GZIP = [(b"content-encoding", b"gzip")]


def a_list(items: Any, **more: Any) -> bytes:
    tree = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items, **more}
    return msgspec.json.encode(tree)


def a_pod(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, **more}


def streamed(body: bytes, *, step: int, piece_bytes: int = 1, headers: Any = ()) -> list[Page[Pod]]:
    pages: list[Page[Pod]] = []
    with patch.object(streamed_list, "PIECE_BYTES", piece_bytes):
        reader = StreamedList(Codec(POD_KIND), pages.append, list(headers))
        for start in range(0, len(body), step):
            reader.feed(body[start : start + step])
        reader.end()
    return pages


def pods(pages: list[Page[Pod]]) -> list[Pod]:
    return [pod for page in pages for pod in page.objects]


def nested(depth: int) -> Iterator[Any]:
    yield {"metadata": {"name": "a"}}
    yield '},{"metadata":{'
    if depth:
        for inner in nested(depth - 1):
            yield [inner, {"metadata": {"name": "b"}}, {"metadata": inner}]


TREES = st.recursive(
    st.sampled_from([None, 1, "x", '},{"metadata":', "]}", "\\", '"', "ü"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["metadata", "name", "items"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(
    trees=st.lists(TREES, max_size=6),
    step=st.integers(1, 60),
    piece_bytes=st.integers(1, 200),
    compressed=st.booleans(),
)
@settings(max_examples=75, deadline=None)
def test_a_list_in_pieces_has_the_objects_of_the_whole(
    trees: list[Any], step: int, piece_bytes: int, compressed: bool
) -> None:
    body = a_list([a_pod(f"p{i}", other=tree, list=[a_pod("x"), a_pod("y")]) for i, tree in enumerate(trees)])
    sent, headers = (gzip.compress(body), GZIP) if compressed else (body, [])
    pages = streamed(sent, step=step, piece_bytes=piece_bytes, headers=headers)
    whole = Codec(POD_KIND).page(body)
    assert pods(pages) == whole.objects
    assert pages[-1].metadata == whole.metadata


@pytest.mark.parametrize("inner", list(nested(2)))
def test_text_that_looks_like_the_border_of_two_objects_inside_of_one_is_none(inner: Any) -> None:
    body = a_list([a_pod("a", other=inner), a_pod("b", other=[inner, inner]), a_pod("c")])
    assert [pod.name for pod in pods(streamed(body, step=7))] == ["a", "b", "c"]


def test_objects_are_decoded_while_the_rest_arrives() -> None:
    body = a_list([a_pod(f"p{i}") for i in range(100)])
    pages: list[Page[Pod]] = []
    with patch.object(streamed_list, "PIECE_BYTES", 512):
        reader = StreamedList(Codec(POD_KIND), pages.append, [])
        for start in range(0, len(body) // 2, 64):
            reader.feed(body[start : start + 64])
    assert 40 < len(pods(pages)) <= 50
    assert len(reader.rest) < 1024


def test_an_object_longer_than_a_piece_is_not_tried_again_with_every_byte() -> None:
    class Counting(Codec[Pod]):
        tried = 0

        def page(self, body: bytes) -> Page[Pod]:
            self.tried += 1
            return super().page(body)

    codec, pages = Counting(POD_KIND), list[Page[Pod]]()
    long = a_pod("long", other=[a_pod("x")] * 2_000)
    body = a_list([a_pod("first"), long, a_pod("last")])
    with patch.object(streamed_list, "PIECE_BYTES", 64):
        reader = StreamedList(codec, pages.append, [])
        for start in range(0, len(body), 10):
            reader.feed(body[start : start + 10])
        reader.end()
    assert [pod.name for pod in pods(pages)] == ["first", "long", "last"]
    assert codec.tried < 30


def test_a_malformed_object_is_left_out_and_named() -> None:
    body = a_list([a_pod("a"), a_pod("bad", spec={"containers": 7}), *(a_pod(f"p{i}") for i in range(9))])
    pages = streamed(body, step=50)
    assert len(pods(pages)) == 10
    assert [bad.name for page in pages for bad in page.undecoded] == ["bad"]


@pytest.mark.parametrize(
    "body",
    [
        a_list(None),
        a_list([]),
        a_list([a_pod("a")], zz="more"),
        json.dumps({"items": [a_pod("a")], "metadata": {"resourceVersion": "7"}}).encode(),
        json.dumps({"metadata": {"resourceVersion": "7"}, "items": [{"kind": "Pod", **a_pod("a")}] * 3}).encode(),
    ],
)
def test_a_list_of_another_shape_is_read_all_the_same(body: bytes) -> None:
    assert pods(streamed(body, step=5)) == Codec(POD_KIND).page(body).objects
    assert streamed(body, step=5)[-1].metadata.resource_version == "7"


@pytest.mark.parametrize(
    ("body", "headers", "says"),
    [
        (b"not gzip", GZIP, "gzip: invalid header or checksum"),
        (gzip.compress(a_list([a_pod("a")]))[:-9], GZIP, "unexpected EOF"),
        (a_list([a_pod(f"p{i}") for i in range(9)])[:-2], [], "truncated"),
        (b"[" * 5000, [], "left out"),
        (b'{"items":[' + b'{"a":' * 20_000, [], "left out"),
        (b"", [], "truncated"),
    ],
)
def test_what_is_no_list_is_an_error(body: bytes, headers: Any, says: str) -> None:
    with pytest.raises(UndecodableObject, match=says):
        streamed(body, step=100, headers=headers)


def test_a_list_that_is_huge_only_when_decompressed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_list, "MAX_BODY_BYTES", 1 << 22)
    with pytest.raises(UndecodableObject, match="larger than 4194304 bytes"):
        streamed(gzip.compress(b" " * (1 << 23)), step=1 << 20, headers=GZIP)


# --- over a connection


async def test_a_list_and_the_watch_behind_it_share_a_connection(start_server: StartServer) -> None:
    body = gzip.compress(a_list([a_pod("a"), a_pod("b")]))

    async def handler(exchange: Exchange) -> None:
        await exchange.answer(body, headers="Content-Encoding: gzip\r\n")

    server = await start_server(handler, tls=True)
    pages: list[Page[Pod]] = []
    async with connect(server.settings) as client:
        for _ in range(3):
            await list_from_cache(client, POD_KIND, pages.append)
        assert client.pool is not None
        assert client.pool._open == 0
    assert len(pods(pages)) == 6
    assert server.connections == 1
    assert server.requests[0].target.endswith("&resourceVersion=0&limit=500")
    assert server.requests[0].headers["accept-encoding"] == "gzip"


async def test_a_connection_that_ended_after_its_stream_is_replaced(start_server: StartServer) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(a_list([a_pod("a")]))
        await exchange.stream.aclose()

    server = await start_server(handler, tls=False)
    async with connect(server.settings) as client:
        for _ in range(3):
            await list_from_cache(client, POD_KIND, lambda _page: None)
    assert server.connections == 3


async def test_a_server_that_pages_is_asked_for_the_rest(start_server: StartServer) -> None:
    async def handler(exchange: Exchange) -> None:
        first = "continue" not in exchange.request.target
        metadata = {"resourceVersion": "7", **({"continue": "there"} if first else {})}
        await exchange.answer(a_list([a_pod("a" if first else "b")], metadata=metadata))

    server = await start_server(handler, tls=False)
    pages: list[Page[Pod]] = []
    async with connect(server.settings) as client:
        await list_from_cache(client, POD_KIND, pages.append)
    assert [pod.name for pod in pods(pages)] == ["a", "b"]
    assert server.requests[1].target.endswith("&limit=500&continue=there")


@pytest.mark.parametrize("first_status", [200, 500])
async def test_only_the_first_try_of_the_first_list_may_be_answered_from_the_cache(
    start_server: StartServer, nursery: trio.Nursery, first_status: int
) -> None:
    targets: list[str] = []
    listed_twice = trio.Event()

    async def handler(exchange: Exchange) -> None:
        targets.append(exchange.request.target)
        if "watch=true" in exchange.request.target:
            expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
            await exchange.answer(json.dumps(expired).encode() + b"\n")
        else:
            await exchange.answer(a_list([a_pod("a")]), status=first_status if len(targets) == 1 else 200)
            if len(targets) > 1:
                listed_twice.set()

    server = await start_server(handler, tls=False)
    with trio.fail_after(30):
        async with connect(server.settings) as client:
            nursery.start_soon(
                partial(list_and_watch, client, POD_KIND, lambda _: None, random=Random(1), on_error=lambda *_: None)
            )
            await listed_twice.wait()
            nursery.cancel_scope.cancel()
    assert "resourceVersion=0" in targets[0]
    assert all("resourceVersion=0" not in target for target in targets[1:])


async def test_a_list_that_does_not_end_fails_in_time(start_server: StartServer) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + a_list([a_pod("a")])[:50])

    server = await start_server(handler, tls=False)
    async with connect(server.settings, request_seconds=0.2) as client:
        with pytest.raises(ConnectionFailed, match=r"no complete response within 0\.2 s") as caught:
            await list_from_cache(client, POD_KIND, lambda _page: None)
    assert caught.value.timed_out


async def test_a_page_of_a_web_server_is_called_one(start_server: StartServer) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.answer(b"<!DOCTYPE html><html><body>Sign in</body></html>")

    server = await start_server(handler, tls=False)
    async with connect(server.settings) as client:
        with pytest.raises(NotAnApiServer, match="HTML instead of JSON"):
            await list_from_cache(client, POD_KIND, lambda _page: None)
