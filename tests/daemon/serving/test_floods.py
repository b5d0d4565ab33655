"""Many clients that nobody knows, at once: what they may use up is bounded for all of them together."""

import gc
import struct
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.settings
import pytest
import trio
from client_authority import client_context
from https_client import exchange
from hypercorn.protocol.http_stream import HTTPStream
from serving_stage import Stage, read_to_end, serving

from trio_sched.daemon.serving.connections import connection
from trio_sched.daemon.serving.connections.connection import Connection
from trio_sched.daemon.serving.connections.protocols import Http1, Http2
from trio_sched.daemon.serving.limits import CONNECTION_BYTES, MAX_UNANSWERED, REQUEST_BYTES, UNAUTHENTICATED_BYTES
from trio_sched.daemon.serving.messages import Request, Response, plain
from trio_sched.daemon.serving.server import connections_for
from trio_sched.daemon.serving.tls.tls_stream import TlsStream

HEADERS = [(":method", "GET"), (":path", "/healthz"), (":authority", "x"), (":scheme", "https")]
KNOWN = b"GET / HTTP/1.1\r\nHost: x\r\nX-Known: yes\r\n\r\n"


def unread_requests(count: int = 4 * MAX_UNANSWERED) -> bytes:
    """Requests of a client that keeps the window for their responses closed."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.local_settings = h2.settings.Settings(client=True, initial_values={h2.settings.SettingCodes(4): 0})
    client.initiate_connection()
    for number in range(count):
        client.send_headers(2 * number + 1, HEADERS, end_stream=True)
    return client.data_to_send()


async def answer(request: Request) -> Response:
    if request.header("x-known"):
        request.on_authenticated()
    return plain("ok")


async def is_answered(stage: Stage) -> bool:
    response = await exchange(stage.port, "GET", "/healthz", context=client_context(Path()))
    return (response.status, response.body) == (200, b"ok")


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(30):
        while not condition():  # noqa: ASYNC110 - of a server that tells nobody
            await trio.sleep(0.01)


async def until_requests(stage: Stage, count: int) -> None:
    await until(lambda: sum(one.requests for one in stage.server.connections) >= count)


async def next_answer(stream: Any) -> bytes:
    await stream.send_all(KNOWN)
    received = b""
    while not received.endswith(b"\r\n\r\nok"):
        piece = await stream.receive_some(65536)
        if not piece:
            break
        received += piece
    return received


async def test_responses_that_nobody_reads_end_the_connections_that_hold_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNANSWERED_SECONDS", 60.0)
    async with serving(answer) as stage:
        memory = stage.server.unauthenticated.memory
        memory.max_bytes = 3 * (CONNECTION_BYTES + MAX_UNANSWERED * REQUEST_BYTES)
        known = await stage.connect()
        assert await next_answer(known)
        flood = []
        for number in range(6):
            flood.append(await stage.connect(alpn="h2"))
            with suppress(trio.BrokenResourceError):
                await flood[-1].send_all(unread_requests())
            await until_requests(stage, min(number + 1, 2) * MAX_UNANSWERED)
            assert await is_answered(stage)
            assert memory.held_bytes <= memory.max_bytes
        with trio.fail_after(20):
            await read_to_end(flood[0])
        assert (await next_answer(known)).startswith(b"HTTP/1.1 200")
        stage.scope.cancel()


async def test_no_more_is_read_than_what_is_answered_unless_the_client_is_known() -> None:
    async def wait(_request: Request) -> Response:
        await trio.sleep_forever()
        raise AssertionError

    async with serving(wait) as stage:
        stream = await stage.connect(alpn="h2")
        await stream.send_all(unread_requests())
        await until_requests(stage, MAX_UNANSWERED)
        await trio.testing.wait_all_tasks_blocked(0.05)
        (served,) = stage.server.connections
        assert served.requests <= MAX_UNANSWERED + 1
        served.authenticated()
        await until_requests(stage, 4 * MAX_UNANSWERED)


async def test_a_client_that_leaves_responses_unread_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNANSWERED_SECONDS", 0.1)
    async with serving() as stage:
        stream = await stage.connect(alpn="h2")
        await stream.send_all(unread_requests())
        with trio.fail_after(10):
            await read_to_end(stream)
        await stage.until_connections(0)
        assert not stage.server.connections


@pytest.mark.parametrize("known", [True, False])
async def test_what_an_authenticated_client_holds_does_not_count(known: bool) -> None:
    async with serving(answer) as stage:
        stage.server.unauthenticated.memory.max_bytes = CONNECTION_BYTES + REQUEST_BYTES + 20_000
        stream = await stage.connect()
        await next_answer(stream) if known else None
        with suppress(trio.BrokenResourceError):
            await stream.send_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n" + bytes(60_000))
        assert (b"200" in await stream.receive_some(1000)) is known if known else await read_to_end(stream) == b""


@pytest.mark.parametrize("continuations", [[16_384, 16_384], [0] * 9], ids=["long", "empty"])
async def test_the_first_header_without_end_ends_its_connection(continuations: list[int]) -> None:
    async with serving() as stage:
        stream = await stage.connect(alpn="h2")
        sent = unread_requests(0) + struct.pack(">IBI", 16_384 << 8 | 1, 0, 1) + b"\x82" * 16_384
        for length in continuations:
            sent += struct.pack(">IBI", length << 8 | 9, 0, 1) + b"\x82" * length
        with suppress(trio.BrokenResourceError):
            await stream.send_all(sent)
        with trio.fail_after(5):
            answered = await read_to_end(stream)
        await stage.until_connections(0)
        assert b"200" not in answered


async def test_headers_that_are_small_only_when_compressed_end_their_connection() -> None:
    async with serving() as stage:
        stream = await stage.connect(alpn="h2")
        client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        client.initiate_connection()
        client.send_headers(1, [*HEADERS, *[("x-a", "y" * 3000)] * 12], end_stream=True)
        sent = client.data_to_send()
        assert len(sent) < 5000
        await stream.send_all(sent)
        with trio.fail_after(5):
            await read_to_end(stream)
        await stage.until_connections(0)


async def test_a_hello_without_end_is_not_collected() -> None:
    async with serving() as stage:
        stream = await stage.open()
        await stream.send_all(b"\x16\x03\x01\x40\x00\x01" + (0x1FF00).to_bytes(3, "big"))
        with trio.fail_after(5):
            assert await read_to_end(stream) == b""
        await stage.until_connections(0)


async def test_tunnels_leave_no_streams_behind() -> None:
    async with serving() as stage:
        stream = await stage.connect(alpn="h2")
        client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        client.initiate_connection()
        for number in range(1, 100, 2):
            client.send_headers(number, [(":method", "CONNECT"), (":authority", "x")], end_stream=True)
        client.send_headers(101, HEADERS, end_stream=True)
        await stream.send_all(client.data_to_send())
        events: list[Any] = []
        with trio.fail_after(10):
            while not any(isinstance(event, h2.events.StreamEnded) for event in events):
                events += client.receive_data(await stream.receive_some(65536))
        assert [event.stream_id for event in events if isinstance(event, h2.events.StreamReset)] == [*range(1, 100, 2)]
        (served,) = stage.server.connections
        assert isinstance(served.protocol, Http2)
        assert len(served.protocol.streams) <= 1


async def test_silent_clients_make_room_for_one_that_speaks() -> None:
    async with serving() as stage:
        stage.server.max_connections = 4
        speaks = await stage.open()
        await speaks.send_all(b"\x16\x03\x01\x00\x50\x01")
        await until(lambda: any(not one.is_silent for one in stage.server.connections))
        (spoken,) = stage.server.connections
        for _ in range(20):
            await stage.open()
            await until(lambda: any(one.is_silent for one in stage.server.connections))
            assert await is_answered(stage)
        assert spoken in stage.server.connections


async def test_connections_that_have_ended_leave_nothing_to_the_garbage_collector() -> None:
    async with serving() as stage:
        with suppress(trio.BrokenResourceError):
            await is_answered(stage)
        await stage.until_connections(0)
        gc.collect()
        gc.disable()
        try:
            for protocol, sent in (("h2", unread_requests(5)), ("http/1.1", b"GET / HTTP/1.1\r\nHost: x\r\nX-Half:")):
                stream = await stage.connect(alpn=protocol)
                await stream.send_all(sent)
                if protocol == "h2":
                    await until_requests(stage, 5)
                stream.transport_stream.socket.close()
                await stage.until_connections(0)
            await trio.testing.wait_all_tasks_blocked()
            kinds = Counter(map(type, gc.get_objects()))
            left = {kind: kinds[kind] for kind in (Connection, TlsStream, Http1, Http2, HTTPStream)}
        finally:
            gc.enable()
    assert not any(left.values()), left


@pytest.mark.parametrize(
    ("files", "connections"), [(64, 8), (256, 32), (512, 256), (1024, 512), (1 << 20, 512), (-1, 512), (4, 1)]
)
def test_connections_follow_the_number_of_open_files(files: int, connections: int) -> None:
    assert connections_for(files) == connections


def test_a_probe_fits_beside_everything_else() -> None:
    assert UNAUTHENTICATED_BYTES > 50 * (CONNECTION_BYTES + REQUEST_BYTES)
