"""What the HTTP client of plugins reads through: all waits end at one time, and bodies are decompressed in pieces.

httpx limits single waits: a server that sends a byte now and then would keep a thread for hours. And it decompresses
what it has read at once, which can be a thousand times as much, or with two layers a million times.
"""

from __future__ import annotations

import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import httpcore
import httpx
from attrs import define

_PIECE_BYTES: Final = 1 << 20
_PLAIN: Final = ("", "identity")
_PACKED: Final = ("gzip", "x-gzip", "deflate")
ACCEPTED: Final = "gzip, deflate"
"""The header ``accept-encoding``."""


class Deadline(threading.local):
    """When the request that this thread makes ends."""

    ends_at: float = 0.0

    def left(self, seconds: float | None) -> float:
        """How long to wait at most.

        Raises:
            httpcore.ReadTimeout: no longer.
        """
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("time is up")
        return left if seconds is None else min(left, seconds)


@define(eq=False, slots=False)
class _Stream(httpcore.NetworkStream):
    stream: httpcore.NetworkStream
    deadline: Deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.stream.read(max_bytes, self.deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.stream.write(buffer, self.deadline.left(timeout))

    def close(self) -> None:
        self.stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        encrypted = self.stream.start_tls(ssl_context, server_hostname, self.deadline.left(timeout))
        return _Stream(encrypted, self.deadline)

    def get_extra_info(self, info: str) -> Any:
        return self.stream.get_extra_info(info)


@define(eq=False, slots=False)
class _Backend(httpcore.NetworkBackend):
    backend: httpcore.NetworkBackend
    deadline: Deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        waits = self.deadline.left(timeout)
        return _Stream(self.backend.connect_tcp(host, port, waits, local_address, socket_options), self.deadline)

    def sleep(self, seconds: float) -> None:
        self.backend.sleep(self.deadline.left(seconds))


def limit_waits(client: httpx.Client, deadline: Deadline) -> None:
    """Have all that *client* waits for end by *deadline*; httpx has no public way to give a backend to its pools."""
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if isinstance(pool, httpcore.ConnectionPool):
            pool._network_backend = _Backend(pool._network_backend, deadline)


def decompressed(response: httpx.Response) -> Iterator[bytes]:
    """The body in pieces of a bounded size.

    Raises:
        ValueError: it is not what its ``content-encoding`` says, or that is not one that was asked for.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in _PLAIN:
        yield from response.iter_raw()
        return
    if encoding not in _PACKED:
        raise ValueError(f"its content-encoding is {encoding[:80]!r}, and {ACCEPTED} are supported")
    unpacker = None
    try:
        for piece in response.iter_raw():
            if unpacker is None:
                unpacker = zlib.decompressobj(_window_bits(encoding, piece))
            rest = piece
            while rest and not unpacker.eof:
                yield unpacker.decompress(rest, _PIECE_BYTES)
                rest = unpacker.unconsumed_tail
        if unpacker is not None:
            yield unpacker.flush()
            if not unpacker.eof:
                raise ValueError("its compressed body ends too early")
    except zlib.error as problem:
        raise ValueError(f"its body cannot be decompressed: {problem}") from problem


def _window_bits(encoding: str, start: bytes) -> int:
    """Gzip or zlib; or what some servers call deflate, which has the header of neither."""
    is_bare = encoding == "deflate" and (start[0] & 0x0F != 8 or int.from_bytes(start[:2], "big") % 31)
    return -zlib.MAX_WBITS if is_bare else zlib.MAX_WBITS | 32
