"""A server with a handler of the test's own, on a port."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, field
from client_authority import client_context

from trio_sched.daemon.serving.application import Application
from trio_sched.daemon.serving.listener import open_listener
from trio_sched.daemon.serving.messages import Handler, Request, Response, plain
from trio_sched.daemon.serving.server import Server
from trio_sched.daemon.serving.tls.certificates import ServingCertificates
from trio_sched.daemon.serving_settings import ServingSettings


async def say_ok(_request: Request) -> Response:
    return plain("ok")


@define(eq=False)
class Stage:
    """A running server."""

    port: int
    server: Server
    stop: trio.Event = field(factory=trio.Event)
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    """Of the server: cancelled when the lease is lost."""
    folder: Path = field(factory=Path)
    opened: list[trio.SocketStream] = field(factory=list)
    """What is closed in the end."""

    async def open(self) -> trio.SocketStream:
        """A connection without TLS."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        self.opened.append(stream)
        return stream

    async def connect(self, *, alpn: str = "http/1.1", context: ssl.SSLContext | None = None) -> Any:
        """A connection after its handshake."""
        secured = trio.SSLStream(
            await self.open(),
            context or client_context(self.folder, alpn=alpn),
            server_hostname="localhost",
            https_compatible=True,
        )
        await secured.do_handshake()
        return secured

    async def until_connections(self, count: int) -> None:
        """Wait until there are no more connections than *count*."""
        with trio.fail_after(10):
            while len(self.server.connections) > count:  # noqa: ASYNC110  # the kernel tells, no event of ours
                await trio.sleep(0.005)


@asynccontextmanager
async def serving(handler: Handler = say_ok, **settings: Any) -> AsyncIterator[Stage]:
    """A server with *handler*, until the block is left."""
    chosen = ServingSettings(bind_address="127.0.0.1", port=0, **settings)
    certificates = ServingCertificates(chosen)
    certificates.load()
    listener = open_listener(chosen)
    stage = Stage(listener.getsockname()[1], Server(listener, certificates, Application(handler), chosen.max_streams))
    with listener, trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            stage.scope = nursery.cancel_scope
            nursery.start_soon(stage.server.run, stage.stop)
            try:
                yield stage
            finally:
                for stream in stage.opened:
                    stream.socket.close()
            stage.stop.set()


async def read_to_end(stream: Any) -> bytes:
    """Everything that the server sends until it closes; a reset is an end like any other."""
    received = b""
    try:
        while piece := await stream.receive_some(65536):
            received += piece
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    return received
