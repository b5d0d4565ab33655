"""Bytes to and from a server: over a socket, or over TLS inside another channel.

trio's own streams are general, which costs: a checkpoint on every send and receive, a conflict detector, and
``SSLStream``'s retry machinery take about 60 µs a request. Here a send goes straight to the kernel and only waits when
its buffer is full, and a receive waits first (a response is never there yet). One task uses a channel at a time.
"""

import contextlib
import select
import socket
import ssl
from typing import Any, Protocol

import trio

READ_BYTES = 256 * 1024
_TLS_RECORDS_BYTES = 64 * 1024


class Channel(Protocol):
    """A two-way byte stream."""

    sent_anything: bool
    """Whether a byte of the current request may have been sent; the connection resets this before each request."""

    async def send(self, data: bytes) -> None:
        """Send all of *data*; waits only when the kernel's buffer is full."""

    async def receive(self) -> bytes:
        """The next bytes; empty at the end of the stream."""

    def receive_nowait(self) -> bytes | None:
        """The bytes that are there; None if there are none, empty at the end of the stream. Never waits."""

    def is_stale(self) -> bool:
        """Whether the other side closed an idle channel, or sent something on it. Never waits."""

    def close(self) -> None:
        """Close the socket at once; a task that waits on it gets ``trio.ClosedResourceError``."""


class SocketChannel:
    """A connected TCP socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._closed = False
        self.sent_anything = False

    @classmethod
    def take_over(cls, stream: trio.SocketStream) -> "SocketChannel":
        """Use the socket that trio connected."""
        return cls(socket.socket(fileno=stream.socket.detach()))

    async def send(self, data: bytes) -> None:
        """Send all of *data*."""
        if self._closed:
            raise trio.ClosedResourceError
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        self.sent_anything = self.sent_anything or sent > 0
        if sent == len(data):
            return
        rest = memoryview(data)[sent:]
        while rest:
            await trio.lowlevel.wait_writable(self._socket)
            try:
                sent = self._socket.send(rest)
            except BlockingIOError:
                continue
            self.sent_anything = True
            rest = rest[sent:]

    async def receive(self) -> bytes:
        """Wait for bytes and return them."""
        while True:
            if self._closed:
                raise trio.ClosedResourceError
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(READ_BYTES)
            except BlockingIOError:
                continue

    def receive_nowait(self) -> bytes | None:
        """The bytes in the kernel's buffer; None if there are none, empty at the end of the stream."""
        try:
            return self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:  # whatever it is: nothing will come any more
            return b""

    def is_stale(self) -> bool:
        """Whether there is anything to read: on an idle plain connection that is its end or a protocol violation."""
        return self.has_input() and self.receive_nowait() is not None

    def has_input(self) -> bool:
        """Whether there is something to receive, be it the end. To receive in vain takes three times as long."""
        return self._closed or bool(self._poll.poll(0))

    def close(self) -> None:
        """Close the socket; safe to repeat."""
        if not self._closed:
            self._closed = True
            trio.lowlevel.notify_closing(self._socket)
            with contextlib.suppress(OSError):  # an error of the connection can show up here; the descriptor is free
                self._socket.close()


class TlsChannel:
    """TLS over another channel, through a pair of memory buffers."""

    def __init__(self, inner: "SocketChannel | TlsChannel", context: ssl.SSLContext, server_hostname: str) -> None:
        self._inner = inner
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        self._ended = False
        self._first_bytes = b""

    @property
    def sent_anything(self) -> bool:
        """Whether a byte of the current request may have been sent."""
        return self._inner.sent_anything

    @sent_anything.setter
    def sent_anything(self, value: bool) -> None:
        self._inner.sent_anything = value

    @property
    def gave_http(self) -> bool:
        """Whether the other side began like an HTTP server without TLS."""
        return self._first_bytes.startswith(b"HTTP/")

    def certificate(self) -> dict[str, Any]:
        """The other side's certificate; only after a handshake that verified it."""
        return dict(self._tls.getpeercert() or {})

    async def handshake(self) -> None:
        """Do the TLS handshake, which checks the server's certificate.

        Raises:
            ssl.SSLError: the certificate is not valid, or the other side does not use TLS.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except ssl.SSLError:
                await self._flush()  # sends the alert, so that the server's log says why
                raise
            else:
                await self._flush()
                return

    async def send(self, data: bytes) -> None:
        """Encrypt and send all of *data*."""
        written = self._tls.write(data)
        while written < len(data):  # OpenSSL accepts one batch of records at a time
            written += self._tls.write(memoryview(data)[written:])
        await self._inner.send(self._outgoing.read())

    async def receive(self) -> bytes:
        """The next decrypted bytes; empty at the end, with or without a close_notify: HTTP has its own lengths."""
        while True:
            # A read takes a whole record, so nothing is left of the last one; to find that out by reading costs more.
            if self._incoming.pending or self._ended:
                decrypted = self._read_decrypted()
                if decrypted is not None:
                    return decrypted
            if self._outgoing.pending:  # a key update requires a response
                await self._flush()
            self._feed(await self._inner.receive())

    def receive_nowait(self) -> bytes | None:
        """The bytes that can be decrypted without waiting; None if there are none, empty at the end."""
        received = self._inner.receive_nowait()
        if received is None:
            return None
        self._feed(received)
        return self._read_decrypted()

    def is_stale(self) -> bool:
        """Whether the other side closed the channel or sent data; session tickets that arrive late are no data."""
        try:
            return self.has_input() and self.receive_nowait() is not None
        except ssl.SSLError:
            return True

    def has_input(self) -> bool:
        """Whether there is something to receive, which need not be a whole record."""
        return self._inner.has_input()

    def close(self) -> None:
        """Close without a close_notify; HTTP's lengths show the server that nothing is missing."""
        self._inner.close()

    def _read_decrypted(self) -> bytes | None:
        try:
            first = self._tls.read(_TLS_RECORDS_BYTES)
        except ssl.SSLWantReadError:
            return b"" if self._ended else None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        if not first or not self._incoming.pending:
            return first
        pieces = [first]  # a record has 16 KiB at most: collect all that one read of the socket returned
        try:
            while piece := self._tls.read(_TLS_RECORDS_BYTES):
                pieces.append(piece)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError, ssl.SSLEOFError):
            pass  # the next call returns the end of the stream
        return b"".join(pieces)

    async def _flush(self) -> None:
        if pending := self._outgoing.read():
            await self._inner.send(pending)

    async def _fill(self) -> None:
        self._feed(await self._inner.receive())

    def _feed(self, received: bytes) -> None:
        if received:
            self._first_bytes = self._first_bytes or received[:5]
            self._incoming.write(received)
        else:
            self._ended = True
            self._incoming.write_eof()
