"""Sends responses to an ASGI server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from typing import Any, Final

import trio

from trio_sched.daemon.serving.limits import SEND_PIECE_BYTES, SEND_SECONDS
from trio_sched.daemon.serving.messages import Response

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_CACHE_CONTROL: Final = (b"cache-control", b"no-cache, private")
_LENGTH_BELOW: Final = 2048
"""Go tells the length of a body only if it fits its buffer, and sends larger ones in chunks."""


async def send_response(send: Send, response: Response, *, with_body: bool, is_websocket: bool = False) -> None:
    """Send all of *response*, or of one that is a stream what comes before the first piece."""
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


async def send_stream(receive: Receive, send: Send, stream: AsyncGenerator[bytes, None]) -> trio.CancelScope:
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
    await until_gone(receive)
    scope.cancel()


async def until_gone(receive: Receive) -> None:
    """Take what a client still sends, until it is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
