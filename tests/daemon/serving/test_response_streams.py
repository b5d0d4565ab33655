"""Responses without an end: over a network, to clients that read, do not read, or go."""

from collections.abc import AsyncGenerator

import h2.config
import h2.connection
import h2.events
import pytest
import trio
from attrs import define, field
from serving_stage import Stage, read_to_end, serving

from trio_sched.daemon.serving import sending
from trio_sched.daemon.serving.messages import Request, Response
from trio_sched.daemon.serving.tls import tls_stream

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@define(eq=False)
class Ticker:
    """Streams pieces until it is told to stop."""

    piece: bytes = b"tick\n"
    pause_seconds: float = 0.0
    stop: trio.Event = field(factory=trio.Event)
    over: trio.Event = field(factory=trio.Event)
    sent: int = 0

    async def respond(self, _request: Request) -> Response:
        return Response(headers=[("content-type", "text/event-stream")], stream=self.pieces())

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            while not self.stop.is_set():
                yield self.piece
                self.sent += 1
                with trio.move_on_after(self.pause_seconds):
                    await self.stop.wait()
        finally:
            self.over.set()


async def until_some(ticker: Ticker, count: int) -> None:
    with trio.fail_after(10):
        while ticker.sent < count:  # noqa: ASYNC110  # what a client has taken is known to the kernel alone
            await trio.sleep(0.005)


async def test_pieces_arrive_as_they_come_and_the_connection_is_used_again() -> None:
    ticker = Ticker(pause_seconds=0.01)
    async with serving(ticker.respond) as stage:
        stream = await stage.connect()
        await stream.send_all(REQUEST)
        received = b""
        while received.count(b"tick") < 3:
            received += await stream.receive_some(65536)
        assert b"content-length" not in received
        assert b"transfer-encoding: chunked" in received.lower()
        ticker.stop.set()
        while not received.endswith(b"0\r\n\r\n"):
            received += await stream.receive_some(65536)
        await stream.send_all(REQUEST)
        assert (await stream.receive_some(65536)).startswith(b"HTTP/1.1 200")


async def test_over_http2_other_requests_are_answered_beside_a_stream() -> None:
    ticker = Ticker(pause_seconds=0.01)

    async def respond(request: Request) -> Response:
        return await ticker.respond(request) if request.path == "/stream" else Response(body=b"other")

    async with serving(respond) as stage:
        stream = await stage.connect(alpn="h2")
        client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        client.initiate_connection()
        for stream_id, path in ((1, "/stream"), (3, "/")):
            headers = [(":method", "GET"), (":path", path), (":authority", "x"), (":scheme", "https")]
            client.send_headers(stream_id, headers, end_stream=True)
        await stream.send_all(client.data_to_send())
        data = {1: b"", 3: b""}
        while data[1].count(b"tick") < 3 or data[3] != b"other":
            for event in client.receive_data(await stream.receive_some(65536)):
                if isinstance(event, h2.events.DataReceived):
                    data[event.stream_id] += event.data
        assert data[3] == b"other"
        client.reset_stream(1)
        await stream.send_all(client.data_to_send())
        with trio.fail_after(10):
            await ticker.over.wait()
        await stage.until_connections(1)


async def test_a_client_that_goes_ends_its_stream() -> None:
    ticker = Ticker(pause_seconds=3600.0)
    async with serving(ticker.respond) as stage:
        stream = await stage.connect()
        await stream.send_all(REQUEST)
        await until_some(ticker, 1)
        stream.transport_stream.socket.close()
        with trio.fail_after(10):
            await ticker.over.wait()
        await stage.until_connections(0)
        assert ticker.sent == 1


@pytest.mark.parametrize("alpn", ["http/1.1", "h2"])
async def test_a_client_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch, alpn: str) -> None:
    for module in (sending, tls_stream):
        monkeypatch.setattr(module, "SEND_SECONDS", 0.2)
    ticker = Ticker(piece=b"x" * 500_000)
    async with serving(ticker.respond) as stage:
        await ask(stage, alpn)
        with trio.fail_after(10):
            await ticker.over.wait()
        await stage.until_connections(0)
        assert ticker.sent < 40


async def ask(stage: Stage, alpn: str) -> None:
    stream = await stage.connect(alpn=alpn)
    if alpn == "h2":
        client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        client.initiate_connection()
        headers = [(":method", "GET"), (":path", "/"), (":authority", "x"), (":scheme", "https")]
        client.send_headers(1, headers, end_stream=True)
        await stream.send_all(client.data_to_send())
    else:
        await stream.send_all(REQUEST)


async def test_a_request_for_the_header_alone_gets_no_stream() -> None:
    ticker = Ticker()
    async with serving(ticker.respond) as stage:
        stream = await stage.connect()
        await stream.send_all(REQUEST.replace(b"GET", b"HEAD"))
        assert b"text/event-stream" in await stream.receive_some(65536)
        assert ticker.sent == 0


async def test_a_stream_that_goes_on_does_not_hold_up_the_end() -> None:
    ticker = Ticker(pause_seconds=0.01)
    async with serving(ticker.respond) as stage:
        stream = await stage.connect()
        await stream.send_all(REQUEST)
        await until_some(ticker, 2)
        stage.stop.set()
        ticker.stop.set()
        with trio.fail_after(2):
            assert (await read_to_end(stream)).endswith(b"0\r\n\r\n")
        await stage.until_connections(0)
