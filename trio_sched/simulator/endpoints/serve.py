"""The API server on a port, for kubectl and other clients.

Hypercorn is imported when a port is served: it takes a tenth of a second, and most simulations serve none.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import trio

from trio_sched.simulator.endpoints.api_server import ApiServer, ServerStopped
from trio_sched.simulator.endpoints.faults import ReplyDropped
from trio_sched.simulator.endpoints.messages import Response
from trio_sched.simulator.endpoints.watching import StreamCut
from trio_sched.simulator.errors.status_errors import ApiError, internal_error, no_containers, too_large

if TYPE_CHECKING:
    from hypercorn.config import Config
    from hypercorn.typing import Framework

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_CONNECTIONS_IN_WAIT = 1024
_STREAM_WINDOWS = 1000
_MOST_BODY_BYTES = 3 << 20

log = logging.getLogger(__name__)


async def serve(
    server: ApiServer,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    certificate: Path | None = None,
    private_key: Path | None = None,
    others: Mapping[str, Application] | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer requests on a port; never returns.

    While *server* is stopped the port is closed, so that clients are refused; it opens again when *server* resumes.

    Args:
        server: answers the requests.
        host: the address to listen on.
        port: 0 lets the system choose one, which is then kept.
        certificate: a PEM file that makes this HTTPS (HTTP/1.1 and HTTP/2); without one it is plain HTTP.
        private_key: the PEM file of its key.
        others: ASGI applications that answer in place of *server* where paths begin so: ``ui`` for ``/ui`` and below.
        task_status: started with the base URL once connections are accepted.
    """
    from hypercorn.trio import serve as hypercorn_serve

    announced = False
    while True:
        await server.wait_until(running=True)
        config = configuration(host, port, certificate, private_key)
        async with trio.open_nursery() as nursery:
            application = cast("Framework", partial(_application, server, others or {}))
            run = partial(hypercorn_serve, application, config, mode="asgi")
            stopped = partial(server.wait_until, running=False)
            (address, *_) = await nursery.start(partial(run, shutdown_trigger=stopped))
            port = int(address.rpartition(":")[2])
            if not announced:
                announced = True
                task_status.started(address)
                log.info("the simulated API server answers on %s", address)
            await server.wait_until(running=False)
            # Connections must break, not drain: this is what a crash looks like.
            nursery.cancel_scope.cancel()


def configuration(host: str, port: int, certificate: Path | None, private_key: Path | None) -> Config:
    """Hypercorn's settings for simulated servers: many clients, and no grace period at the end."""
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"fd://{_bound(host, port)}"]
    config.accesslog = None
    config.errorlog = logging.getLogger(f"{__name__}.hypercorn")
    config.loglevel = "WARNING"
    config.backlog = _CONNECTIONS_IN_WAIT
    config.graceful_timeout = 0
    config.keep_alive_timeout = 3600
    config.h2_max_concurrent_streams = _STREAM_WINDOWS
    config.include_server_header = False
    config.include_date_header = True
    if certificate is not None:
        config.certfile = str(certificate)
        config.keyfile = None if private_key is None else str(private_key)
    return config


def _bound(host: str, port: int) -> int:
    """The descriptor of a new socket on an address; Hypercorn takes it over, and leaves open what it cannot bind.

    Raises:
        OSError: the address cannot be listened on.
    """
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
    except BaseException:
        opened.close()
        raise
    return opened.detach()


async def _application(
    server: ApiServer, others: Mapping[str, Application], scope: Scope, receive: Receive, send: Send
) -> None:
    """The ASGI application: *server* on the other side of Hypercorn, or one of *others*."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    other = others.get(scope["path"].strip("/").partition("/")[0])
    if other is not None and scope["type"] == "http":
        await other(scope, receive, send)
        return
    if scope["type"] == "websocket":
        await _refuse_websocket(scope, send)
        return
    body = await read_body(receive, _MOST_BODY_BYTES)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = scope["query_string"].decode("latin-1")
    try:
        if len(body) > _MOST_BODY_BYTES:
            raise too_large(_MOST_BODY_BYTES)
        response = await server.handle(scope["method"], scope["path"], query, headers, body)
    except (ServerStopped, ReplyDropped):
        # A content length without a body: the connection breaks before the client has a reply.
        promised = [(b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": promised})
        return
    except ApiError as error:
        response = Response(error.code, error.body())
    except Exception as error:  # a fault of this server must not look like the user's
        details = log.isEnabledFor(logging.DEBUG)
        log.error("%s %s failed: %s: %s", scope["method"], scope["path"], type(error).__name__, error, exc_info=details)
        response = Response(500, internal_error(error).body())
    answered = [(name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in response.headers.items()]
    if isinstance(response.body, bytes):
        answered.append((b"content-length", str(len(response.body)).encode("ascii")))
        await send({"type": "http.response.start", "status": response.status, "headers": answered})
        await send({"type": "http.response.body", "body": response.body})
        return
    await send({"type": "http.response.start", "status": response.status, "headers": answered})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_close_when_gone, receive, nursery.cancel_scope)
        try:
            async for batch in response.body:
                await send({"type": "http.response.body", "body": batch, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except StreamCut:
            pass  # returning without a last chunk breaks the connection, as a crash would
        finally:
            response.body.close()
        nursery.cancel_scope.cancel()


async def _refuse_websocket(scope: Scope, send: Send) -> None:
    """What clients of exec, attach and port-forward ask with first; they ask without a websocket next."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1000})
        return
    body = no_containers().body()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode("ascii"))]
    await send({"type": "websocket.http.response.start", "status": 400, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


async def live(receive: Receive, send: Send) -> None:
    """Answer the lifespan events of the ASGI server."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def read_body(receive: Receive, most_bytes: float = math.inf) -> bytes:
    """The whole body of a request; of one that is longer than *most_bytes*, what there was when that was noticed."""
    message = await receive()
    if not message.get("more_body"):
        return bytes(message.get("body", b""))
    chunks = [message.get("body", b"")]
    size = len(chunks[0])
    while message.get("more_body") and size <= most_bytes:
        message = await receive()
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
    return b"".join(chunks)


async def _close_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    """End a watch whose client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
