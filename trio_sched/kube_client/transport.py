"""Adapters between the pool and httpx, in both directions.

``httpx.AsyncClient`` over :class:`PooledTransport` is for rare requests. Frequent requests are sent by a
:class:`Caller` directly, without the 230 µs that the objects of httpx cost a request; and httpx takes a tenth of a
second to import, so this module is imported when it is needed. For an API server in the same process there is no pool
but an httpx transport, which :class:`HttpxCaller` adapts.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx
import trio

from trio_sched.kube_client.credentials.credentials import Credentials
from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.kube_client.http import request_log
from trio_sched.kube_client.http.caller import ByteStream
from trio_sched.kube_client.http.http1 import Headers, Reply
from trio_sched.kube_client.http.observer import ObserveRequest
from trio_sched.kube_client.http.pool import Pool, ResponseStream
from trio_sched.kube_client.http.rate_limit import TokenBucket

CLOSE_SECONDS = 1.0
_SET_BY_POOL = frozenset({b"host", b"connection", b"content-length", b"transfer-encoding", b"keep-alive"})


def http_client(
    sender: Pool | httpx.AsyncBaseTransport,
    server: str,
    headers: bytes,
    credentials: Credentials,
    limiter: TokenBucket,
    observe: ObserveRequest,
    check_write: Callable[[], None] | None = None,
) -> httpx.AsyncClient:
    """An httpx client for *server* that sends through *sender*.

    Args:
        sender: the pool, or a transport that stays open when the client is closed.
        server: the base URL.
        headers: header lines of every request.
        credentials: likewise of every request, unless it has some of its own.
        limiter: the rate limit, for all requests but watches.
        observe: is told about every request.
        check_write: called right before each request that is no GET is sent; raises an error to prevent it.
    """
    return httpx.AsyncClient(
        transport=PooledTransport(sender) if isinstance(sender, Pool) else BorrowedTransport(sender),
        base_url=server,
        headers=_pairs(headers),
        auth=RateLimitedAuth(credentials, limiter, observe, check_write),
        timeout=None,
    )


class PooledTransport(httpx.AsyncBaseTransport):
    """The pool as an httpx transport.

    Requests whose query contains ``watch`` are streamed over a connection of their own; all others are read to their
    end before httpx gets the response, so that their connection is idle again at once.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request*.

        Raises:
            httpx.TransportError: there is no complete response; the cause is a ``ConnectionFailed``.
        """
        method, target = request.method.encode("ascii"), request.url.raw_path
        headers = b"".join(
            name + b": " + value + b"\r\n" for name, value in request.headers.raw if name.lower() not in _SET_BY_POOL
        )
        body = await request.aread()
        try:
            if request.url.params.get("watch", "0") not in ("0", "false", ""):
                return await self._streamed(method, target, headers, body)
            reply = await self._pool.request(method, target, headers, body)
        except ConnectionFailed as problem:
            raise httpx.ReadError(str(problem), request=request) from problem
        kept = [(name, value) for name, value in reply.headers if name not in (b"content-encoding", b"content-length")]
        return httpx.Response(reply.status, headers=kept, content=reply.body)

    async def _streamed(self, method: bytes, target: bytes, headers: bytes, body: bytes) -> httpx.Response:
        opened = self._pool.stream(method, target, headers, body)
        stream = await opened.__aenter__()
        return httpx.Response(stream.status, headers=stream.headers, stream=_HttpxStream(opened, stream))


class _HttpxStream(httpx.AsyncByteStream):
    """The body of a streamed response, in httpx's terms."""

    def __init__(self, opened: AbstractAsyncContextManager[ResponseStream], stream: ResponseStream) -> None:
        self._opened = opened
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while piece := await self._stream.receive():
                yield piece
        except ConnectionFailed as problem:
            raise httpx.ReadError(str(problem)) from problem

    async def aclose(self) -> None:
        await self._opened.__aexit__(None, None, None)


class BorrowedTransport(httpx.AsyncBaseTransport):
    """A transport that is owned elsewhere: it stays open when the client over it is closed."""

    def __init__(self, owned_elsewhere: httpx.AsyncBaseTransport) -> None:
        self._transport = owned_elsewhere

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Forward *request*."""
        return await self._transport.handle_async_request(request)


class RateLimitedAuth(httpx.Auth):
    """Applies credentials and rate limit to requests that go through httpx, and counts these."""

    def __init__(
        self,
        credentials: Credentials,
        limiter: TokenBucket,
        observe: ObserveRequest,
        check_write: Callable[[], None] | None = None,
    ) -> None:
        self._credentials = credentials
        self._limiter = limiter
        self._observe = observe
        self._check_write = check_write

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Send *request* when a token is there, with the credentials as they are then."""
        waited = await self._limiter.take() if "watch" not in request.url.params else 0.0
        added = self._credentials.current() or await self._credentials.refresh()
        if "authorization" in request.headers:  # the request has credentials of its own
            added = [(name, value) for name, value in added if name != b"Authorization"]
        request.headers = httpx.Headers([*request.headers.raw, *added])
        if self._check_write is not None and request.method != "GET":
            self._check_write()
        sent_at = trio.current_time()
        method, path = request.method.encode(), request.url.raw_path
        body = _sent_body(request)
        record = request_log.begin(str(request.url), method, path, _lines(request.headers), body)
        status = received = 0
        try:
            response = yield request
            status, received = response.status_code, _received(response)
        finally:
            self._observe(method, status, sent_at, waited=waited, sent=len(body), received=received)
        if record is not None:
            record.answered(response.status_code, response.headers.raw)
        if response.status_code == 401:
            await self._credentials.refused(sent_at)


class HttpxCaller:
    """A :class:`Caller` over any httpx transport.

    Args:
        transport: for instance an API server in this process.
        server: scheme, host and port, for the requests' URLs.
        request_seconds: how long a whole request may take; for a stream, until its headers are in.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, server: str, *, request_seconds: float) -> None:
        self._transport = transport
        self._server = server
        self._request_seconds = request_seconds
        self._origin = httpx.URL(server).copy_with(raw_path=b"/")

    async def request(self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b"") -> Reply:
        """Send a request, return the whole response.

        Raises:
            ConnectionFailed: there is no complete response.
        """
        try:
            with trio.fail_after(self._request_seconds):
                response = await self._transport.handle_async_request(self._request(method, target, headers, body))
                content = await response.aread()
        except (httpx.TransportError, trio.TooSlowError) as problem:
            raise self._failure(problem) from problem
        return Reply(response.status_code, _lower(response), content)

    @asynccontextmanager
    async def stream(
        self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b""
    ) -> AsyncGenerator[ByteStream, None]:
        """Send a request, read the response piece by piece.

        Raises:
            ConnectionFailed: there is no response.
        """
        try:
            with trio.fail_after(self._request_seconds):
                response = await self._transport.handle_async_request(self._request(method, target, headers, body))
        except (httpx.TransportError, trio.TooSlowError) as problem:
            raise self._failure(problem) from problem
        pieces = _ResponsePieces(self, response)
        try:
            yield pieces
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
                await pieces.aclose()
                await response.aclose()

    def _request(self, method: bytes, target: bytes, headers: bytes, body: bytes) -> httpx.Request:
        url = self._origin.copy_with(raw_path=target)
        return httpx.Request(method.decode(), url, headers=_pairs(headers), content=body)

    def _failure(self, problem: httpx.TransportError | trio.TooSlowError) -> ConnectionFailed:
        if isinstance(problem, trio.TooSlowError):
            text = f"context deadline exceeded: no complete response within {self._request_seconds:g} s"
        else:
            text = str(problem) or type(problem).__name__
        return ConnectionFailed(
            self._server,
            text,
            may_have_reached_server=not isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout),
            timed_out=isinstance(problem, httpx.TimeoutException | trio.TooSlowError),
        )


class _ResponsePieces:
    """An httpx response as a :class:`ByteStream`."""

    def __init__(self, caller: HttpxCaller, response: httpx.Response) -> None:
        self._caller = caller
        # Not aiter_raw: a transport in this process may return a response that counts as read already.
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._pieces = aiter(response.stream)
        self.status = response.status_code
        self.headers = _lower(response)

    async def receive(self) -> bytes:
        try:
            async for piece in self._pieces:
                if piece:
                    return piece
        except httpx.TransportError as problem:
            raise self._caller._failure(problem) from problem
        return b""

    async def aclose(self) -> None:
        """Close the transport's generator now and not when it is garbage collected."""
        if isinstance(self._pieces, AsyncGenerator):
            await self._pieces.aclose()


def _pairs(headers: bytes) -> Headers:
    """The header lines *headers* one by one."""
    return [(name, value) for name, _, value in (line.partition(b": ") for line in headers.split(b"\r\n") if line)]


def _lines(headers: httpx.Headers) -> bytes:
    return b"\r\n".join(name + b": " + value for name, value in headers.raw)


def _sent_body(request: httpx.Request) -> bytes:
    """The body if it is known as a whole; one that is streamed is not logged."""
    try:
        return request.content
    except httpx.RequestNotRead:
        return b""


def _received(response: httpx.Response) -> int:
    """The bytes of the body if it was read as a whole; 0 of one that is streamed."""
    try:
        return len(response.content)
    except httpx.ResponseNotRead:
        return 0


def _lower(response: httpx.Response) -> Headers:
    return [(name.lower(), value) for name, value in response.headers.raw]
