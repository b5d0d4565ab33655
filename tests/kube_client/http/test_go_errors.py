"""What is said when a connection fails: nothing of Python's or OpenSSL's own words, which no user or tool knows."""

import errno
import socket
import ssl
from typing import Any

import pytest
import trio
import trustme

from trio_sched.go.errors import describe_failed_dial, describe_failure, describe_wrong_name
from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.kube_client.http.http1 import ProtocolViolation
from trio_sched.kube_client.json_poster import JsonPoster
from trio_sched.kube_client.settings import TlsSettings


async def failure(nursery: trio.Nursery, handler: Any, **options: Any) -> str:
    listeners: Any = await nursery.start(trio.serve_tcp, handler, 0)
    poster = JsonPoster.for_url(f"https://127.0.0.1:{listeners[0].socket.getsockname()[1]}", **options)
    with pytest.raises(ConnectionFailed) as caught:
        await poster.post("filter", b"{}")
    poster.close()
    return caught.value.problem


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (ssl.TLSVersion.TLSv1_3, "remote error: tls: certificate required"),
        (ssl.TLSVersion.TLSv1_2, "remote error: tls: handshake failure"),
    ],
)
async def test_an_alert_of_the_server_is_named_as_by_go(
    nursery: trio.Nursery, authority: trustme.CA, version: ssl.TLSVersion, text: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def require_certificate(stream: trio.SocketStream) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        is_over = False
        while not is_over:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                is_over = True
            await stream.send_all(outgoing.read())
            if not is_over:
                incoming.write(await stream.receive_some())
        await stream.send_eof()
        while await stream.receive_some():  # a connection that is closed with unread data is reset
            pass

    assert await failure(nursery, require_certificate, tls=TlsSettings(ca_data=authority.cert_pem.bytes())) == text


async def test_what_is_no_tls_is_named_as_by_go(nursery: trio.Nursery) -> None:
    async def answer(stream: trio.SocketStream, data: bytes) -> None:
        await stream.receive_some()
        await stream.send_all(data)
        await stream.send_eof()
        await stream.receive_some()

    texts = {}
    for data in (b"", b"HTTP/1.0 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.9\r\n", b"\x00" * 100):

        async def handler(stream: trio.SocketStream, data: bytes = data) -> None:
            await answer(stream, data)

        texts[data[:5]] = await failure(nursery, handler, tls=TlsSettings(insecure_skip_verify=True))
    assert texts == {
        b"": "EOF",
        b"HTTP/": "http: server gave HTTP response to HTTPS client",
        b"SSH-2": "tls: first record does not look like a TLS handshake",
        b"\x00" * 5: "tls: first record does not look like a TLS handshake",
    }


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), "read: connection reset by peer"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "write: broken pipe"),
        (ssl.SSLError(1, "[SSL: FOO] foo (_ssl.c:1006)"), "tls: protocol error"),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol (_ssl.c:1006)"), "EOF"),
        (ProtocolViolation("unexpected EOF"), "unexpected EOF"),
    ],
)
def test_a_broken_connection_is_named_as_by_go(problem: Exception, text: str) -> None:
    assert describe_failure(problem) == text


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "dial tcp: lookup h: no such host"),
        (
            socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
            "dial tcp: lookup h: temporary failure in name resolution",
        ),
        (OSError(errno.ENETUNREACH, "x"), "dial tcp h:1: connect: network is unreachable"),
        (
            OSError(errno.ECONNREFUSED, "Error connecting to ('10.0.0.1', 1): Connection refused"),
            "dial tcp 10.0.0.1:1: connect: connection refused",
        ),
        (UnicodeError("label empty or too long"), "dial tcp: lookup h: no such host"),
    ],
)
def test_a_failed_dial_is_named_as_by_go(problem: Exception, text: str) -> None:
    assert describe_failed_dial("h", 1, problem) == text


def test_a_certificate_with_a_hundred_names_is_described_by_their_number() -> None:
    names = tuple(("DNS", f"n{number}.test") for number in range(100))
    text = describe_wrong_name({"subjectAltName": names}, "x.test")
    assert text.endswith("x509: certificate is valid for 100 names, but none matched x.test")
