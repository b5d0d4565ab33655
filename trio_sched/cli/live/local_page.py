"""A live page for the browser on this machine: of a cluster that is followed here, or asked of a running trio-sched.

A browser has no credentials for either; they are added here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

from attrs import define, frozen

from trio_sched.daemon.serving.messages import Header, Request, Response, not_found, refusal
from trio_sched.daemon.serving.sending import Message, Receive, Send, send_response, send_stream
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import ApiError, KubeClientError
from trio_sched.kube_client.http.caller import ByteStream
from trio_sched.simulator.endpoints.serve import live

Answer = Callable[[Request, AsyncExitStack], Awaitable[Response]]
"""Answers a request below ``/ui``; what it opens lasts as long as its response."""

_STREAM: Final = "/ui/stream"
_PASSED: Final = frozenset(
    {"content-type", "content-security-policy", "etag", "location", "x-content-type-options"},
)
"""Headers of responses that the browser gets; bodies are decompressed, and those of streams not compressed."""


@define(eq=False)
class LocalPage:
    """An ASGI application: GET requests below ``/SECRET/ui``.

    The secret keeps out other users of this machine, and the name of the host other sites that a browser has open.
    """

    answer: Answer
    secret: str
    hosts: frozenset[str] = frozenset()
    """Values of the header ``Host`` that are answered; known once the port is."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await live(receive, send)
            return
        if scope["type"] != "http":
            return
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        path = scope["path"].removeprefix(f"/{self.secret}")
        query = scope["query_string"].decode("latin-1")
        request = Request(method=scope["method"], path=path, target=path, query=query, headers=headers)
        is_known = request.header("host") in self.hosts and path != scope["path"]
        async with AsyncExitStack() as resources:
            if not is_known or not (path == "/ui" or path.startswith("/ui/")):
                response = not_found()
            elif request.method != "GET":
                response = refusal("405 method not allowed", 405)
            else:
                response = await self.answer(request, resources)
            await send_response(send, response, with_body=True)
            if response.stream is not None:
                await send_stream(receive, send, response.stream)


@frozen
class SchedulerProxy:
    """Asks the scheduler that *client* is connected to."""

    client: KubeClient

    async def __call__(self, request: Request, resources: AsyncExitStack) -> Response:
        """The scheduler's response, or why there is none."""
        target = f"{request.path}?{request.query}" if request.query else request.path
        if not target.isascii() or not target.isprintable():
            return not_found()
        try:
            if request.path == _STREAM:
                stream = await resources.enter_async_context(self.client.stream(target.encode()))
                return Response(headers=_passed(stream.headers), stream=_pieces(stream))
            reply = await self.client.request(b"GET", target.encode())
        except ApiError as error:
            return refusal(str(error), error.code)
        except TrioSchedError as error:
            return refusal(str(error), 502)
        return Response(status=reply.status, headers=_passed(reply.headers), body=reply.body)


async def _pieces(stream: ByteStream) -> AsyncGenerator[bytes, None]:
    try:
        while piece := await stream.receive():
            yield piece
    except KubeClientError:
        return  # the browser comes again by itself


def _passed(headers: list[tuple[bytes, bytes]]) -> list[Header]:
    named = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    return [(name, value) for name, value in named if name in _PASSED]
