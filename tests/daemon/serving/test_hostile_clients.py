"""Clients that do whatever they like: each costs its own connection, nothing else."""

import gc
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import pytest
import trio
from client_authority import client_context
from https_client import exchange
from serving_stage import Stage, read_to_end, serving

from trio_sched.daemon.serving import application, server
from trio_sched.daemon.serving.connections import connection
from trio_sched.daemon.serving.messages import Request, Response, plain
from trio_sched.daemon.serving.tls import tls_stream

OK = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


async def still_serves(stage: Stage) -> None:
    answer = await exchange(stage.port, "GET", "/healthz", context=client_context(Path()))
    assert (answer.status, answer.body) == (200, b"ok")


@pytest.fixture(autouse=True)
def _nothing_is_printed(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Any:
    yield
    printed = capfd.readouterr()
    assert "Traceback" not in printed.out + printed.err + caplog.text


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\x16", b"\x16\x03\x01\xff\xff" + bytes(4000), b"\x80\x2e\x01\x00\x02", bytes(100_000), b"SSH-2.0-x\r\n"],
    ids=["nothing", "half a record", "an endless record", "SSL 2", "zeros", "another protocol"],
)
async def test_what_is_no_tls_ends_its_connection(garbage: bytes) -> None:
    async with serving() as stage:
        stream = await stage.open()
        with trio.fail_after(10):
            with suppress(trio.BrokenResourceError):
                await stream.send_all(garbage)
                await stream.send_eof()
            assert b"HTTP" not in await read_to_end(stream)
        await still_serves(stage)
        await stage.until_connections(0)


async def test_a_client_that_never_shakes_hands_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HANDSHAKE_SECONDS", 0.2)
    async with serving() as stage:
        assert await read_to_end(await stage.open()) == b""
        await still_serves(stage)


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\nX-Half: "])
async def test_half_a_request_is_waited_for_not_forever(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.2)
    async with serving() as stage:
        stream = await stage.connect()
        await stream.send_all(sent)
        assert await read_to_end(stream) == b""
        await stage.until_connections(0)


async def test_half_a_body_is_waited_for_not_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "BODY_SECONDS", 0.2)
    async with serving() as stage:
        stream = await stage.connect()
        await stream.send_all(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345")
        assert await read_to_end(stream) == b""
        await stage.until_connections(0)
        await still_serves(stage)


async def test_a_header_without_end_is_refused() -> None:
    async with serving() as stage:
        stream = await stage.connect()
        sent = 0
        try:
            await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: ")
            while sent < 100_000_000:
                await stream.send_all(b"a" * 65536)
                sent += 65536
        except trio.BrokenResourceError:
            pass
        assert sent < 20_000_000  # what fits the buffers of both kernels, at most
        await stage.until_connections(0)
        await still_serves(stage)


@pytest.mark.parametrize("framing", [b"Transfer-Encoding: chunked", b"Content-Length: 1000000000"])
async def test_a_body_without_end_is_refused(framing: bytes) -> None:
    async with serving() as stage:
        stream = await stage.connect()
        piece = b"10000\r\n" + b"a" * 65536 + b"\r\n" if b"chunked" in framing else b"a" * 65536
        await stream.send_all(b"POST /healthz HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n")
        sent = 0
        try:
            while sent < 100_000_000:
                await stream.send_all(piece)
                sent += len(piece)
        except trio.BrokenResourceError:
            pass
        assert sent < 20_000_000
        await stage.until_connections(0)
        await still_serves(stage)


async def test_who_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_stream, "SEND_SECONDS", 0.3)

    async def much(_request: Request) -> Response:
        return plain("x" * 30_000_000)

    async with serving(much) as stage:
        stream = await stage.connect()
        await stream.send_all(OK)
        await trio.sleep(0.1)
        assert len(stage.server.connections) == 1
        await stage.until_connections(0)


async def test_who_does_not_read_does_not_delay_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DRAIN_SECONDS", 0.2)

    async def much(_request: Request) -> Response:
        return plain("x" * 30_000_000)

    async with serving(much) as stage:
        stream = await stage.connect()
        await stream.send_all(OK)
        await trio.sleep(0.1)
        stage.stop.set()
        with trio.fail_after(2):
            await stage.until_connections(0)
        assert len(await read_to_end(stream)) < 30_000_000  # it was cut off


async def test_who_does_not_read_does_not_delay_the_loss_of_the_lease() -> None:
    async def much(_request: Request) -> Response:
        return plain("x" * 30_000_000)

    with trio.fail_after(5):
        async with serving(much) as stage:
            stream = await stage.connect()
            await stream.send_all(OK)
            await trio.sleep(0.2)
            stage.scope.cancel()
            await trio.sleep_forever()
    assert stage.scope.cancelled_caught


async def test_the_oldest_idle_connection_makes_room_for_a_new_one() -> None:
    async with serving() as stage:
        stage.server.max_connections = 20
        idle = [await stage.open() for _ in range(100)]
        await still_serves(stage)
        assert len(stage.server.connections) <= 20
        assert await read_to_end(idle[0]) == b""


async def test_connections_that_say_nothing_do_not_delay_the_others() -> None:
    async with serving() as stage:
        silent = [await stage.open() for _ in range(400)]
        began = trio.current_time()
        await still_serves(stage)
        assert trio.current_time() - began < 1.0  # the handshakes of all of them would take two seconds
        for stream in silent:
            await stream.aclose()


async def test_a_thousand_connections_leave_nothing_behind() -> None:
    async with serving() as stage:
        await still_serves(stage)
        gc.collect()
        before = len(gc.get_objects())
        stage.server._accepts = server.TokenBucket(-1.0, 1)  # without it this takes seconds
        for _ in range(10):
            opened = [await trio.open_tcp_stream("127.0.0.1", stage.port) for _ in range(100)]
            for stream in opened:
                stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                stream.socket.close()

        await stage.until_connections(0)
        await still_serves(stage)
        await stage.until_connections(0)
        gc.collect()
        assert len(gc.get_objects()) < before + 5_000


async def test_paths_that_are_no_text_are_answered() -> None:
    seen = []

    async def record(request: Request) -> Response:
        seen.append(request.path)
        return plain("ok")

    async with serving(record) as stage:
        context = client_context(Path())
        assert (await exchange(stage.port, "GET", "/%ff%fe%00", context=context)).status == 200
        assert seen == ["/\ufffd\ufffd\x00"]
        assert (await exchange(stage.port, "GET", "/%zz", context=context)).status == 400
        stream = await stage.connect()
        await stream.send_all(b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await read_to_end(stream)).startswith(b"HTTP/1.1 400")
        await still_serves(stage)


async def test_a_handler_that_fails_is_a_500_and_a_line_of_log(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_request: Request) -> Response:
        raise RuntimeError("oops")

    async with serving(fail) as stage:
        answer = await exchange(stage.port, "GET", "/", context=client_context(Path()))
    assert (answer.status, answer.body) == (
        500,
        b"This request caused apiserver to panic. Look in the logs for details.\n",
    )
    (line,) = [record for record in caplog.records if record.msg == "request failed"]
    assert "oops" in vars(line)["err"]


# --- HTTP/2 ----------------------------------------------------------------------------------------------------------


def http2_client() -> h2.connection.H2Connection:
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    return client


def ask(client: h2.connection.H2Connection, stream_id: int, *, path: str = "/healthz", end: bool = True) -> None:
    headers = [(":method", "GET"), (":path", path), (":authority", "x"), (":scheme", "https")]
    client.send_headers(stream_id, headers, end_stream=end)


async def events_until(stream: Any, client: h2.connection.H2Connection, wanted: type[Any]) -> list[Any]:
    seen: list[Any] = []
    while not any(isinstance(event, wanted) for event in seen):
        received = await stream.receive_some(65536)
        if not received:
            break
        seen += client.receive_data(received)
        await stream.send_all(client.data_to_send())
    return seen


async def test_http2_is_served() -> None:
    async with serving() as stage:
        stream, client = await stage.connect(alpn="h2"), http2_client()
        ask(client, 1)
        await stream.send_all(client.data_to_send())
        seen = await events_until(stream, client, h2.events.StreamEnded)
        data = [event.data for event in seen if isinstance(event, h2.events.DataReceived)]
        assert b"".join(data) == b"ok"
        await stream.aclose()


async def test_http2_can_be_switched_off() -> None:
    async with serving(http2=False) as stage:
        stream = await stage.connect(context=client_context(Path(), alpn="h2"))
        assert stream.selected_alpn_protocol() is None
        await stream.aclose()


async def test_rapid_resets_end_the_connection() -> None:
    waiting = 0

    async def wait(_request: Request) -> Response:
        nonlocal waiting
        waiting += 1
        try:
            await trio.sleep_forever()
        finally:
            waiting -= 1
        raise AssertionError

    async with serving(wait) as stage:
        stream, client = await stage.connect(alpn="h2"), http2_client()
        try:
            for number in range(1, 4000, 2):
                ask(client, number)
                client.reset_stream(number)
                await stream.send_all(client.data_to_send())
        except (trio.BrokenResourceError, h2.exceptions.ProtocolError):
            pass
        await read_to_end(stream)
        await stage.until_connections(0)
        assert waiting == 0


async def test_frames_that_make_no_sense_end_their_connection() -> None:
    async with serving() as stage:
        for garbage in (
            b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00",  # a window update of nothing
            b"\x00\x00\x02\x00\x00\x00\x00\x00\x07hi",  # data for a stream that is not open
            b"\x00\x00\x01\x01\x05\x00\x00\x00\x01\xff",  # headers that cannot be decompressed
            bytes(100),
        ):
            stream, client = await stage.connect(alpn="h2"), http2_client()
            await stream.send_all(client.data_to_send() + garbage)
            with trio.fail_after(5):
                await read_to_end(stream)
            await stream.aclose()
        await stage.until_connections(0)
        await still_serves(stage)


async def test_a_window_that_stays_closed_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "RESPONSE_SECONDS", 0.3)

    async def much(_request: Request) -> Response:
        return plain("x" * 3_000_000)

    async with serving(much) as stage:
        stream, client = await stage.connect(alpn="h2"), http2_client()
        ask(client, 1)
        await stream.send_all(client.data_to_send())
        received = await read_to_end(stream)
        await stage.until_connections(0)
        assert len(received) < 3_000_000


async def test_after_a_401_an_http2_connection_is_ended_in_order() -> None:
    async def refuse(_request: Request) -> Response:
        return Response(status=401, body=b"no", closes=True)

    async with serving(refuse) as stage:
        stream, client = await stage.connect(alpn="h2"), http2_client()
        ask(client, 1)
        await stream.send_all(client.data_to_send())
        seen = await events_until(stream, client, h2.events.ConnectionTerminated)
        assert b"".join(event.data for event in seen if isinstance(event, h2.events.DataReceived)) == b"no"
        assert any(isinstance(event, h2.events.StreamEnded) for event in seen)
        await stage.until_connections(0)
