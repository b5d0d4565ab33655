"""Which proxy to use for a server, and how to open a tunnel through it."""

import base64
import ipaddress
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from attrs import frozen

from trio_sched.go.text import quote

PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
_HEAD_LIMIT_BYTES = 64 * 1024
_SOCKS_PROBLEMS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}


class ProxyRefused(Exception):
    """The proxy refused to connect to the server."""


class _Bytes(Protocol):
    async def send(self, data: bytes) -> None: ...

    async def receive(self) -> bytes: ...


@frozen(kw_only=True)
class Proxy:
    """A proxy's address, and user and password for it."""

    scheme: str
    host: str
    port: int
    username: str = ""
    password: str = ""

    @classmethod
    def parse(cls, url: str) -> "Proxy":
        """The proxy at *url*, as in environment variables: a bare ``host:port`` is an http proxy.

        Raises:
            ValueError: see :meth:`parse_strictly`.
        """
        return cls.parse_strictly(url if "://" in url else f"http://{url}")

    @classmethod
    def parse_strictly(cls, url: str) -> "Proxy":
        """The proxy at *url*, as in kubeconfigs: with its scheme.

        Raises:
            ValueError: with the text of kube-scheduler.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:  # whose text can contain a part of the password
            raise ValueError("invalid host or port") from None
        if parts.scheme not in PROXY_SCHEMES:
            raise ValueError(f"unsupported scheme {quote(parts.scheme)}, must be http, https, or socks5")
        if not parts.hostname:
            raise ValueError("host must be specified")
        defaults = {"http": 80, "https": 443}
        return cls(
            scheme=parts.scheme,
            host=parts.hostname,
            port=port or defaults.get(parts.scheme, 1080),
            username=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
        )

    @property
    def is_socks(self) -> bool:
        """Whether its protocol is SOCKS 5 instead of HTTP."""
        return self.scheme.startswith("socks")

    def authorization(self) -> bytes:
        """The ``Proxy-Authorization`` line; empty without a user."""
        if not self.username:
            return b""
        secret = base64.b64encode(f"{self.username}:{self.password}".encode())
        return b"Proxy-Authorization: Basic " + secret + b"\r\n"


def choose_proxy(server: str, proxy_url: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy for *server*: the kubeconfig's, else the environment's, else none.

    Raises:
        ValueError: the URL of the proxy is invalid.
    """
    if proxy_url:
        return Proxy.parse_strictly(proxy_url)
    parts = urlsplit(server)
    name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    url = environ.get(name) or environ.get(name.lower()) or ""
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if not url or is_excepted(parts, exceptions):
        return None
    return Proxy.parse(url)


def is_excepted(server: SplitResult, exceptions: str) -> bool:
    """Whether NO_PROXY's *exceptions* cover *server*: names, addresses, CIDRs, ``*``; loopback always."""
    host = (server.hostname or "").rstrip(".").lower()
    port = str(server.port or (443 if server.scheme == "https" else 80))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_covers(entry.strip().lower(), host, port, address) for entry in exceptions.split(",") if entry.strip())


def _covers(entry: str, host: str, port: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, entry_port = entry.rpartition(":")
    if colon and entry_port.isdecimal() and (":" not in name or name.endswith("]")):
        if entry_port != port:
            return False
        entry = name
    entry = entry.strip("[]")
    if address is not None:
        return entry == str(address)
    if entry.startswith("*."):
        entry = entry[1:]
    return host.endswith(entry) if entry.startswith(".") else host == entry or host.endswith(f".{entry}")


async def tunnel(channel: _Bytes, proxy: Proxy, host: str, port: int) -> None:
    """Have *proxy*, at the other end of *channel*, connect to *host*.

    Raises:
        ProxyRefused: it refused, or uses another protocol.
    """
    if proxy.is_socks:
        await _socks5(channel, proxy, host, port)
    else:
        await _connect(channel, proxy, host, port)


async def _connect(channel: _Bytes, proxy: Proxy, host: str, port: int) -> None:
    authority = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode()
    request = b"CONNECT " + authority + b" HTTP/1.1\r\nHost: " + authority + b"\r\n" + proxy.authorization() + b"\r\n"
    await channel.send(request)
    head = bytearray()
    while b"\r\n\r\n" not in head:  # the server sends nothing before it gets a request, so the head comes alone
        received = await channel.receive()
        head += received
        if not received or len(head) > _HEAD_LIMIT_BYTES:
            raise ProxyRefused("the proxy gave no complete answer to CONNECT")
    status_line = bytes(head.split(b"\r\n", 1)[0]).decode("latin-1")
    version, _, status = status_line.partition(" ")
    if not version.startswith("HTTP/1.") or not status.startswith("2"):
        raise ProxyRefused(f"the proxy answered CONNECT with {status or status_line!r}")


async def _socks5(channel: _Bytes, proxy: Proxy, host: str, port: int) -> None:
    reader = _Exactly(channel)
    await channel.send(b"\x05\x02\x00\x02" if proxy.username else b"\x05\x01\x00")
    version, method = await reader.read(2)
    if version != 5 or method not in (0, 2) or (method == 2 and not proxy.username):
        raise ProxyRefused("the SOCKS proxy accepts none of our ways to log in")
    if method == 2:
        user, password = proxy.username.encode()[:255], proxy.password.encode()[:255]
        await channel.send(bytes([1, len(user)]) + user + bytes([len(password)]) + password)
        if (await reader.read(2))[1] != 0:
            raise ProxyRefused("the SOCKS proxy does not accept the user name and password")
    await channel.send(b"\x05\x01\x00" + _socks_address(host) + port.to_bytes(2, "big"))
    _, outcome, _, kind = await reader.read(4)
    if outcome != 0:
        raise ProxyRefused(f"the SOCKS proxy could not connect: {_SOCKS_PROBLEMS.get(outcome, f'code {outcome}')}")
    length = {1: 4, 4: 16}.get(kind) or (await reader.read(1))[0]
    await reader.read(length + 2)


def _socks_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna")
        return bytes([3, len(name)]) + name
    return bytes([1 if address.version == 4 else 4]) + address.packed


class _Exactly:
    """Reads exactly as many bytes as asked for."""

    def __init__(self, channel: _Bytes) -> None:
        self._channel = channel
        self._buffer = bytearray()

    async def read(self, count: int) -> bytes:
        while len(self._buffer) < count:
            received = await self._channel.receive()
            if not received:
                raise ProxyRefused("the SOCKS proxy closed the connection")
            self._buffer += received
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken
