"""The ASGI application: reads requests, hands them to the handler chain, writes responses."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import unquote

import trio
from attrs import define

from trio_sched.daemon.serving.connections.connection import STATE_KEY, Connection
from trio_sched.daemon.serving.limits import (
    BODY_SECONDS,
    HEADER_COPIES,
    MAX_BODY_BYTES,
    MAX_COUNTED_BYTES,
    RESPONSE_SECONDS,
    SEND_PIECE_BYTES,
    SEND_SECONDS,
)
from trio_sched.daemon.serving.messages import Handler, Request, Response, plain, refusal
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.go.text import printable
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Hold = Callable[[int], None]

_CACHE_CONTROL: Final = (b"cache-control", b"no-cache, private")
_LENGTH_BELOW: Final = 2048
"""Go tells the length of a body only if it fits its buffer, and sends larger ones in chunks."""
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ORIGIN: Final = re.compile(rb"https?://[^/?]*", re.IGNORECASE)
_LOGGED_TARGET: Final = 200


class _TooLarge(Exception):
    """The body is larger than any that is read here."""


class _Gone(Exception):
    """The client has gone before its request was complete."""


@define(eq=False)
class Application:
    """What Hypercorn calls for every request."""

    handler: Handler

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        connection: Connection = scope["state"][STATE_KEY]
        with connection.request() as hold:
            hold(HEADER_COPIES * sum(len(name) + len(value) for name, value in scope["headers"]))
            hold(HEADER_COPIES * (len(scope["raw_path"]) + len(scope["query_string"])))
            try:
                await connection.turn()
            except trio.TooSlowError:
                connection.drop()
                return
            await self._answer(scope, receive, send, connection, hold)
        await connection.request_is_answered()

    async def _answer(self, scope: Message, receive: Receive, send: Send, connection: Connection, hold: Hold) -> None:
        begun = time.perf_counter()
        is_websocket = scope["type"] == "websocket"
        try:
            with trio.fail_after(BODY_SECONDS):
                body = b"" if is_websocket else await _read_body(receive, hold)
        except _Gone:
            return
        except trio.TooSlowError:
            connection.drop()
            return
        except _TooLarge:
            response = refusal("http: request body too large", 413)
            async with trio.open_nursery() as nursery:  # Hypercorn stalls if nobody takes what still arrives
                nursery.start_soon(_discard, receive)
                await _respond(send, response, with_body=True)
                nursery.cancel_scope.cancel()
            connection.drop()
            return
        if is_websocket:
            await receive()
        request = _request(scope, body, connection)
        response = (
            plain("400 Bad Request", status=400, nosniff=False) if request is None else await self._handle(request)
        )
        hold(min(len(response.body) + sum(map(len, response.rest)), MAX_COUNTED_BYTES))
        if response.closes and scope.get("http_version") == "2":
            connection.is_ending = True
        with_body = scope.get("method") != "HEAD"
        try:
            with trio.move_on_after(RESPONSE_SECONDS) as limit:
                await _respond(send, response, with_body=with_body, is_websocket=is_websocket)
            if not limit.cancelled_caught and response.stream is not None and not is_websocket and with_body:
                limit = await _stream(receive, send, response.stream)
            if limit.cancelled_caught:
                connection.drop()
        finally:  # also when the client has gone, which it may do when it has what it wants
            if request is not None and log.isEnabledFor(V3):
                _log_access(request, response, time.perf_counter() - begun)

    async def _handle(self, request: Request) -> Response:
        try:
            return await self.handler(request)
        except Exception as error:  # one bad request must cost nobody else anything
            log.error(
                "request failed",
                extra={"verb": request.method, "path": request.path[:_LOGGED_TARGET], "err": describe_error(error)},
            )
            return refusal("This request caused apiserver to panic. Look in the logs for details.", 500)


def _request(scope: Message, body: bytes, connection: Connection) -> Request | None:
    """None if the target is malformed."""
    path: bytes = scope["raw_path"]
    if path[:1] != b"/":
        path = _ORIGIN.sub(b"", path, count=1) or b"/"
    if _BAD_ESCAPE.search(path):
        return None
    query: bytes = scope["query_string"]
    target = path + b"?" + query if query else path
    client = scope.get("client")
    return Request(
        method=scope.get("method", "GET"),
        path=unquote(path.decode("ascii", "replace"), errors="replace"),
        target=target.decode("ascii", "replace"),
        query=query.decode("ascii", "replace"),
        headers=[(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]],
        body=body,
        client=client[0] if client else "",
        certificates=connection.tls.peer_certificates(),
        is_http2=scope.get("http_version") == "2",
        is_websocket=scope["type"] == "websocket",
        on_authenticated=connection.authenticated,
    )


async def _read_body(receive: Receive, hold: Hold) -> bytes:
    pieces, length = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        piece = message.get("body", b"")
        length += len(piece)
        if length > MAX_BODY_BYTES:
            raise _TooLarge
        hold(len(piece))
        pieces.append(piece)
        if not message.get("more_body"):
            return b"".join(pieces)


async def _discard(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _respond(send: Send, response: Response, *, with_body: bool, is_websocket: bool = False) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
    headers.insert(0, _CACHE_CONTROL)
    if len(response.body) <= _LENGTH_BELOW and not response.rest and response.stream is None:
        headers.append((b"content-length", str(len(response.body)).encode()))
    kind = "websocket.http.response" if is_websocket else "http.response"
    await send({"type": f"{kind}.start", "status": response.status, "headers": headers})
    if response.stream is not None and with_body and not is_websocket:
        return
    pieces = (response.body, *response.rest) if with_body else (b"",)
    for piece in pieces[:-1]:
        await send({"type": f"{kind}.body", "body": piece, "more_body": True})
    await send({"type": f"{kind}.body", "body": pieces[-1]})


async def _stream(receive: Receive, send: Send, stream: AsyncGenerator[bytes, None]) -> trio.CancelScope:
    """Send what comes out of *stream* until it ends, or the client is gone.

    Returns:
        The scope of the last piece: it was cancelled if the client did not take it in time.
    """
    limit = trio.CancelScope()
    async with aclosing(stream), trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
        async for text in stream:
            for begin in range(0, len(text), SEND_PIECE_BYTES):
                limit = await _send_in_time(send, text[begin : begin + SEND_PIECE_BYTES], more=True)
                if limit.cancelled_caught:
                    nursery.cancel_scope.cancel()
                    return limit
        nursery.cancel_scope.cancel()
    # Also if the client is gone, which changes nothing; not above, because it looks as if it were gone then.
    return await _send_in_time(send, b"", more=False)


async def _send_in_time(send: Send, piece: bytes, *, more: bool) -> trio.CancelScope:
    with trio.move_on_after(SEND_SECONDS) as limit:
        await send({"type": "http.response.body", "body": piece, "more_body": more})
    return limit


async def _cancel_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    await _discard(receive)
    scope.cancel()


def _log_access(request: Request, response: Response, seconds: float) -> None:
    fields = {
        "verb": request.method,
        "URI": printable(request.target[:_LOGGED_TARGET]),
        "latency": f"{seconds * 1000:.3f}ms",
        "userAgent": request.header("user-agent")[:_LOGGED_TARGET],
        "srcIP": request.client,
        "resp": response.status,
    }
    log.log(V3, "HTTP", extra=fields)
