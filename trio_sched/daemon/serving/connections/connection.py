"""One connection: Hypercorn's, with an end to everything that a client can make it wait for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, RawData
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from hypercorn.utils import parse_socket_addr
from OpenSSL import SSL

from trio_sched.daemon.serving.connections.protocols import Http1, Http2
from trio_sched.daemon.serving.connections.time_share import timed
from trio_sched.daemon.serving.connections.unauthenticated import Unauthenticated
from trio_sched.daemon.serving.errors import ClientMisbehaves
from trio_sched.daemon.serving.limits import (
    CONNECTION_BYTES,
    HANDSHAKE_SECONDS,
    IDLE_SECONDS,
    MAX_HEADER_BYTES,
    MAX_REQUESTS_PER_CONNECTION,
    MAX_STREAMS,
    MAX_UNANSWERED,
    REQUEST_BYTES,
    SILENT_CONNECTION_BYTES,
    UNANSWERED_SECONDS,
)
from trio_sched.daemon.serving.tls.tls_stream import TlsStream
from trio_sched.tracebacks import forget_tracebacks

log = logging.getLogger(__name__)

_TURNS_TO_FINISH: Final = 5
_READ_BYTES: Final = 16 * 1024
STATE_KEY = "connection"
"""Where the application finds the connection in the state of its scope."""


class _SilentLogger:
    """What Hypercorn says about clients that misbehave is nothing that a scheduler's log needs."""

    def __init__(self, _config: Config) -> None:
        pass

    async def access(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    async def exception(self, message: str, *args: Any, **_kwargs: Any) -> None:
        log.debug(message, *args)

    debug = info = warning = error = critical = log = exception


def configuration(*, max_streams: int) -> Config:
    """Hypercorn's settings.

    Args:
        max_streams: HTTP/2 streams per connection; 0 or less: the default number.
    """
    config = Config()
    config.accesslog = None
    config.errorlog = None
    config.logger_class = _SilentLogger  # type: ignore[assignment]
    config.include_server_header = False
    config.ssl_handshake_timeout = HANDSHAKE_SECONDS
    config.keep_alive_timeout = IDLE_SECONDS
    config.keep_alive_max_requests = MAX_REQUESTS_PER_CONNECTION
    config.h11_max_incomplete_size = MAX_HEADER_BYTES
    config.h2_max_header_list_size = MAX_HEADER_BYTES
    config.h2_max_concurrent_streams = max_streams if max_streams > 0 else MAX_STREAMS
    return config


class Connection(TCPServer):
    """A client's connection, from its handshake to its end."""

    protocol: Http1 | Http2  # type: ignore[assignment]

    def __init__(
        self,
        app: ASGIFramework,
        config: Config,
        unauthenticated: Unauthenticated,
        context: SSL.Context,
        transport: trio.SocketStream,
        address: str,
    ) -> None:
        self.tls = TlsStream(transport, context, self._handshake_turn, self._hold)
        worker = WorkerContext(None)
        super().__init__(ASGIWrapper(self._timed(app)), config, worker, {STATE_KEY: self}, self.tls)  # type: ignore[arg-type]
        self.requests = 0
        """How many are under way, those whose stream was reset included."""
        self.is_ending = False
        """Whether it is to end once no request is under way."""
        self._unauthenticated = unauthenticated
        """The bounds that count as long as none of its requests has been authenticated."""
        self._address = address
        self._is_authenticated = False
        self._request_over = trio.Event()
        self._spent_seconds = 0.0
        self._held_input_bytes = 0
        self._scope = trio.CancelScope()
        unauthenticated.memory.add(self, SILENT_CONNECTION_BYTES)

    @property
    def is_silent(self) -> bool:
        """Whether its client has said nothing yet."""
        return self.tls.is_silent

    @property
    def is_idle(self) -> bool:
        """Whether it can be closed without breaking off a request."""
        return self.requests == 0

    async def serve(self) -> None:
        """Answer requests until the connection ends; whatever a client does costs only its own connection."""
        try:
            with self._scope, self._unauthenticated.connected_from(self._address):
                await self.run()
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as group:
            forget_tracebacks(group)
        except* Exception as group:  # Hypercorn and h2 raise various errors for what clients send
            log.debug("connection ended: %r", group.exceptions[0])
            forget_tracebacks(group)
        finally:
            self.tls.drop()
            self._unauthenticated.memory.release(self)
            self._let_go()

    async def run(self) -> None:
        """Answer requests, without an end to all that can go wrong."""
        try:
            with trio.fail_after(self.config.ssl_handshake_timeout):
                await timed(self.tls.do_handshake(), self._unauthenticated.handshakes.spend)
        except (trio.BrokenResourceError, trio.TooSlowError):
            return
        self._hold(CONNECTION_BYTES - SILENT_CONNECTION_BYTES)
        try:
            async with TaskGroup() as self._task_group:
                self.protocol = self._protocol()
                await self.protocol.initiate()
                await self.idle_task.restart(self._task_group, self._idle_timeout)
                await self._read_data()
        finally:
            await self._close()

    def _protocol(self) -> Http1 | Http2:
        socket = self.tls.transport_stream.socket
        client, server = (
            parse_socket_addr(socket.family, address) for address in (socket.getpeername(), socket.getsockname())
        )
        http = Http2 if self.tls.selected_alpn_protocol() == "h2" else Http1
        state = ConnectionState(self.state)
        protocol = http(
            self.app, self.config, self.context, self._task_group, state, True, client, server, self.protocol_send
        )
        protocol.spend = self.spend
        return protocol

    def authenticated(self) -> None:
        """Bound it no longer together with those of clients that nobody knows."""
        self._is_authenticated = True
        self._request_over.set()
        self._unauthenticated.memory.release(self)

    @contextmanager
    def request(self) -> Iterator[Callable[[int], None]]:
        """Count a request, and what it holds: to be called with each number of bytes.

        A client that resets one stream after the other does not get more of them than others.
        """
        held_bytes = 0

        def hold(more_bytes: int) -> None:
            nonlocal held_bytes
            held_bytes += more_bytes
            self._hold(more_bytes)

        self.requests += 1
        if self.requests > 2 * max(self.config.h2_max_concurrent_streams, 1):
            self.drop()
        try:
            hold(REQUEST_BYTES)
            yield hold
        finally:
            self.requests -= 1
            self._hold(-held_bytes)
            self._request_over.set()

    async def end(self) -> None:
        """End it as soon as no request is under way."""
        self.is_ending = True
        if self.is_idle:
            await self._end_now()

    async def request_is_answered(self) -> None:
        """To be called after a response: ends the connection if it was the last one."""
        if self.is_ending and self.is_idle:
            for _ in range(_TURNS_TO_FINISH):  # Hypercorn's sender marks the end of a stream after the response is sent
                await trio.lowlevel.checkpoint()
            async with self.send_lock:
                pass
            await self._end_now()

    async def _end_now(self) -> None:
        await self.context.terminated.set()

    def drop(self) -> None:
        """End it at once."""
        self.tls.drop()
        self._scope.cancel()

    async def _read_data(self) -> None:
        try:
            await timed(self._receive(), self.spend)
        except (ClientMisbehaves, trio.TooSlowError) as error:
            log.debug("connection ended: %s", error)
        finally:
            self._scope.cancel()  # the client has gone

    async def _receive(self) -> None:
        data = b"-"
        while data:
            try:
                data = await self.tls.receive_some(_READ_BYTES)
            except (trio.ClosedResourceError, trio.BrokenResourceError) as error:
                forget_tracebacks(error)  # from Python 3.13 on its cause refers to a frame that refers to it
                break
            for piece in self.protocol.split(data):
                await self._until_answered()
                await self.turn()
                self._hold_input(self._held_input_bytes + len(piece))
                await self.protocol.handle(RawData(piece))
            self._hold_input(self.protocol.held_bytes)
        await self.protocol.handle(Closed())

    async def _until_answered(self) -> None:
        """Wait until few requests are under way.

        Raises:
            trio.TooSlowError: the client does not read the responses, for instance.
        """
        while self.requests >= MAX_UNANSWERED and not self._is_authenticated:
            self._request_over = trio.Event()
            with trio.fail_after(UNANSWERED_SECONDS):
                await self._request_over.wait()

    async def _handshake_turn(self) -> None:
        await self._unauthenticated.handshakes.turn(self._unauthenticated.rank(self._address))

    async def turn(self) -> None:
        """Wait until its client is served; always a checkpoint.

        Raises:
            trio.TooSlowError: too many others ask for too much.
        """
        if self._is_authenticated:
            await trio.lowlevel.checkpoint()
        else:
            rank = self._unauthenticated.rank(self._address, self._spent_seconds)
            await self._unauthenticated.requests.turn(rank)

    def spend(self, seconds: float) -> None:
        """Count time of the event loop that its client has used."""
        if not self._is_authenticated:
            self._spent_seconds += seconds
            self._unauthenticated.requests.spend(seconds)

    def _timed(self, app: ASGIFramework) -> ASGIFramework:
        async def answer(*request: Any) -> None:
            await timed(app(*request), self.spend)

        return answer

    def _hold(self, more_bytes: int) -> None:
        self._unauthenticated.memory.change(self, more_bytes)

    def _hold_input(self, held_bytes: int) -> None:
        self._hold(held_bytes - self._held_input_bytes)
        self._held_input_bytes = held_bytes

    def _let_go(self) -> None:
        """Break the cycles of references: the garbage collector runs seldom, and a flood could take much until then."""
        self.state.clear()
        self.tls.hold = _ignore
        self.tls.wait_turn = trio.lowlevel.checkpoint
        del self.app
        if hasattr(self, "protocol"):
            self.protocol.close()
            del self.protocol

    async def _close(self) -> None:
        # Hypercorn's tasks may wait for each other: for a body that nobody reads any more, for instance.
        try:
            await super()._close()
        finally:
            self._scope.cancel()


def _ignore(_bytes: int) -> None:
    pass
