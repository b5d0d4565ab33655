"""Opens connections to a server: TCP, proxies, TLS, each with its own timeout."""

import contextlib
import os
import socket
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import trio
from attrs import define, field

from trio_sched.kube_client.channel import SocketChannel, TlsChannel
from trio_sched.kube_client.errors import ConnectionFailed, KubeconfigError
from trio_sched.kube_client.http1 import Http1Connection
from trio_sched.kube_client.proxy import Proxy, ProxyRefused, choose_proxy, tunnel
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.kube_client.tls import TlsSource

CONNECT_SECONDS = 30.0
HANDSHAKE_SECONDS = 10.0
KEEPALIVE_SECONDS = 30


@define(eq=False)
class Dialer:
    """Opens connections to one server.

    Args:
        settings: of the server.
        tls: the certificates; used if the server's URL is https.
        environ: where the proxy is taken from if the settings have none.
    """

    settings: ConnectionSettings
    tls: TlsSource
    environ: Mapping[str, str] = field(factory=lambda: os.environ)
    host: str = field(init=False)
    port: int = field(init=False)
    proxy: Proxy | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        parts = urlsplit(self.settings.server)
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.settings.is_tls else 80)
        try:
            self.proxy = choose_proxy(self.settings.server, self.settings.proxy_url, self.environ)
        except ValueError as problem:
            raise KubeconfigError(f"invalid proxy for {self.settings.server}: {problem}") from problem

    @property
    def relays_requests(self) -> bool:
        """Whether an HTTP proxy forwards plain requests, which then contain the whole URL."""
        return self.proxy is not None and not self.proxy.is_socks and not self.settings.is_tls

    async def dial(self) -> Http1Connection:
        """Open a connection.

        Raises:
            ConnectionFailed: the server cannot be reached or is not trusted; nothing of a request was sent.
        """
        proxy, generation = self.proxy, self.tls.generation
        host, port = (proxy.host, proxy.port) if proxy else (self.host, self.port)
        channel: SocketChannel | TlsChannel = await self._connect(host, port)
        try:
            if proxy is not None:
                if proxy.scheme == "https":
                    channel = await self._handshake(channel, ssl.create_default_context(), proxy.host)
                if not self.relays_requests:
                    channel = await self._tunnel(channel, proxy)
            if self.settings.is_tls:
                name = self.settings.tls.server_name or self.host
                channel = await self._handshake(channel, self.tls.context(), name)
        except BaseException:
            channel.close()
            raise
        return Http1Connection(channel, generation=generation)

    async def _connect(self, host: str, port: int) -> SocketChannel:
        try:
            with trio.fail_after(CONNECT_SECONDS):
                stream = await trio.open_tcp_stream(host, port)
        except trio.TooSlowError as problem:
            raise self._failed(f"no connection to {host}:{port} within {CONNECT_SECONDS:g} s") from problem
        except socket.gaierror as problem:
            raise self._failed(f"dial tcp: lookup {host}: {_unknown_host(problem)}") from problem
        except OSError as problem:
            raise self._failed(f"dial tcp {host}:{port}: connect: {_innermost(problem)}") from problem
        _keep_alive(stream.socket)
        return SocketChannel.take_over(stream)

    async def _tunnel(self, channel: SocketChannel | TlsChannel, proxy: Proxy) -> SocketChannel | TlsChannel:
        try:
            with trio.fail_after(CONNECT_SECONDS):
                await tunnel(channel, proxy, self.host, self.port)
        except (ProxyRefused, OSError, trio.TooSlowError) as problem:
            why = f"silent for {CONNECT_SECONDS:g} s" if isinstance(problem, trio.TooSlowError) else problem
            raise self._failed(f"proxy {proxy.scheme}://{proxy.host}:{proxy.port}: {why}") from problem
        return channel

    async def _handshake(
        self, inner: SocketChannel | TlsChannel, context: ssl.SSLContext, server_name: str
    ) -> TlsChannel:
        channel = TlsChannel(inner, context, server_name)
        try:
            with trio.fail_after(HANDSHAKE_SECONDS):
                await channel.handshake()
        except trio.TooSlowError as problem:
            raise self._failed(f"no TLS handshake within {HANDSHAKE_SECONDS:g} s") from problem
        except ssl.SSLCertVerificationError as problem:
            raise self._failed(f"its certificate is not trusted: {problem.verify_message}") from problem
        except OSError as problem:  # ssl.SSLError is one
            raise self._failed(f"TLS handshake failed: {problem}") from problem
        return channel

    def _failed(self, problem: str) -> ConnectionFailed:
        return ConnectionFailed(self.settings.server, problem)


def _innermost(problem: OSError) -> str:
    """The system's text alone; trio adds the address, and chains several errors as a group to one."""
    cause = problem.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    innermost = cause if isinstance(cause, OSError) else problem
    return (os.strerror(innermost.errno) if innermost.errno else str(innermost)).lower()


def _unknown_host(problem: socket.gaierror) -> str:
    return "no such host" if problem.errno == socket.EAI_NONAME else (problem.strerror or str(problem)).lower()


def _keep_alive(sock: trio.socket.SocketType) -> None:
    """Have the kernel detect within two minutes that the other machine does not respond any more."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_SECONDS),
        ("TCP_KEEPINTVL", KEEPALIVE_SECONDS),
        ("TCP_KEEPCNT", 3),
    ):
        with contextlib.suppress(AttributeError, OSError):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
