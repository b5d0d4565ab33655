"""The live page of a running trio-sched for a browser on this machine: adds the credentials that a browser has not."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Final

from attrs import define

from trio_sched.daemon.serving.messages import Header, Request, Response, not_found, refusal
from trio_sched.daemon.serving.sending import Message, Receive, Send, send_response, send_stream
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import ApiError, KubeClientError
from trio_sched.kube_client.http.caller import ByteStream
from trio_sched.simulator.endpoints.serve import live

_STREAM: Final = "/ui/stream"
_PASSED: Final = frozenset(
    {"content-type", "content-security-policy", "etag", "location", "x-content-type-options"},
)
"""Headers of responses that the browser gets; bodies are decompressed, and those of streams not compressed."""


@define(eq=False)
class PageProxy:
    """An ASGI application: GET requests below ``/SECRET/ui`` are made to the scheduler.

    The secret keeps out other users of this machine, and the name of the host other sites that a browser has open.
    """

    client: KubeClient
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
        query = scope["query_string"].decode("latin-1")
        request = Request(
            method=scope["method"], path=scope["path"], target=scope["path"], query=query, headers=headers
        )
        async with AsyncExitStack() as resources:
            response = await self._respond(request, resources)
            await send_response(send, response, with_body=True)
            if response.stream is not None:
                await send_stream(receive, send, response.stream)

    async def _respond(self, request: Request, resources: AsyncExitStack) -> Response:
        path = request.path.removeprefix(f"/{self.secret}")
        is_ours = request.header("host") in self.hosts and path != request.path
        if not is_ours or not (path == "/ui" or path.startswith("/ui/")):
            return not_found()
        if request.method != "GET":
            return refusal("405 method not allowed", 405)
        target = f"{path}?{request.query}" if request.query else path
        try:
            encoded = target.encode("ascii")
        except UnicodeEncodeError:
            return not_found()
        try:
            return await (self._stream(encoded, resources) if path == _STREAM else self._fetch(encoded))
        except ApiError as error:
            return refusal(str(error), error.code)
        except TrioSchedError as error:
            return refusal(str(error), 502)

    async def _fetch(self, target: bytes) -> Response:
        reply = await self.client.request(b"GET", target)
        return Response(status=reply.status, headers=_passed(reply.headers), body=reply.body)

    async def _stream(self, target: bytes, resources: AsyncExitStack) -> Response:
        stream = await resources.enter_async_context(self.client.stream(target))
        return Response(headers=_passed(stream.headers), stream=_pieces(stream))


async def _pieces(stream: ByteStream) -> AsyncGenerator[bytes, None]:
    try:
        while piece := await stream.receive():
            yield piece
    except KubeClientError:
        return  # the browser comes again by itself


def _passed(headers: list[tuple[bytes, bytes]]) -> list[Header]:
    named = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    return [(name, value) for name, value in named if name in _PASSED]
