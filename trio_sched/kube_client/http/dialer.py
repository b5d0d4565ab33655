"""Opens connections to a server: TCP, proxies, TLS, each with its own timeout."""

import contextlib
import os
import socket
import ssl
from collections.abc import Mapping

import trio
from attrs import define, field

from trio_sched.go.errors import (
    HANDSHAKE_TIMEOUT,
    HTTP_INSTEAD_OF_TLS,
    NAME_MISMATCHES,
    describe_failed_dial,
    describe_failure,
    describe_slow_dial,
    describe_wrong_name,
    host_port,
)
from trio_sched.go.text import quote
from trio_sched.kube_client.errors import ConnectionFailed, KubeconfigError
from trio_sched.kube_client.http.channel import SocketChannel, TlsChannel
from trio_sched.kube_client.http.http1 import Http1Connection
from trio_sched.kube_client.http.proxy import Proxy, ProxyRefused, choose_proxy, tunnel
from trio_sched.kube_client.http.tls import TlsSource
from trio_sched.kube_client.server_url import host_and_port
from trio_sched.kube_client.settings import ConnectionSettings

CONNECT_SECONDS = 30.0
HANDSHAKE_SECONDS = 10.0
KEEPALIVE_IDLE_SECONDS = 5
KEEPALIVE_INTERVAL_SECONDS = 3
KEEPALIVE_PROBES = 3
UNACKNOWLEDGED_SECONDS = 14
"""After so long without an acknowledgement of what was sent, keepalives included, the kernel gives a connection up."""


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
        self.host, self.port = host_and_port(self.settings.server)
        try:
            self.proxy = choose_proxy(self.settings.server, self.settings.proxy_url, self.environ)
        except ValueError as problem:
            raise KubeconfigError(f"invalid proxy for {self.settings.server}: {problem}") from problem

    @property
    def relays_requests(self) -> bool:
        """Whether an HTTP proxy forwards plain requests, which then contain the whole URL."""
        return self.proxy is not None and not self.proxy.is_socks and not self.settings.is_tls

    async def dial(self) -> Http1Connection:
        """Open a connection; if a certificate is refused, the files are read again, for they may have been replaced.

        Raises:
            ConnectionFailed: the server cannot be reached or is not trusted; nothing of a request was sent.
        """
        try:
            return await self._dial()
        except ConnectionFailed as problem:
            if not isinstance(problem.__cause__, ssl.SSLError) or not self.tls.reload_or_keep():
                raise
        return await self._dial()

    async def _dial(self) -> Http1Connection:
        generation = self.tls.generation
        if not self.settings.is_tls:
            return Http1Connection(await self._open_channel(), generation=generation)
        name = (self.settings.tls.server_name or self.host).partition("%")[0]
        context = self.tls.context()
        try:
            channel = await self._open_tls(context, name)
        except _WrongName as problem:
            raise self._failed(await self._names_instead_of(name)) from problem.__cause__
        return Http1Connection(channel, generation=generation)

    async def _open_channel(self) -> SocketChannel | TlsChannel:
        """A channel to the server, through the proxy if there is one."""
        proxy = self.proxy
        host, port = (proxy.host, proxy.port) if proxy else (self.host, self.port)
        channel: SocketChannel | TlsChannel = await self._connect(host, port)
        try:
            if proxy is not None:
                if proxy.scheme == "https":
                    channel = await self._handshake(channel, ssl.create_default_context(), proxy.host)
                if not self.relays_requests:
                    channel = await self._tunnel(channel, proxy)
        except _WrongName as problem:
            channel.close()
            raise self._failed(describe_wrong_name({}, host)) from problem.__cause__
        except BaseException:
            channel.close()
            raise
        return channel

    async def _open_tls(self, context: ssl.SSLContext, name: str) -> TlsChannel:
        channel = await self._open_channel()
        try:
            return await self._handshake(channel, context, name)
        except BaseException:
            channel.close()
            raise

    async def _names_instead_of(self, name: str) -> str:
        """The error for a certificate that is for other names than *name*.

        OpenSSL does not tell which these are, so they are read over another connection, on which nothing is sent.
        """
        certificate = {}
        try:
            channel = await self._open_tls(self.tls.context_for_any_name(), name)
        except (ConnectionFailed, _WrongName):
            pass
        else:
            certificate = channel.certificate()
            channel.close()
        return describe_wrong_name(certificate, name)

    async def _connect(self, host: str, port: int) -> SocketChannel:
        try:
            with trio.fail_after(CONNECT_SECONDS):
                stream = await trio.open_tcp_stream(host, port)
        except trio.TooSlowError as problem:
            raise self._failed(describe_slow_dial(host, port)) from problem
        except (OSError, ValueError) as problem:  # a UnicodeError for what is no host name
            raise self._failed(describe_failed_dial(host, port, problem)) from problem
        with contextlib.suppress(OSError):  # of a connection that is broken already; the first request will notice
            _keep_alive(stream.socket)
        return SocketChannel.take_over(stream)

    async def _tunnel(self, channel: SocketChannel | TlsChannel, proxy: Proxy) -> SocketChannel | TlsChannel:
        where = f"proxy {proxy.scheme}://{host_port(proxy.host, proxy.port)}"
        try:
            with trio.fail_after(CONNECT_SECONDS):
                await tunnel(channel, proxy, self.host, self.port)
        except trio.TooSlowError as problem:
            raise self._failed(f"{where}: i/o timeout: silent for {CONNECT_SECONDS:g} s") from problem
        except (ProxyRefused, OSError, ValueError) as problem:
            raise self._failed(f"{where}: {describe_failure(problem)}") from problem
        return channel

    async def _handshake(
        self, inner: SocketChannel | TlsChannel, context: ssl.SSLContext, server_name: str
    ) -> TlsChannel:
        try:
            channel = TlsChannel(inner, context, server_name)
        except ValueError as problem:  # empty, too long, or with a NUL
            raise self._failed(f"tls: invalid server name {quote(server_name)}") from problem
        try:
            with trio.fail_after(HANDSHAKE_SECONDS):
                await channel.handshake()
        except trio.TooSlowError as problem:
            raise self._failed(HANDSHAKE_TIMEOUT) from problem
        except ssl.SSLCertVerificationError as problem:
            if problem.verify_code in NAME_MISMATCHES:
                raise _WrongName from problem
            raise self._failed(describe_failure(problem)) from problem
        except OSError as problem:  # ssl.SSLError is one
            text = HTTP_INSTEAD_OF_TLS if channel.gave_http else describe_failure(problem)
            raise self._failed(text) from problem
        return channel

    def _failed(self, problem: str) -> ConnectionFailed:
        return ConnectionFailed(self.settings.server, problem)


class _WrongName(Exception):
    """The server's certificate is trusted, but for other names; ``__cause__`` is OpenSSL's error."""


def _keep_alive(sock: trio.socket.SocketType) -> None:
    """Have the kernel detect within 15 seconds that the other machine does not respond any more."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_SECONDS),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_SECONDS),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", UNACKNOWLEDGED_SECONDS * 1000),
    ):
        with contextlib.suppress(AttributeError, OSError):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
