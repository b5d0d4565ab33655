import contextlib
import socket
import ssl
from typing import Any

import pytest
import trio
import trustme
from attrs import evolve
from file_writer import Write
from raw_server import Exchange, StartServer

from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.errors import ConnectionFailed, KubeconfigError, Unauthorized
from trio_sched.kube_client.http.tls import TlsSource
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings

SETTINGS = ConnectionSettings(server="https://127.0.0.1:1")


async def answer(exchange: Exchange) -> None:
    await exchange.answer()


async def test_a_certificate_of_another_authority_is_not_trusted(start_server: StartServer) -> None:
    server = await start_server(answer, tls=True)
    settings = evolve(server.settings, tls=TlsSettings(ca_data=trustme.CA().cert_pem.bytes()))
    async with connect(settings) as client:
        with pytest.raises(ConnectionFailed, match="x509: certificate signed by unknown authority") as caught:
            await client.call(b"POST", b"/x")
    assert not caught.value.may_have_reached_server
    assert server.requests == []


async def test_the_name_in_the_certificate_must_be_the_hosts_or_the_configured_one(
    start_server: StartServer,
) -> None:
    server = await start_server(answer, tls=True)
    for name, trusted in (("kubernetes.test", True), ("other.test", False)):
        settings = evolve(server.settings, tls=evolve(server.settings.tls, server_name=name))
        async with connect(settings) as client:
            if trusted:
                await client.call(b"GET", b"/x")
            else:
                with pytest.raises(ConnectionFailed, match=r"is valid for kubernetes\.test, not other\.test$"):
                    await client.call(b"GET", b"/x")


async def test_insecure_skips_all_verification(start_server: StartServer) -> None:
    server = await start_server(answer, tls=True)
    settings = evolve(server.settings, tls=TlsSettings(insecure_skip_verify=True, server_name="other.test"))
    async with connect(settings) as client:
        await client.call(b"GET", b"/x")
    assert len(server.requests) == 1


async def test_speaking_tls_to_a_plain_server_is_a_failed_handshake() -> None:
    async def refuse(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(trio.serve_tcp, refuse, 0)
        port = listeners[0].socket.getsockname()[1]
        settings = evolve(SETTINGS, server=f"https://127.0.0.1:{port}")
        async with connect(settings) as client:
            with pytest.raises(ConnectionFailed, match=r"http: server gave HTTP response to HTTPS client$"):
                await client.call(b"GET", b"/x")
        nursery.cancel_scope.cancel()


def files(write: Write, authority: trustme.CA, name: str) -> TlsSettings:
    leaf = authority.issue_cert(name)
    return TlsSettings(
        ca_file=write("ca.pem", authority.cert_pem.bytes()),
        client_certificate_file=write("cert.pem", leaf.cert_chain_pems[0].bytes()),
        client_key_file=write("key.pem", leaf.private_key_pem.bytes()),
    )


async def test_a_replaced_client_certificate_is_used_on_new_connections(
    write: Write, authority: trustme.CA, nursery: trio.Nursery
) -> None:
    shown: list[Any] = []

    async def talk(stream: trio.SSLStream[trio.SocketStream]) -> None:
        await stream.do_handshake()
        certificate = stream.getpeercert()
        shown.append(certificate["subjectAltName"][0][1])
        with contextlib.suppress(trio.BrokenResourceError):  # clients hang up without a goodbye
            while await stream.receive_some():
                await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    listeners: Any = await nursery.start(trio.serve_ssl_over_tcp, talk, 0, context)
    port = listeners[0].transport_listener.socket.getsockname()[1]

    tls = files(write, authority, "one.test")
    settings = evolve(SETTINGS, server=f"https://127.0.0.1:{port}", tls=tls)
    async with connect(settings) as client:
        assert client.pool is not None
        await client.call(b"POST", b"/x")
        files(write, authority, "two.test")
        await client.call(b"POST", b"/x")
        assert client.pool.dialer.tls.reload()
        await client.call(b"POST", b"/x")
    assert shown == ["one.test", "two.test"]


async def test_an_authority_that_was_replaced_is_trusted_by_the_next_connection(
    write: Write, start_server: StartServer
) -> None:
    server = await start_server(answer, tls=True)
    bundle = write("bundle.pem", trustme.CA().cert_pem.bytes())
    async with connect(evolve(server.settings, tls=TlsSettings(ca_file=bundle))) as client:
        with pytest.raises(ConnectionFailed, match="signed by unknown authority"):
            await client.call(b"POST", b"/x")
        write("bundle.pem", b"half a certif")
        with pytest.raises(ConnectionFailed, match="signed by unknown authority"):
            await client.call(b"POST", b"/x")
        write("bundle.pem", server.authority.cert_pem.bytes())
        await client.call(b"POST", b"/x")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
async def test_a_client_certificate_that_is_refused_is_read_again(
    write: Write, authority: trustme.CA, nursery: trio.Nursery, version: ssl.TLSVersion
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def serve() -> None:  # trio's TLS sends no alert when a handshake fails
        with contextlib.suppress(TimeoutError), listener:
            while True:
                accepted, _address = listener.accept()
                accepted.settimeout(1)
                with contextlib.suppress(OSError), context.wrap_socket(accepted, server_side=True) as stream:
                    while stream.recv(4096):
                        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.3)
    port = listener.getsockname()[1]
    nursery.start_soon(trio.to_thread.run_sync, serve)
    tls = files(write, trustme.CA(), "one.test")
    write("ca.pem", authority.cert_pem.bytes())
    async with connect(evolve(SETTINGS, server=f"https://127.0.0.1:{port}", tls=tls)) as client:
        with pytest.raises(ConnectionFailed):
            await client.call(b"POST", b"/x")
        files(write, authority, "two.test")
        with contextlib.suppress(ConnectionFailed):  # in TLS 1.3 the refusal is seen in place of the response
            await client.call(b"POST", b"/x")
        await client.call(b"POST", b"/x")


async def test_after_a_401_a_client_certificate_is_read_again(write: Write, start_server: StartServer) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.answer(status=401)

    server = await start_server(refuse, tls=True)
    tls = files(write, server.authority, "one.test")
    async with connect(evolve(server.settings, tls=tls)) as client:
        assert client.pool is not None
        with pytest.raises(Unauthorized):
            await client.call(b"GET", b"/x")
        assert client.pool.dialer.tls.generation == 0
        files(write, server.authority, "two.test")
        with pytest.raises(Unauthorized):
            await client.call(b"GET", b"/x")
        assert client.pool.dialer.tls.generation == 1


def test_only_a_real_change_of_a_file_counts_as_one(write: Write, authority: trustme.CA) -> None:
    source = TlsSource(files(write, authority, "one.test"))
    before = source.context()
    assert not source.reload()
    assert source.context() is before
    files(write, authority, "two.test")
    assert source.reload()
    assert (source.generation, source.context() is before) == (1, False)


def test_a_partly_written_file_changes_nothing(write: Write, authority: trustme.CA) -> None:
    source = TlsSource(files(write, authority, "one.test"))
    before = source.context()
    write("cert.pem", "half a certif")
    with pytest.raises(KubeconfigError, match="failed to find any PEM data in certificate input"):
        source.reload()
    assert source.context() is before
