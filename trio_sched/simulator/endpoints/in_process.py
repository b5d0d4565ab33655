"""The API server behind an httpx client, without a socket in between."""

import math
from collections.abc import AsyncIterator
from urllib.parse import unquote

import httpx
import trio
from attrs import define

from trio_sched.simulator.endpoints.api_server import ApiServer, ServerStopped
from trio_sched.simulator.endpoints.faults import ReplyDropped
from trio_sched.simulator.endpoints.watching import StreamCut, WatchStream


class _WatchBody(httpx.AsyncByteStream):
    """A watch as httpx reads it: closing it ends the watch."""

    def __init__(self, stream: WatchStream, request: httpx.Request) -> None:
        self._stream, self._request = stream, request
        timeout = (request.extensions.get("timeout") or {}).get("read")
        self._read_seconds = math.inf if timeout is None else timeout

    # No generator: trio warns about an async generator that is not read to its end.
    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await trio.lowlevel.checkpoint()
        try:
            with trio.fail_after(self._read_seconds):
                return await anext(self._stream)
        except StreamCut as error:
            message = "peer closed connection without sending complete message body (incomplete chunked read)"
            raise httpx.RemoteProtocolError(message, request=self._request) from error
        except trio.TooSlowError as error:
            raise httpx.ReadTimeout("no event within the read timeout", request=self._request) from error

    async def aclose(self) -> None:
        self._stream.close()


@define(eq=False)
class InProcessTransport(httpx.AsyncBaseTransport):
    """Carries requests to *server* by calling it.

    Time passes only on trio's clock: latencies sleep, reading from a watch waits, and httpx's read timeout counts.
    """

    server: ApiServer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request, failing as a connection would where the server is stopped or drops replies."""
        body = await request.aread()
        await trio.lowlevel.checkpoint()

        headers = {name.lower(): value for name, value in request.headers.items()}
        path = unquote(request.url.raw_path.decode("ascii").partition("?")[0])
        query = request.url.query.decode("ascii")
        timeout = (request.extensions.get("timeout") or {}).get("read")
        try:
            with trio.fail_after(math.inf if timeout is None else timeout):
                response = await self.server.handle(request.method, path, query, headers, body)
        except ServerStopped as error:
            raise httpx.ConnectError("All connection attempts failed", request=request) from error
        except ReplyDropped as error:
            message = "Server disconnected without sending a response."
            raise httpx.RemoteProtocolError(message, request=request) from error
        except trio.TooSlowError as error:
            raise httpx.ReadTimeout("no response within the read timeout", request=request) from error
        if isinstance(response.body, bytes):
            shown = {**response.headers, "content-length": str(len(response.body))}
            return httpx.Response(response.status, headers=shown, content=response.body, request=request)
        stream = _WatchBody(response.body, request)
        return httpx.Response(response.status, headers=dict(response.headers), stream=stream, request=request)
