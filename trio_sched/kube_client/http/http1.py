"""One HTTP/1.1 connection: a request out, a response in, again and again.

The parser is llhttp (httptools); its callbacks are methods of the connection, so that no object is created per request
but the reply.
"""

import zlib
from typing import Final, NamedTuple

import httptools
import trio

from trio_sched.go.errors import EOF, MALFORMED_RESPONSE, UNEXPECTED_EOF
from trio_sched.kube_client.http.channel import Channel

MAX_HEADER_BYTES = 1024 * 1024
MAX_BODY_BYTES = 1024 * 1024 * 1024
"""The largest response, decompressed. A page of 500 objects, each as large as an API server can store, has 750 MiB."""
_STEP_BYTES = 1024 * 1024
"""Compressed bytes that are taken, and decompressed ones that are made, before other tasks run."""

Headers = list[tuple[bytes, bytes]]


class Reply(NamedTuple):
    """A complete response. Header names are lower case; the body is decompressed."""

    status: int
    headers: Headers
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """The value of header *name* (lower case); None if there is none."""
        return next((value for key, value in self.headers if key == name), None)


class ProtocolViolation(Exception):
    """The response is not HTTP/1.1, or incomplete."""


class BodyTooLarge(ProtocolViolation):
    """The body of the response is larger than is accepted; another try would be no better."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the response is larger than {max_bytes} bytes")


class Http1Connection:
    """A channel with a parser; used by one task at a time.

    Attributes:
        channel: the bytes.
        requests: how many were sent so far; after the first one the connection counts as reused.
        deadline: when the pool's watchdog closes it, in ``trio.current_time()``.
        timed_out: whether the watchdog closed it.
        idle_since: when the last response was complete.
        reusable: whether another request may follow the last response.
        generation: of the certificates it was opened with; see ``TlsSource``.
        received_anything: whether a byte of the current response has arrived.
        heard_at: when the other side was heard last; kept for streams only.
        is_lost: whether it was closed because it was silent while others worked.
    """

    __slots__ = (
        "_bodiless",
        "_body",
        "_complete",
        "_head_complete",
        "_headers",
        "_parser",
        "_received_bytes",
        "_until_close",
        "channel",
        "deadline",
        "generation",
        "heard_at",
        "idle_since",
        "is_lost",
        "received_anything",
        "requests",
        "reusable",
        "status",
        "timed_out",
    )

    def __init__(self, channel: Channel, *, generation: int = 0) -> None:
        self.channel = channel
        self._parser = httptools.HttpResponseParser(self)
        self._headers: Headers = []
        self._body: list[bytes] = []
        self._head_complete = False
        self._complete = True
        self._until_close = False
        self._received_bytes = 0
        self._bodiless = False
        self.status = 0
        self.requests = 0
        self.deadline = 0.0
        self.idle_since = 0.0
        self.timed_out = False
        self.reusable = True
        self.generation = generation
        self.received_anything = False
        self.heard_at = 0.0
        self.is_lost = False

    async def exchange(self, request: bytes, max_body_bytes: int | None = None) -> Reply:
        """Send *request* (head and body in one piece) and return the whole response.

        Args:
            request: what is sent.
            max_body_bytes: of the response, decompressed; None for `MAX_BODY_BYTES`.
        """
        limit = MAX_BODY_BYTES if max_body_bytes is None else max_body_bytes
        await self._begin(request)
        receive, feed = self.channel.receive, self._feed
        while not self._complete:
            feed(await receive())
            if self._received_bytes > MAX_HEADER_BYTES + limit:
                raise BodyTooLarge(limit)
        headers = self._headers
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        for name, value in headers:
            if name == b"content-encoding" and value.lower() == b"gzip":
                body = await gunzip(body, limit)
        return Reply(self.status, headers, body)

    async def start(self, request: bytes) -> tuple[int, Headers]:
        """Send *request*, return status and headers as soon as they are there; :meth:`receive_body` reads the body."""
        await self._begin(request)
        while not self._head_complete:
            self._feed(await self.channel.receive())
        return self.status, self._headers

    async def receive_body(self) -> bytes:
        """The next bytes of the body as sent (not decompressed); empty when it is complete."""
        received_bytes = 0
        while not self._body and not self._complete:
            data = await self.channel.receive()
            self._feed(data)
            received_bytes += len(data)
            if received_bytes > MAX_HEADER_BYTES and not self._body:
                raise ProtocolViolation("http: suspiciously long trailer after chunked body")
        body, self._body = self._body, []
        return body[0] if len(body) == 1 else b"".join(body)

    @property
    def is_complete(self) -> bool:
        """Whether the last response was read to its end."""
        return self._complete

    @property
    def sent_anything(self) -> bool:
        """Whether a byte of the current request may have been sent."""
        return self.channel.sent_anything

    def is_stale(self) -> bool:
        """Whether the server closed the connection while it was idle."""
        return self.channel.is_stale()

    def close(self) -> None:
        """Close the channel, and let go of the parser, which refers to this connection.

        Else both would stay in memory, with the buffers of TLS, until the garbage collector looks for such cycles,
        which it seldom does among objects that have been there for long.
        """
        self.reusable = False
        self._parser = _NO_PARSER
        self.channel.close()

    def lose(self) -> None:
        """Close it, because it is silent while others work."""
        self.is_lost = True
        self.close()

    async def _begin(self, request: bytes) -> None:
        self.requests += 1
        self.received_anything = False
        self._received_bytes = 0
        self._bodiless = request.startswith(b"HEAD ")
        self._headers = []
        self._head_complete = self._complete = self._until_close = False
        self.channel.sent_anything = False
        await self.channel.send(request)

    def _feed(self, data: bytes) -> None:
        if not data:
            self.reusable = False
            if self._head_complete and self._until_close:
                self._complete = True
                return
            raise ProtocolViolation(UNEXPECTED_EOF if self.received_anything else EOF)
        self.received_anything = True
        self._received_bytes += len(data)
        if self._received_bytes > MAX_HEADER_BYTES and not self._head_complete:
            raise ProtocolViolation(f"net/http: server response headers exceeded {MAX_HEADER_BYTES} bytes; aborted")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as problem:
            raise ProtocolViolation(f"{MALFORMED_RESPONSE}: it switches to another protocol unasked") from problem
        except httptools.HttpParserError as problem:
            if self._complete:  # what is wrong follows the response: whatever that is, it is no answer
                self.reusable = False
                return
            raise ProtocolViolation(f"{MALFORMED_RESPONSE}: {problem}") from problem

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        """A response begins: the one that was asked for, or one after it, which must not change that one."""
        if self._complete:
            raise ProtocolViolation("a response without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header line, or a trailer after a chunked body."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Status and headers are complete."""
        self.status = status = self._parser.get_status_code()
        if status < 200:  # 100 Continue and the like: the response is yet to come
            return
        self._head_complete = True
        names = {name for name, _ in self._headers}
        self._until_close = b"content-length" not in names and b"transfer-encoding" not in names
        self.reusable = self._parser.should_keep_alive()
        if self._bodiless:  # the parser does not know the method, and waits for the body that the headers describe
            self._complete = True
            self.reusable = False

    def on_body(self, body: bytes) -> None:
        """A piece of the body, without chunk framing."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """The response is complete."""
        if self._head_complete:
            self._complete = True
        else:
            self._headers = []


_NO_PARSER: Final = httptools.HttpResponseParser(object())
"""The parser of connections that are closed."""


async def gunzip(body: bytes, max_bytes: int) -> bytes:
    """Decompress a whole gzip body.

    Other tasks run after every step, so that what takes long can be cancelled.

    Raises:
        BodyTooLarge: it is larger than *max_bytes*.
        ProtocolViolation: it is not gzip, or incomplete.
    """
    decompressor = zlib.decompressobj(wbits=31)
    pieces: list[bytes] = []
    size = 0
    try:
        for start in range(0, len(body), _STEP_BYTES):
            data = body[start : start + _STEP_BYTES]
            is_full = True
            while is_full:
                piece = decompressor.decompress(data, _STEP_BYTES)
                data = decompressor.unconsumed_tail
                pieces.append(piece)
                size += len(piece)
                if size > max_bytes:
                    raise BodyTooLarge(max_bytes)
                is_full = len(piece) == _STEP_BYTES
                if is_full:
                    await trio.lowlevel.checkpoint()
    except zlib.error as problem:
        raise ProtocolViolation("gzip: invalid header or checksum") from problem
    if not decompressor.eof:
        raise ProtocolViolation(UNEXPECTED_EOF)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
