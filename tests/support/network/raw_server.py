"""An HTTP server whose handlers decide every byte of the answer: real sockets on the loopback interface."""

import ssl
from collections.abc import Awaitable, Callable
from functools import partial

import trio
import trustme
from attrs import define, field, frozen

from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings


@frozen
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@define(eq=False)
class Exchange:
    """One request as the server's handler sees it; it answers by writing to the stream."""

    request: Request
    stream: trio.abc.Stream
    number: int

    async def raw(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def answer(self, body: bytes = b"{}", *, status: int = 200, headers: str = "") -> None:
        head = f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode()
        await self.stream.send_all(head + body)


Handler = Callable[[Exchange], Awaitable[None]]


@define(eq=False)
class RawServer:
    """Reads requests as HTTP; what is sent back is up to the handler."""

    handler: Handler
    authority: trustme.CA
    is_tls: bool
    port: int = 0
    connections: int = 0
    requests: list[Request] = field(factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def settings(self) -> ConnectionSettings:
        tls = TlsSettings(ca_data=self.authority.cert_pem.bytes()) if self.is_tls else TlsSettings()
        return ConnectionSettings(server=self.url, tls=tls)

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            if self.is_tls:
                context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                self.authority.issue_cert("127.0.0.1", "kubernetes.test").configure_cert(context)
                start = partial(trio.serve_ssl_over_tcp, self._talk, 0, context, host="127.0.0.1")
            else:
                start = partial(trio.serve_tcp, self._talk, 0, host="127.0.0.1")
            listeners = await nursery.start(start)
            listener = listeners[0]
            self.port = getattr(listener, "transport_listener", listener).socket.getsockname()[1]
            task_status.started()

    async def _talk(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        buffer = bytearray()
        try:
            while True:
                while b"\r\n\r\n" not in buffer:
                    received = await stream.receive_some()
                    if not received:
                        return
                    buffer += received
                head, _, rest = bytes(buffer).partition(b"\r\n\r\n")
                first, *lines = head.decode().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                length = int(headers.get("content-length", "0"))
                buffer = bytearray(rest)
                while len(buffer) < length:
                    buffer += await stream.receive_some()
                body = bytes(buffer[:length])
                del buffer[:length]
                method, target, _ = first.split(" ")
                request = Request(method, target, headers, body)
                self.requests.append(request)
                await self.handler(Exchange(request, stream, len(self.requests)))
        except (trio.BrokenResourceError, trio.ClosedResourceError, ConnectionError):
            pass  # the client hung up, or the handler did
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await trio.aclose_forcefully(stream)


StartServer = Callable[..., Awaitable[RawServer]]
"""What the fixture `start_server` gives."""
