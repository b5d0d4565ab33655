import base64
import ssl
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
import trustme
from attrs import define, evolve, field
from file_writer import Write
from raw_server import Exchange, StartServer

from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.kube_client.http.proxy import Proxy, choose_proxy, is_excepted


@define(eq=False)
class TestProxy:
    """Passes bytes on after a CONNECT or a SOCKS greeting; remembers what it was told."""

    __test__ = False

    login: str = ""
    refuse: bool = False
    received: list[str] = field(factory=list)
    port: int = 0

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            listeners: Any = await nursery.start(partial(trio.serve_tcp, self._talk, 0, host="127.0.0.1"))
            self.port = listeners[0].socket.getsockname()[1]
            task_status.started()

    async def _talk(self, client: trio.SocketStream) -> None:
        first = await client.receive_some()
        if first[:1] == b"\x05":
            host, port = await self._socks(client, first)
        else:
            head = bytes(first).decode()
            self.received.append(head)
            if head.startswith("CONNECT"):
                if self.refuse:
                    await client.send_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                    return await client.aclose()
                host, _, text = head.split(" ")[1].rpartition(":")
                port = int(text)
                await client.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                return await client.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nrelayed")
        async with await trio.open_tcp_stream(host, port) as server, trio.open_nursery() as nursery:
            nursery.start_soon(self._pump, client, server)
            nursery.start_soon(self._pump, server, client)
        return None

    async def _socks(self, client: trio.SocketStream, greeting: bytes) -> tuple[str, int]:
        if self.login:
            assert greeting == b"\x05\x02\x00\x02"
            await client.send_all(b"\x05\x02")
            login = bytes(await client.receive_some())
            user = login[2 : 2 + login[1]].decode()
            password = login[3 + login[1] :].decode()
            await client.send_all(b"\x01\x00" if f"{user}:{password}" == self.login else b"\x01\x01")
        else:
            await client.send_all(b"\x05\x00")
        request = bytes(await client.receive_some())
        self.received.append(request.hex())
        await client.send_all(b"\x05" + (b"\x05" if self.refuse else b"\x00") + b"\x00\x01\x7f\x00\x00\x01\x00\x00")
        host = "127.0.0.1" if request[3] == 1 else request[5:-2].decode()
        return host, int.from_bytes(request[-2:], "big")

    async def _pump(self, source: trio.SocketStream, sink: trio.SocketStream) -> None:
        try:
            async for data in source:
                await sink.send_all(data)
            await sink.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


async def answer(exchange: Exchange) -> None:
    await exchange.answer(b"direct")


@pytest.mark.parametrize(("scheme", "login"), [("http", ""), ("socks5", ""), ("socks5", "me:p@ss")])
async def test_tls_goes_through_a_proxy_untouched(
    start_server: StartServer, nursery: trio.Nursery, scheme: str, login: str
) -> None:
    server, proxy = await start_server(answer, tls=True), TestProxy(login=login)
    await nursery.start(proxy.serve)
    user = "me:p%40ss@" if login else ""
    settings = evolve(server.settings, proxy_url=f"{scheme}://{user}127.0.0.1:{proxy.port}")
    async with connect(settings) as client:
        assert await client.call(b"GET", b"/x") == b"direct"
    assert len(proxy.received) == 1


async def test_an_http_proxy_gets_proxy_authorization(start_server: StartServer, nursery: trio.Nursery) -> None:
    server, proxy = await start_server(answer, tls=True), TestProxy()
    await nursery.start(proxy.serve)
    settings = evolve(server.settings, proxy_url=f"http://me:pw@127.0.0.1:{proxy.port}")
    async with connect(settings) as client:
        await client.call(b"GET", b"/x")
    head = proxy.received[0].split("\r\n")
    assert head[0] == f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:pw').decode()}" in head


async def test_an_http_proxy_relays_plain_requests_by_their_whole_url(
    start_server: StartServer, nursery: trio.Nursery
) -> None:
    server, proxy = await start_server(answer), TestProxy()
    await nursery.start(proxy.serve)
    settings = evolve(server.settings, proxy_url=f"http://127.0.0.1:{proxy.port}")
    async with connect(settings) as client:
        assert await client.call(b"GET", b"/x?y") == b"relayed"
    assert proxy.received[0].startswith(f"GET {server.url}/x?y HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n")


@pytest.mark.parametrize(
    ("scheme", "problem"),
    [("http", "answered CONNECT with '407 Proxy Authentication Required'"), ("socks5", "connection refused")],
)
async def test_a_proxy_that_refuses_is_named(
    start_server: StartServer, nursery: trio.Nursery, scheme: str, problem: str
) -> None:
    server, proxy = await start_server(answer, tls=True), TestProxy(refuse=True)
    await nursery.start(proxy.serve)
    settings = evolve(server.settings, proxy_url=f"{scheme}://127.0.0.1:{proxy.port}")
    async with connect(settings) as client:
        with pytest.raises(ConnectionFailed, match=problem) as caught:
            await client.call(b"GET", b"/x")
    assert f"{scheme}://127.0.0.1:{proxy.port}" in str(caught.value)
    assert not caught.value.may_have_reached_server


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://k8s.test", {"HTTPS_PROXY": "http://p:1"}, Proxy(scheme="http", host="p", port=1)),
        ("https://k8s.test", {"https_proxy": "p:1"}, Proxy(scheme="http", host="p", port=1)),
        ("http://k8s.test", {"HTTPS_PROXY": "http://p:1"}, None),
        ("http://k8s.test", {"HTTP_PROXY": "socks5://p"}, Proxy(scheme="socks5", host="p", port=1080)),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, None),
        ("https://127.0.0.1", {"HTTPS_PROXY": "http://p:1"}, None),
    ],
)
def test_the_environment_names_proxies_as_it_does_for_kubectl(
    server: str, environ: Mapping[str, str], expected: Proxy | None
) -> None:
    assert choose_proxy(server, "", environ) == expected


def test_the_kubeconfigs_proxy_goes_before_the_environments() -> None:
    environ = {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}
    assert choose_proxy("https://k8s.test", "https://u:pw@q", environ) == Proxy(
        scheme="https", host="q", port=443, username="u", password="pw"
    )


@pytest.mark.parametrize(
    ("server", "exceptions", "excepted"),
    [
        ("https://a.example.com", "example.com", True),
        ("https://example.com", "example.com", True),
        ("https://badexample.com", "example.com", False),
        ("https://a.example.com", ".example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://a.example.com", "*.example.com", True),
        ("https://example.com:6443", "example.com:6443", True),
        ("https://example.com", "example.com:6443", False),
        ("https://example.com", "example.com:443", True),
        ("https://10.1.2.3", "192.168.0.0/16, 10.1.2.3", True),
        ("https://11.1.2.3", "10.0.0.0/8", False),
        ("https://[fd00::1]", "fd00::/8", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://example.com", "10.0.0.0/8,not/a/network", False),
        ("https://localhost", "", True),
        ("https://any.where", "*", True),
    ],
)
def test_no_proxy_covers_names_addresses_and_networks(server: str, exceptions: str, excepted: bool) -> None:
    assert is_excepted(urlsplit(server), exceptions) is excepted


async def test_an_https_proxy_is_reached_over_tls(
    authority: trustme.CA,
    nursery: trio.Nursery,
    start_server: StartServer,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
) -> None:
    server, proxy = await start_server(answer, tls=True), TestProxy()
    await nursery.start(proxy.serve)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def unwrap(outside: trio.SSLStream[trio.SocketStream]) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as inside, trio.open_nursery() as pumps:

            async def pump(source: Any, sink: Any) -> None:
                try:
                    while data := await source.receive_some():
                        await sink.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass
                pumps.cancel_scope.cancel()

            pumps.start_soon(pump, outside, inside)
            pumps.start_soon(pump, inside, outside)

    listeners: Any = await nursery.start(partial(trio.serve_ssl_over_tcp, unwrap, 0, context, host="127.0.0.1"))
    port = listeners[0].transport_listener.socket.getsockname()[1]
    monkeypatch.setenv("SSL_CERT_FILE", write("ca.pem", authority.cert_pem.bytes()))
    settings = evolve(server.settings, proxy_url=f"https://127.0.0.1:{port}")
    async with connect(settings) as client:
        assert await client.call(b"GET", b"/x") == b"direct"
    assert proxy.received[0].startswith("CONNECT ")
