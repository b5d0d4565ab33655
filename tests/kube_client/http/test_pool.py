import contextlib
import errno
import gzip
import socket
from functools import partial
from random import Random

import pytest
import trio
import trio.testing
from raw_server import Exchange, StartServer

from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.errors import ConnectionFailed, ResponseTooLarge
from trio_sched.kube_client.http import http1
from trio_sched.kube_client.http.channel import SocketChannel
from trio_sched.kube_client.http.http1 import BodyTooLarge, ProtocolViolation, gunzip
from trio_sched.kube_client.http.pool import IDLE_SECONDS

unlimited = partial(connect, qps=-1)


async def answer(exchange: Exchange) -> None:
    await exchange.answer(b'{"echo":"' + exchange.request.body + b'"}')


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_one_connection_serves_many_requests(start_server: StartServer, tls: bool) -> None:
    server = await start_server(answer, tls=tls)
    async with unlimited(server.settings) as client:
        for number in range(5):
            assert await client.call(b"POST", b"/x", body=b"%d" % number) == b'{"echo":"%d"}' % number
    assert server.connections == 1
    assert [request.body for request in server.requests] == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_bodies_of_megabytes_arrive_whole_in_both_directions(start_server: StartServer, tls: bool) -> None:
    async def echo(exchange: Exchange) -> None:
        await exchange.answer(exchange.request.body)

    server = await start_server(echo, tls=tls)
    body = bytes(range(256)) * 12_000
    async with unlimited(server.settings) as client:
        assert await client.call(b"POST", b"/x", body=body) == body


async def test_chunked_bodies_are_joined(start_server: StartServer) -> None:
    async def chunks(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await exchange.raw(b"2\r\nde\r\n0\r\n\r\n")

    server = await start_server(chunks)
    async with unlimited(server.settings) as client:
        assert await client.call(b"GET", b"/x") == b"abcde"
        assert await client.call(b"GET", b"/x") == b"abcde"
    assert server.connections == 1


async def test_gzip_is_decompressed(start_server: StartServer) -> None:
    async def zipped(exchange: Exchange) -> None:
        await exchange.answer(gzip.compress(b"x" * 1000), headers="Content-Encoding: gzip\r\n")

    server = await start_server(zipped)
    async with unlimited(server.settings) as client:
        assert await client.call(b"GET", b"/x", headers=client.list_headers) == b"x" * 1000
    assert server.requests[0].headers["accept-encoding"] == "gzip"


async def test_torn_gzip_is_a_failed_connection_not_a_short_body(start_server: StartServer) -> None:
    async def torn(exchange: Exchange) -> None:
        await exchange.answer(gzip.compress(b"x" * 1000)[:-9], headers="Content-Encoding: gzip\r\n")

    server = await start_server(torn)
    async with unlimited(server.settings) as client:
        with pytest.raises(ConnectionFailed, match="unexpected EOF"):
            await client.call(b"POST", b"/x")


async def test_a_body_without_length_ends_with_the_connection(start_server: StartServer) -> None:
    async def until_close(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\n\r\nsome")
        await exchange.raw(b" text")
        await exchange.stream.aclose()

    server = await start_server(until_close)
    async with unlimited(server.settings) as client:
        assert await client.call(b"GET", b"/x") == b"some text"


async def test_connection_close_is_honoured(start_server: StartServer) -> None:
    async def once(exchange: Exchange) -> None:
        await exchange.answer(headers="Connection: close\r\n")

    server = await start_server(once)
    async with unlimited(server.settings) as client:
        await client.call(b"POST", b"/x")
        await client.call(b"POST", b"/x")
    assert server.connections == 2


@pytest.mark.parametrize(
    "more", [b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate", b"\r\nno HTTP\r\n\r\n", b"HTTP/1.1 4"]
)
async def test_what_follows_a_response_unasked_does_not_change_it_and_ends_the_connection(
    start_server: StartServer, more: bytes
) -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}" + more)

    server = await start_server(handler)
    async with unlimited(server.settings) as client:
        for _ in range(2):
            reply = await client.request(b"POST", b"/x")
            assert (reply.status, reply.body) == (201, b"{}")
    assert server.connections == 2


async def test_a_hundred_continue_is_not_the_answer(start_server: StartServer) -> None:
    async def hesitant(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n")
        await exchange.answer(b"done", status=201)

    server = await start_server(hesitant)
    async with unlimited(server.settings) as client:
        reply = await client.request(b"POST", b"/x")
    assert (reply.status, reply.body, reply.header(b"x-early")) == (201, b"done", None)


async def test_a_switch_to_another_protocol_is_no_response(start_server: StartServer) -> None:
    async def switch(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n")

    server = await start_server(switch)
    async with unlimited(server.settings) as client:
        with pytest.raises(ConnectionFailed, match="malformed HTTP response: it switches to another protocol unasked"):
            await client.call(b"POST", b"/x")


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_an_idle_connection_that_the_server_closed_is_replaced_even_for_a_post(
    start_server: StartServer, tls: bool
) -> None:
    hung_up = trio.Event()

    async def answer_and_leave(exchange: Exchange) -> None:
        await exchange.answer()
        await exchange.stream.aclose()
        hung_up.set()

    server = await start_server(answer_and_leave, tls=tls)
    async with unlimited(server.settings) as client:
        await client.call(b"POST", b"/first")
        await hung_up.wait()
        await trio.testing.wait_all_tasks_blocked()
        await client.call(b"POST", b"/second")
    assert [request.target for request in server.requests] == ["/first", "/second"]


async def test_a_read_whose_reused_connection_breaks_before_an_answer_is_sent_again(start_server: StartServer) -> None:
    async def drop_second(exchange: Exchange) -> None:
        if exchange.number == 2:
            await exchange.stream.aclose()
        else:
            await exchange.answer(b"%d" % exchange.number)

    server = await start_server(drop_second)
    async with unlimited(server.settings) as client:
        assert await client.call(b"GET", b"/x") == b"1"
        assert await client.call(b"GET", b"/x") == b"3"


async def test_a_post_whose_answer_is_lost_is_not_repeated_and_says_so(start_server: StartServer) -> None:
    async def drop_second(exchange: Exchange) -> None:
        if exchange.number == 2:
            await exchange.stream.aclose()
        else:
            await exchange.answer()

    server = await start_server(drop_second)
    async with unlimited(server.settings) as client:
        await client.call(b"POST", b"/x")
        with pytest.raises(ConnectionFailed) as caught:
            await client.call(b"POST", b"/x")
    assert caught.value.may_have_reached_server
    assert len(server.requests) == 2


async def test_half_an_answer_is_a_failure(start_server: StartServer) -> None:
    async def half(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        await exchange.stream.aclose()

    server = await start_server(half)
    async with unlimited(server.settings) as client:
        with pytest.raises(ConnectionFailed, match="unexpected EOF"):
            await client.call(b"POST", b"/x")


async def test_what_is_not_http_is_a_failure(start_server: StartServer) -> None:
    async def nonsense(exchange: Exchange) -> None:
        await exchange.raw(b"SSH-2.0-OpenSSH_9.6\r\n")

    server = await start_server(nonsense)
    async with unlimited(server.settings) as client:
        with pytest.raises(ConnectionFailed, match="malformed HTTP response"):
            await client.call(b"POST", b"/x")


async def test_a_request_without_an_answer_times_out_and_the_next_one_uses_a_new_connection(
    start_server: StartServer,
) -> None:
    async def hang_once(exchange: Exchange) -> None:
        if exchange.number == 1:
            await trio.sleep_forever()
        await exchange.answer(b"ok")

    server = await start_server(hang_once)
    async with unlimited(server.settings, request_seconds=0.05, max_connections=1) as client:
        with pytest.raises(ConnectionFailed, match=r"no complete response within 0.05 s") as caught:
            await client.call(b"POST", b"/x")
        assert caught.value.timed_out
        assert caught.value.may_have_reached_server
        assert await client.call(b"POST", b"/x") == b"ok"


async def test_a_refused_connection_means_that_nothing_was_sent(start_server: StartServer) -> None:
    server = await start_server(answer)
    settings = server.settings
    unused = trio.socket.socket()
    await unused.bind(("127.0.0.1", 0))
    port = unused.getsockname()[1]
    unused.close()
    async with unlimited(type(settings)(server=f"http://127.0.0.1:{port}")) as client:
        with pytest.raises(ConnectionFailed, match="connection refused") as caught:
            await client.call(b"GET", b"/x")
    assert not caught.value.may_have_reached_server


async def test_requests_beyond_the_limit_are_queued(start_server: StartServer) -> None:
    go_on = trio.Event()

    async def wait(exchange: Exchange) -> None:
        await go_on.wait()
        await exchange.answer(exchange.request.body)

    server = await start_server(wait)
    finished: list[int] = []
    async with unlimited(server.settings, max_connections=1) as client, trio.open_nursery() as nursery:

        async def ask(number: int) -> None:
            await client.call(b"POST", b"/x", body=b"%d" % number)
            finished.append(number)

        for number in range(6):
            nursery.start_soon(ask, number)
            await trio.testing.wait_all_tasks_blocked()
        go_on.set()
    assert server.connections == 1
    assert [int(request.body) for request in server.requests] == finished == list(range(6))


async def test_a_cancelled_wait_and_a_cancelled_request_leave_the_pool_usable(start_server: StartServer) -> None:
    async def hang_first(exchange: Exchange) -> None:
        if exchange.number == 1:
            await trio.sleep_forever()
        await exchange.answer(b"ok")

    server = await start_server(hang_first)
    async with unlimited(server.settings, max_connections=1) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call, b"POST", b"/hangs")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(client.call, b"POST", b"/waits")
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert await client.call(b"POST", b"/x") == b"ok"
    assert [request.target for request in server.requests] == ["/hangs", "/x"]


async def test_a_trailer_of_a_stream_that_never_ends_is_not_kept(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1, "MAX_HEADER_BYTES", 1000)

    async def endless(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Long: ")
        with contextlib.suppress(trio.BrokenResourceError):
            while True:
                await exchange.raw(b"x" * 100)

    server = await start_server(endless)
    async with unlimited(server.settings) as client, client.stream(b"/long") as stream:
        assert await stream.receive() == b"abc"
        with pytest.raises(ConnectionFailed, match="suspiciously long trailer after chunked body"):
            await stream.receive()


async def test_a_stream_gives_pieces_as_they_come_on_a_connection_of_its_own(start_server: StartServer) -> None:
    seen_first = trio.Event()

    async def trickle(exchange: Exchange) -> None:
        if exchange.request.target == "/short":
            return await exchange.answer(b"short")
        await exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await seen_first.wait()
        await exchange.raw(b"2\r\nde\r\n0\r\n\r\n")

    server = await start_server(trickle, tls=True)
    async with unlimited(server.settings, max_connections=1) as client, client.stream(b"/long") as stream:
        assert await stream.receive() == b"abc"
        assert await client.call(b"GET", b"/short") == b"short"
        seen_first.set()
        assert await stream.receive() == b"de"
        assert await stream.receive() == b""
    assert server.connections == 2


class FailingSocket(socket.socket):
    def recv(self, *args: object) -> bytes:
        raise OSError(errno.ECONNABORTED, "Software caused connection abort")


async def test_an_idle_connection_with_any_error_of_the_socket_is_stale() -> None:
    channel = SocketChannel(FailingSocket())
    try:
        assert channel.is_stale()
    finally:
        channel.close()


async def test_a_check_of_an_idle_connection_that_fails_frees_its_slot(start_server: StartServer) -> None:
    class Failing(SocketChannel):
        def is_stale(self) -> bool:
            raise MemoryError

    server = await start_server(answer)
    async with unlimited(server.settings) as client:
        client.pool.max_connections = 1
        await client.call(b"GET", b"/x")
        (connection,) = client.pool._idle
        connection.close()
        connection.channel = Failing(socket.socket())
        with pytest.raises(MemoryError):
            await client.call(b"GET", b"/x")
        with trio.fail_after(5):
            await client.call(b"GET", b"/x")
    assert server.connections == 2


async def test_a_connection_idle_for_long_is_not_reused(start_server: StartServer) -> None:
    server = await start_server(answer)
    async with unlimited(server.settings) as client:
        await client.call(b"POST", b"/x")
        (connection,) = client.pool._idle
        connection.idle_since -= IDLE_SECONDS
        await client.call(b"POST", b"/x")
    assert server.connections == 2


async def test_a_head_request_does_not_wait_for_a_body(start_server: StartServer) -> None:
    async def head(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")

    server = await start_server(head)
    async with unlimited(server.settings) as client:
        assert (await client.http.head("/x")).status_code == 200


async def test_the_watchdog_survives_a_request_that_is_over_before_it_wakes(start_server: StartServer) -> None:
    server = await start_server(answer)
    async with unlimited(server.settings) as client:
        pool = client.pool
        assert pool is not None
        await trio.testing.wait_all_tasks_blocked()
        rest = pool._watchdog_rest
        assert rest is not None
        rest.set()  # as a request does that then fails without waiting for anything
        await trio.testing.wait_all_tasks_blocked()
        assert pool._watchdog_rest is not None
        assert await client.call(b"POST", b"/x", body=b"1") == b'{"echo":"1"}'


# --- responses without an end ---------------------------------------------------------------------------------------


async def test_headers_without_an_end_break_the_connection(start_server: StartServer) -> None:
    async def pour(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\n")
        while True:
            await exchange.raw(b"X: " + b"x" * 60_000 + b"\r\n")

    server = await start_server(pour)
    async with unlimited(server.settings) as client:
        with pytest.raises(ConnectionFailed, match="net/http: server response headers exceeded 1048576 bytes; aborted"):
            await client.call(b"POST", b"/x")
        with pytest.raises(ConnectionFailed, match="net/http: server response headers exceeded 1048576 bytes; aborted"):
            async with client.stream(b"/x?watch=true"):
                raise AssertionError("must not be reached")


@pytest.mark.parametrize("framing", ["chunked", "endless"])
async def test_a_body_without_an_end_breaks_the_connection(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, framing: str
) -> None:
    monkeypatch.setattr(http1, "MAX_BODY_BYTES", 1_000_000)

    async def pour(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 200 OK\r\n")
        await exchange.raw(b"Transfer-Encoding: chunked\r\n\r\n" if framing == "chunked" else b"\r\n")
        while True:
            await exchange.raw(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    server = await start_server(pour)
    async with unlimited(server.settings) as client:
        with pytest.raises(ConnectionFailed, match="the response is larger than 1000000 bytes"):
            await client.call(b"POST", b"/x")


async def test_a_read_whose_response_is_too_large_is_not_repeated(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1, "MAX_BODY_BYTES", 1_000_000)

    async def bomb(exchange: Exchange) -> None:
        await exchange.answer(gzip.compress(b"x" * 1_000_001), headers="Content-Encoding: gzip\r\n")

    server = await start_server(bomb)
    async with unlimited(server.settings) as client:
        with pytest.raises(ResponseTooLarge, match="the response is larger than 1000000 bytes"):
            await client.call(b"GET", b"/x")
    assert len(server.requests) == 1


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20])
@pytest.mark.parametrize("is_random", [False, True], ids=["zeros", "random"])
async def test_bodies_of_any_size_are_decompressed(size: int, is_random: bool) -> None:
    body = Random(size).randbytes(size) if is_random else bytes(size)
    zipped = gzip.compress(body)
    assert await gunzip(zipped, size) == body
    for cut in (zipped[:-1], zipped[: len(zipped) // 2]):
        with pytest.raises(ProtocolViolation, match="unexpected EOF"):
            await gunzip(cut, size)
    if size:
        with pytest.raises(BodyTooLarge):
            await gunzip(zipped, size - 1)


async def test_decompression_can_be_cancelled() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    with trio.CancelScope() as scope:
        scope.cancel()
        await gunzip(bomb, 64 << 20)
    assert scope.cancelled_caught


async def test_a_body_that_is_huge_only_when_decompressed_is_not(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1, "MAX_BODY_BYTES", 1_000_000)

    async def bomb(exchange: Exchange) -> None:
        size = int(exchange.request.body)
        await exchange.answer(gzip.compress(b"x" * size), headers="Content-Encoding: gzip\r\n")

    server = await start_server(bomb)
    async with unlimited(server.settings) as client:
        assert len(await client.call(b"POST", b"/x", body=b"1000000")) == 1_000_000
        with pytest.raises(ConnectionFailed, match="the response is larger than 1000000 bytes"):
            await client.call(b"POST", b"/x", body=b"1000001")
