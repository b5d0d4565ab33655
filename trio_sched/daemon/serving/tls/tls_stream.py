"""TLS over a trio stream, by pyOpenSSL: Python's own module cannot ask for client certificates without verifying them.

A certificate that nobody knows is a 401 with a body, not a broken handshake.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import trio
from attrs import define, field
from OpenSSL import SSL

from trio_sched.daemon.serving.limits import (
    MAX_HANDSHAKE_BYTES,
    MAX_HELLO_BYTES,
    SEND_PIECE_BYTES,
    SEND_SECONDS,
    SILENCE_SECONDS,
)
from trio_sched.tracebacks import forget_tracebacks

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_READ_BYTES: Final = 16 * 1024
_PLAIN_HTTP: Final = (b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO")
_RECORD_HEADER_BYTES: Final = 5
_LENGTH_OF_MESSAGE: Final = slice(6, 9)
"""Where the length of a handshake stands in its first record; it can be missing there, but no client does that."""
_PLAIN_HTTP_ANSWER: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


@define(eq=False)
class TlsStream:
    """The server's side of a TLS connection; what Hypercorn needs of `trio.SSLStream`."""

    transport_stream: trio.SocketStream
    context: SSL.Context
    wait_turn: Callable[[], Awaitable[object]]
    """Called before each step of a handshake: a client that sends nothing costs nothing, and delays nobody."""
    hold: Callable[[int], object] = lambda _bytes: None
    """Called with the number of bytes that OpenSSL keeps until a handshake is done; negative: no longer."""
    _tls: SSL.Connection = field(init=False)
    _sending: trio.Lock = field(init=False, factory=trio.Lock)
    _is_closed: bool = field(init=False, default=False)
    _handshake_bytes: int = field(init=False, default=0)
    _opened_at: float = field(init=False, default=math.inf)

    def __attrs_post_init__(self) -> None:
        self._tls = SSL.Connection(self.context, None)
        self._tls.set_accept_state()

    @property
    def is_silent(self) -> bool:
        """Whether nothing has arrived although there was time for it."""
        return self._handshake_bytes == 0 and trio.current_time() > self._opened_at + SILENCE_SECONDS

    async def do_handshake(self) -> None:
        """Shake hands; a client that speaks plain HTTP is told so.

        Raises:
            trio.BrokenResourceError: the client is gone, or does not speak TLS.
        """
        self._opened_at = trio.current_time()
        await self._receive_first()
        while True:
            await self.wait_turn()
            try:
                self._tls.do_handshake()
            except SSL.WantReadError:
                await self._flush()
                await self._receive_more()
            except SSL.Error as error:
                await self._flush()  # the alert
                raise trio.BrokenResourceError("TLS handshake failed") from error
            else:
                await self._flush()
                self.hold(-self._handshake_bytes)
                return

    async def _receive_first(self) -> None:
        first = b""
        while len(first) < _RECORD_HEADER_BYTES:
            received = await self.transport_stream.receive_some(_READ_BYTES)
            if not received:
                raise trio.BrokenResourceError("EOF before the TLS handshake")
            first += received
        if first.startswith(_PLAIN_HTTP):
            await self._transmit(_PLAIN_HTTP_ANSWER)
            await self._end_politely()
            raise trio.BrokenResourceError("plain HTTP instead of TLS")
        if int.from_bytes(first[_LENGTH_OF_MESSAGE], "big") > MAX_HELLO_BYTES:
            raise trio.BrokenResourceError("no client says hello at such length")
        self._take(first)

    async def _end_politely(self) -> None:
        """Close so that the client can read the answer: unread bytes would turn the close into a reset."""
        await self.transport_stream.send_eof()
        with trio.move_on_after(1):
            for _ in range(16):
                if not await self.transport_stream.receive_some(_READ_BYTES):
                    return

    def selected_alpn_protocol(self) -> str | None:
        """``h2`` or ``http/1.1``; None if the client has offered nothing."""
        return self._tls.get_alpn_proto_negotiated().decode("ascii", "replace") or None

    def peer_certificates(self) -> tuple[Certificate, ...]:
        """What the client has presented, its own certificate first; none if it has none."""
        own = self._tls.get_peer_certificate(as_cryptography=True)
        if own is None:
            return ()
        issuers = self._tls.get_peer_cert_chain(as_cryptography=True) or []
        return (own, *(issuer for issuer in issuers if issuer != own))

    async def receive_some(self, max_bytes: int) -> bytes:
        """Up to *max_bytes* of what the client says; empty at the end.

        Raises:
            trio.BrokenResourceError: the connection broke, or what arrived is not TLS.
            trio.ClosedResourceError: this side has closed it.
        """
        while True:
            try:
                return self._tls.recv(max_bytes)
            except SSL.WantReadError:
                await self._flush()
                received = await self.transport_stream.receive_some(_READ_BYTES)
                if not received:
                    return b""
                self._tls.bio_write(received)
            except SSL.ZeroReturnError:
                return b""
            except SSL.Error as error:
                raise trio.BrokenResourceError("not TLS") from error

    async def send_all(self, data: bytes) -> None:
        """Send *data*; a client that takes nothing for too long is cut off.

        Raises:
            trio.BrokenResourceError: the connection broke, or the client did not read.
            trio.ClosedResourceError: this side has closed it.
        """
        for start in range(0, len(data), SEND_PIECE_BYTES):
            piece = data[start : start + SEND_PIECE_BYTES]
            while piece:
                try:
                    piece = piece[self._tls.send(piece) :]
                except SSL.WantReadError:
                    break  # cannot happen without renegotiation, which is off
                except SSL.Error as error:
                    raise trio.BrokenResourceError("TLS is broken") from error
            await self._flush()

    async def aclose(self) -> None:
        """Say goodbye if that can be done at once, and close."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if not self._sending.locked():
                self._tls.shutdown()
                await self._flush()
        except (SSL.Error, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            forget_tracebacks(error)
        finally:
            self.transport_stream.socket.close()

    def drop(self) -> None:
        """Close at once, whatever is under way."""
        self._is_closed = True
        self.transport_stream.socket.close()

    async def _receive_more(self) -> None:
        received = await self.transport_stream.receive_some(_READ_BYTES)
        if not received:
            raise trio.BrokenResourceError("EOF in the TLS handshake")
        self._take(received)

    def _take(self, received: bytes) -> None:
        self._handshake_bytes += len(received)
        if self._handshake_bytes > MAX_HANDSHAKE_BYTES:
            raise trio.BrokenResourceError("a TLS handshake without end")
        self.hold(len(received))
        self._tls.bio_write(received)

    async def _flush(self) -> None:
        """Send what OpenSSL has ready."""
        async with self._sending:
            pieces = []
            while True:
                try:
                    pieces.append(self._tls.bio_read(_READ_BYTES))
                except SSL.WantReadError:
                    break
            if pieces:
                await self._transmit(b"".join(pieces))

    async def _transmit(self, data: bytes) -> None:
        with trio.move_on_after(SEND_SECONDS) as limit:
            await self.transport_stream.send_all(data)
        if limit.cancelled_caught:
            self.drop()
            raise trio.BrokenResourceError(f"the client has taken nothing for {SEND_SECONDS:g} s")
