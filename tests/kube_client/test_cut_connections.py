"""Connections that end at any byte of a response: what an API server sent for a list, a watch, a bind and a lease.

The pool has one slot: if it were lost, the next request would wait for it until the test fails.
"""

import re
from typing import Any

import pytest
import trio
from attrs import evolve
from raw_server import Exchange, RawServer, StartServer

from trio_sched.kube_client import connection
from trio_sched.kube_client.binding import bind
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.decoding.decoding import Codec, Page
from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.kube_client.verbs import list_pages
from trio_sched.objects.pod import Pod

HEAD = (
    b"Audit-Id: 0e1d1c5e-0f3f-4b1c-9a55-3a1d7a1f2b11\r\n"
    b"Cache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\n"
    b"Date: Sat, 21 Nov 2026 06:18:48 GMT\r\n"
)


def whole(status: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status, HEAD, len(body), body)


def chunked(*chunks: bytes) -> bytes:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return b"HTTP/1.1 200 OK\r\n%bTransfer-Encoding: chunked\r\n\r\n%b" % (HEAD, framed)


POD = (
    b'{"metadata":{"name":"p%d","namespace":"default","uid":"u%d","resourceVersion":"%d"},'
    b'"spec":{"nodeName":"n\xc3\xbc"}}'
)
LIST = whole(
    b"200 OK",
    b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[%b,%b]}'
    % (POD % (1, 1, 1), POD % (2, 2, 2)),
)
LINES = [b'{"type":"ADDED","object":%b}\n' % (POD % (number, number, number)) for number in (3, 4, 5)]
WATCH = chunked(LINES[0], LINES[1][:30], LINES[1][30:] + LINES[2])
BIND = whole(b"201 Created", b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}')
LEASE = whole(
    b"200 OK",
    b'{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"kube-scheduler","resourceVersion":"7"},'
    b'"spec":{"holderIdentity":"me","leaseDurationSeconds":15}}',
)


class Cutter:
    """A handler that sends the first *length* bytes of a response and ends the connection; the next one is whole."""

    def __init__(self, response: bytes) -> None:
        self.response = response
        self.length: int | None = None

    async def __call__(self, exchange: Exchange) -> None:
        length, self.length = self.length, None
        await exchange.raw(self.response[:length])
        if length is not None:
            await exchange.stream.aclose()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads are repeated without a pause."""
    monkeypatch.setattr(connection, "BROKEN_READ_RETRY_SECONDS", 0)


def check_slots(client: KubeClient) -> None:
    pool = client.pool
    assert pool is not None
    assert (len(pool._busy), len(pool._waiting)) == (0, 0)
    assert pool._open == len(pool._idle) <= 1


def check_words(problem: ConnectionFailed) -> None:
    assert problem.problem in ("EOF", "unexpected EOF", "read: connection reset by peer", "write: broken pipe")


def check_log(caplog: pytest.LogCaptureFixture) -> None:
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(("tls", "step"), [(False, 1), (True, 19)], ids=["plain", "tls"])
async def test_a_list_is_read_again_wherever_it_was_cut(
    start_server: StartServer, at_once: None, caplog: pytest.LogCaptureFixture, tls: bool, step: int
) -> None:
    cutter = Cutter(LIST)
    server = await start_server(cutter, tls=tls)
    with trio.fail_after(60):
        async with connect(server.settings, qps=-1, max_connections=1) as client:
            for length in range(0, len(LIST), step):
                cutter.length = length
                pages: list[Page[Pod]] = []
                await list_pages(client, POD_KIND, pages.append)
                assert [pod.metadata.name for page in pages for pod in page.objects] == ["p1", "p2"]
                assert cutter.length is None
                check_slots(client)
    assert len(server.requests) == 2 * len(range(0, len(LIST), step))
    check_log(caplog)


@pytest.mark.parametrize(("tls", "step"), [(False, 1), (True, 19)], ids=["plain", "tls"])
@pytest.mark.parametrize("verb", ["bind", "lease"])
async def test_a_write_is_not_repeated_wherever_its_response_was_cut(
    start_server: StartServer, caplog: pytest.LogCaptureFixture, verb: str, tls: bool, step: int
) -> None:
    response = BIND if verb == "bind" else LEASE
    cutter = Cutter(response)
    server = await start_server(cutter, tls=tls)

    async def write(client: KubeClient) -> None:
        if verb == "bind":
            await bind(client, namespace="default", name="p", uid="u", node="n")
        else:
            await client.call(b"PUT", b"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")

    with trio.fail_after(60):
        async with connect(server.settings, qps=-1, max_connections=1) as client:
            for length in range(0, len(response), step):
                cutter.length = length
                with pytest.raises(ConnectionFailed) as caught:
                    await write(client)
                assert caught.value.may_have_reached_server
                assert not caught.value.timed_out
                check_words(caught.value)
                check_slots(client)
            asked = len(server.requests)
            await write(client)
            check_slots(client)
    assert (asked, len(server.requests)) == (len(range(0, len(response), step)), asked + 1)
    check_log(caplog)


async def received_until_failure(client: KubeClient) -> bytes:
    received = b""
    try:
        async with client.stream(b"/api/v1/pods?watch=true") as stream:
            while piece := await stream.receive():
                received += piece
    except ConnectionFailed as problem:
        check_words(problem)
        return received
    raise AssertionError("an incomplete response passed for a complete one")


@pytest.mark.parametrize(("tls", "step"), [(False, 1), (True, 19)], ids=["plain", "tls"])
async def test_a_watch_gives_the_whole_lines_before_the_cut_and_then_fails(
    start_server: StartServer, caplog: pytest.LogCaptureFixture, tls: bool, step: int
) -> None:
    cutter = Cutter(WATCH)
    server = await start_server(cutter, tls=tls)
    codec = Codec(POD_KIND)
    ends = [end.end() for end in re.finditer(rb"}}}\n", WATCH)]
    async with connect(server.settings) as client:
        for length in range(0, len(WATCH), step):
            cutter.length = length
            received = await received_until_failure(client)
            lines = received[: received.rfind(b"\n") + 1]
            names: list[Any] = [event.object for event in codec.events(lines)] if lines else []
            assert [pod.metadata.name for pod in names] == ["p3", "p4", "p5"][: len(names)]
            assert len(names) == sum(end <= length for end in ends)
            assert client.pool is not None
            assert client.pool._open == 0
    check_log(caplog)


async def test_a_connection_that_ends_inside_the_tls_handshake_or_a_record_is_an_error_in_the_words_of_go(
    start_server: StartServer, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    server = await start_server(Cutter(BIND), tls=True)
    forwarder = Forwarder(server)
    listeners: Any = await nursery.start(trio.serve_tcp, forwarder.forward, 0)
    port = listeners[0].socket.getsockname()[1]
    settings = evolve(server.settings, server=f"https://127.0.0.1:{port}")
    async with connect(settings, qps=-1, max_connections=1) as client:
        length, is_complete = 0, False
        while not is_complete:
            forwarder.length = length
            try:
                with trio.fail_after(10):
                    await bind(client, namespace="default", name="p", uid="u", node="n")
                is_complete = True
            except ConnectionFailed as problem:
                check_words(problem)
                check_slots(client)
            length += 13
    assert length > 1000
    check_log(caplog)


class Forwarder:
    """Forwards connections to *server*, and ends each after *length* bytes from it."""

    def __init__(self, server: RawServer) -> None:
        self.server = server
        self.length = 0

    async def forward(self, client: trio.SocketStream) -> None:
        left = self.length
        async with await trio.open_tcp_stream("127.0.0.1", self.server.port) as inner:

            async def upstream() -> None:
                try:
                    while received := await client.receive_some():
                        await inner.send_all(received)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass

            async with trio.open_nursery() as nursery:
                nursery.start_soon(upstream)
                while left and (received := await inner.receive_some()):
                    await client.send_all(received[:left])
                    left -= min(left, len(received))
                await client.send_eof()
                nursery.cancel_scope.cancel()
        await client.aclose()
