"""The ASGI application: reads requests, hands them to the handler chain, writes responses."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Final
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
)
from trio_sched.daemon.serving.messages import Handler, Request, Response, plain, refusal
from trio_sched.daemon.serving.sending import Message, Receive, Send, send_response, send_stream, until_gone
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.go.text import printable
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)

Hold = Callable[[int], None]

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
                nursery.start_soon(until_gone, receive)
                await send_response(send, response, with_body=True)
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
                await send_response(send, response, with_body=with_body, is_websocket=is_websocket)
            if not limit.cancelled_caught and response.stream is not None and not is_websocket and with_body:
                limit = await send_stream(receive, send, response.stream)
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
