"""Requests of the daemon's client to an API server in the same process, without the objects of httpx.

These cost 0.2 ms each, which simulations and tests with thousands of pods feel.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

import trio
from attrs import define

from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.kube_client.http.caller import ByteStream
from trio_sched.kube_client.http.http1 import Headers, Reply
from trio_sched.simulator import ApiServer
from trio_sched.simulator.endpoints.api_server import ServerStopped
from trio_sched.simulator.endpoints.faults import ReplyDropped
from trio_sched.simulator.endpoints.messages import JSON_HEADERS, Response
from trio_sched.simulator.endpoints.watching import StreamCut, WatchStream


@define(eq=False)
class EmbeddedCaller:
    """A `Caller` for *server*."""

    server: ApiServer
    name: str
    """What errors call it."""
    request_seconds: float = math.inf
    """How long a whole request may take; for a stream, until its headers are in."""
    is_severed: bool = False
    """Whether every request fails, as if this process had lost its network."""

    async def request(self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b"") -> Reply:
        """Send a request, return the whole response.

        Raises:
            ConnectionFailed: there is no response.
        """
        if self.request_seconds == math.inf:
            return await self._reply(method, target, headers, body)
        with self._time_limit():
            return await self._reply(method, target, headers, body)

    async def _reply(self, method: bytes, target: bytes, headers: bytes, body: bytes) -> Reply:
        response = await self._answer(method, target, headers, body)
        if isinstance(response.body, bytes):
            return Reply(response.status, _pairs(response.headers), response.body)
        pieces, whole = _Pieces(response, self.name), b""
        try:
            while piece := await pieces.receive():
                whole += piece
        finally:
            response.body.close()
        return Reply(response.status, pieces.headers, whole)

    @asynccontextmanager
    async def stream(
        self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b""
    ) -> AsyncGenerator[ByteStream, None]:
        """Send a request, read the response piece by piece.

        Raises:
            ConnectionFailed: there is no response.
        """
        with nullcontext() if self.request_seconds == math.inf else self._time_limit():
            response = await self._answer(method, target, headers, body)
        try:
            yield _Pieces(response, self.name)
        finally:
            if isinstance(response.body, WatchStream):
                response.body.close()

    async def _answer(self, method: bytes, target: bytes, headers: bytes, body: bytes) -> Response:
        await trio.lowlevel.checkpoint()
        if self.is_severed:
            raise ConnectionFailed(self.name, "the connection is severed", may_have_reached_server=False)
        path, _, query = target.decode("ascii").partition("?")
        try:
            return await self.server.handle(method.decode(), unquote(path), query, _mapping(headers), body)
        except ServerStopped as error:
            raise ConnectionFailed(self.name, str(error), may_have_reached_server=False) from error
        except ReplyDropped as error:
            raise ConnectionFailed(self.name, str(error), may_have_reached_server=True) from error

    @contextmanager
    def _time_limit(self) -> Generator[None, None, None]:
        try:
            with trio.fail_after(self.request_seconds):
                yield
        except trio.TooSlowError as error:
            text = f"context deadline exceeded: no complete response within {self.request_seconds:g} s"
            raise ConnectionFailed(self.name, text, may_have_reached_server=True, timed_out=True) from error


class _Pieces:
    """A response as a `ByteStream`."""

    def __init__(self, response: Response, name: str) -> None:
        self._body, self._name = response.body, name
        self.status, self.headers = response.status, _pairs(response.headers)

    async def receive(self) -> bytes:
        await trio.lowlevel.checkpoint()
        if isinstance(self._body, bytes):
            rest, self._body = self._body, b""
            return rest
        try:
            while not (piece := await anext(self._body)):
                pass
        except StopAsyncIteration:
            return b""
        except StreamCut as error:
            raise ConnectionFailed(self._name, str(error), may_have_reached_server=True) from error
        return piece


@lru_cache(maxsize=64)
def _mapping(headers: bytes) -> Mapping[str, str]:
    """Header lines as a server takes them; few differ. Nothing is compressed, because it is not sent anywhere."""
    lines = (line.partition(": ") for line in headers.decode("latin-1").split("\r\n") if line)
    return {name: value for given, _, value in lines if (name := given.lower()) != "accept-encoding"}


def _pairs(headers: Mapping[str, str]) -> Headers:
    if headers is JSON_HEADERS:
        return _JSON_PAIRS
    return [(name.encode(), value.encode()) for name, value in headers.items()]


_JSON_PAIRS: Final = [(name.encode(), value.encode()) for name, value in JSON_HEADERS.items()]
