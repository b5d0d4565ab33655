"""From the bytes of a request to those of its response."""

from pathlib import Path

import pytest
import trio
import trio.testing
from client_authority import client_context
from https_client import Answer, exchange
from serving_stage import read_to_end, serving

from trio_sched.daemon.serving.messages import Request, Response, plain
from trio_sched.verbosity import V2, V3

UPGRADE = (
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Protocol", "v1, base64url.bearer.authorization.k8s.io.dG9rZW4"),
)


async def sent(method: str, path: str, *headers: tuple[str, str], body: bytes = b"") -> tuple[Request, Answer]:
    seen: list[Request] = []

    async def record(request: Request) -> Response:
        seen.append(request)
        return plain("ok")

    async with serving(record) as stage:
        answer = await exchange(stage.port, method, path, context=client_context(Path()), headers=headers, body=body)
    return seen[0], answer


async def test_a_request_is_read_as_it_was_sent() -> None:
    request, _ = await sent("PUT", "/a%20b//..?x=1&x=2&y=%zz&z=a+b&w;=1", ("X-Y", "Z"), body=b"content")
    assert (request.method, request.path, request.body) == ("PUT", "/a b//..", b"content")
    assert request.target == "/a%20b//..?x=1&x=2&y=%zz&z=a+b&w;=1"
    assert (request.parameters("x"), request.parameters("y"), request.parameter("z")) == (["1", "2"], [], "a b")
    assert (request.header("x-y"), request.header("nothing")) == ("Z", "")
    assert request.client == "127.0.0.1"


async def test_the_origin_in_a_target_does_not_matter() -> None:
    assert (await sent("GET", "https://x.test/path?q"))[0].path == "/path"


async def test_a_websocket_gets_an_ordinary_response() -> None:
    request, answer = await sent("GET", "/metrics", *UPGRADE)
    assert request.is_websocket
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.headers["cache-control"] == "no-cache, private"


@pytest.mark.parametrize(("size", "told"), [(2048, True), (2049, False)])
async def test_the_length_of_a_long_body_is_not_told(size: int, told: bool) -> None:
    async def much(_request: Request) -> Response:
        return plain("x" * size)

    async with serving(much) as stage:
        answer = await exchange(stage.port, "GET", "/", context=client_context(Path()))
    assert ("content-length" in answer.headers) is told
    assert len(answer.body) == size


async def test_a_long_body_is_sent_in_pieces() -> None:
    async def much(_request: Request) -> Response:
        return Response(body=b"a", rest=[b"b" * 100_000, b"", b"c"])

    async with serving(much) as stage:
        context = client_context(Path())
        answer = await exchange(stage.port, "GET", "/", context=context)
        assert (await exchange(stage.port, "HEAD", "/", context=context)).body == b""
    assert answer.body == b"a" + b"b" * 100_000 + b"c"
    assert "content-length" not in answer.headers


async def test_a_connection_serves_one_request_after_the_other_until_the_end() -> None:
    async with serving() as stage:
        stream = await stage.connect()
        for _ in range(3):
            await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            received = b""
            while not received.endswith(b"\r\n\r\nok"):
                received += await stream.receive_some(65536)
        stage.stop.set()
        assert await read_to_end(stream) == b""


@pytest.mark.parametrize(("level", "is_shown"), [(V3, True), (V2, False)])
async def test_requests_are_logged_at_level_3(level: int, is_shown: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(level)
    async with serving() as stage:
        await exchange(stage.port, "GET", "/x?y=z", context=client_context(Path()))
        await stage.until_connections(0)
    lines = [vars(record) for record in caplog.records if record.message == "HTTP"]
    assert [(line["verb"], line["URI"], line["resp"]) for line in lines] == [("GET", "/x?y=z", 200)] * is_shown


async def test_a_request_under_way_is_answered_when_the_end_begins() -> None:
    begun, go_on = trio.Event(), trio.Event()

    async def wait(_request: Request) -> Response:
        begun.set()
        await go_on.wait()
        return plain("done")

    async with serving(wait) as stage:
        stream = await stage.connect()
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await begun.wait()
        stage.stop.set()
        await trio.testing.wait_all_tasks_blocked(0.02)
        go_on.set()
        assert (await read_to_end(stream)).endswith(b"done")
        await stage.until_connections(0)
