"""The shortest way to send one HTTP/1.1 request over TLS, as exactly these bytes, and read the response."""

import ssl
from collections.abc import Sequence
from typing import Any

import h11
import trio
from attrs import frozen


@frozen
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes


async def exchange(
    port: int,
    method: str,
    path: str,
    *,
    context: ssl.SSLContext | None,
    headers: Sequence[tuple[str, str]] = (),
    body: bytes = b"",
) -> Answer:
    """Send one request over a connection of its own; plain HTTP without a context."""
    connected = await trio.open_tcp_stream("127.0.0.1", port)
    stream: Any = connected
    if context is not None:
        stream = trio.SSLStream(connected, context, server_hostname="localhost", https_compatible=True)
    async with stream:
        sent = [("Host", f"127.0.0.1:{port}"), *headers, *([("Content-Length", str(len(body)))] if body else [])]
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent), "", ""]
        await stream.send_all("\r\n".join(lines).encode() + body)
        connection = h11.Connection(h11.CLIENT)  # it must know of the request to read the response
        connection.send(h11.Request(method=method, target=path, headers=[("Host", "x")]))
        connection.send(h11.EndOfMessage())
        return await read_answer(stream, connection)


async def read_answer(stream: Any, connection: h11.Connection) -> Answer:
    """Read a response to the end of its body."""
    status, found, content = 0, {}, b""
    while True:
        match connection.next_event():
            case h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65536))
            case h11.Response() as event:
                status = event.status_code
                found = {name.decode(): value.decode("latin-1") for name, value in event.headers}
            case h11.Data() as event:
                content += event.data
            case h11.EndOfMessage() | h11.ConnectionClosed():
                return Answer(status, found, content)
