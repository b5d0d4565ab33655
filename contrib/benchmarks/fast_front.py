"""The simulated API server behind a front that costs a third of Hypercorn, so that it limits a scheduler less.

Events are counted and not stored; everything else is the simulator's own answer.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httptools
import trio
from attrs import define, field

from contrib.benchmarks.loopback import REPLY
from trio_sched.simulator import ApiServer
from trio_sched.simulator.endpoints.watching import StreamCut, WatchStream

_MOST_BYTES = 1 << 16


@define(eq=False)
class _Requests:
    """What a parser has found on a connection: complete requests, in order."""

    complete: deque[tuple[str, bytes, dict[str, str], bytes]] = field(factory=deque)
    parser: httptools.HttpRequestParser = field(init=False)
    _url: bytes = b""
    _headers: dict[str, str] = field(factory=dict)
    _body: bytes = b""

    def __attrs_post_init__(self) -> None:
        self.parser = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body = b"", {}, b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self.complete.append((self.parser.get_method().decode(), self._url, self._headers, self._body))


@define(eq=False)
class FastFront:
    """Answers for *server*; *count_event* is called for every event that a client sends."""

    server: ApiServer
    count_event: Callable[[], None]

    async def serve(self, folder: Path, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve with the certificate in *folder*; started with the address."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        serve = partial(trio.serve_ssl_over_tcp, self._answer_all, 0, context, host="127.0.0.1", https_compatible=True)
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(serve)
            task_status.started(f"https://127.0.0.1:{listener.transport_listener.socket.getsockname()[1]}")

    async def _answer_all(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        requests = _Requests()
        try:
            while data := await stream.receive_some(_MOST_BYTES):
                requests.parser.feed_data(data)
                replies: list[bytes] = []
                while requests.complete:
                    method, url, headers, body = requests.complete.popleft()
                    path, _, query = url.decode().partition("?")
                    if method == "POST" and path.endswith("/events"):
                        self.count_event()
                        replies.append(REPLY)
                        continue
                    response = await self.server.handle(method, path, query, headers, body)
                    head = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
                    start = f"HTTP/1.1 {response.status} \r\n{head}"
                    if isinstance(response.body, bytes):
                        replies.append(f"{start}content-length: {len(response.body)}\r\n\r\n".encode() + response.body)
                    else:
                        await stream.send_all(f"{start}transfer-encoding: chunked\r\n\r\n".encode())
                        await _send_watch(stream, response.body)
                if replies:
                    await stream.send_all(b"".join(replies))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return


async def _send_watch(stream: trio.SSLStream[trio.SocketStream], watch: WatchStream) -> None:
    try:
        async for lines in watch:
            await stream.send_all(b"%x\r\n%b\r\n" % (len(lines), lines))
        await stream.send_all(b"0\r\n\r\n")
    except StreamCut:
        return
    finally:
        watch.close()
