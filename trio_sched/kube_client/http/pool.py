"""A pool of keep-alive connections to one server.

A flat pool: a stack of idle connections, a count of open ones, a queue of waiting tasks. Nothing is searched, so a
request costs the same with one in flight as with a hundred. One watchdog checks the deadlines of all requests, because
a cancel scope per request would take a tenth of the time of the request.
"""

import math
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager

import outcome
import trio
from attrs import define, field

from trio_sched.go.errors import CONNECTION_LOST, describe_failure
from trio_sched.kube_client.errors import ConnectionFailed, ResponseTooLarge
from trio_sched.kube_client.http.dialer import Dialer
from trio_sched.kube_client.http.http1 import BodyTooLarge, Headers, Http1Connection, ProtocolViolation, Reply

MAX_CONNECTIONS = 32
REQUEST_SECONDS = 65.0
"""A little more than the minute after which an API server ends a request by itself."""

IDLE_SECONDS = 50.0
"""Servers and load balancers close idle connections after a minute or so. A request that is sent just then fails, and
whether it took effect is unknown; so the pool closes idle connections before that."""

_SAFE = frozenset({b"GET", b"HEAD"})
_BROKEN = (OSError, ssl.SSLError, trio.ClosedResourceError, ProtocolViolation)


@define(eq=False)
class Pool:
    """Connections to one server.

    Args:
        dialer: opens them.
        fixed_headers: header lines of every request (``Host`` and such).
        max_connections: for requests; those of streams are not counted.
        request_seconds: how long a whole request may take.
        max_body_bytes: of a whole response, decompressed; None for that of `trio_sched.kube_client.http.http1`.
    """

    dialer: Dialer
    fixed_headers: bytes
    max_connections: int = MAX_CONNECTIONS
    request_seconds: float = REQUEST_SECONDS
    max_body_bytes: int | None = None
    _prefix: bytes = field(init=False, default=b"")
    _idle: list[Http1Connection] = field(init=False, factory=list)
    _after_streams: list[Http1Connection] = field(init=False, factory=list)
    """Connections whose stream was read to its end, for the next streams: a watch follows the list before it."""
    _busy: set[Http1Connection] = field(init=False, factory=set)
    _open: int = field(init=False, default=0)
    _waiting: deque[trio.lowlevel.Task] = field(init=False, factory=deque)
    _watchdog_rest: trio.Event | None = field(init=False, default=None)
    _streams: set[Http1Connection] = field(init=False, factory=set)
    """Connections of streams that are open, and of pipelines."""
    _dials: dict[trio.CancelScope, float] = field(init=False, factory=dict)
    """The connections that are being opened: since when."""
    heard_at: float = field(init=False, default=-math.inf)
    """When the server was heard last, over a stream or a connection that was used before."""

    def __attrs_post_init__(self) -> None:
        if self.dialer.relays_requests:
            assert self.dialer.proxy is not None
            self._prefix = self.dialer.settings.server.split("://")[0].encode() + b"://" + _authority(self.dialer)
            self.fixed_headers += self.dialer.proxy.authorization()

    async def request(self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b"") -> Reply:
        """Send a request and return the whole response, whatever its status.

        If the server had closed the connection while it was idle, the request is sent over another one, provided that
        it cannot have had an effect: not a byte of it was sent, or it only reads.

        Args:
            method: ``b"POST"``.
            target: path and query.
            headers: more header lines, each ending in CRLF.
            body: sent with its length.

        Raises:
            ResponseTooLarge: the response is not read to its end.
            ConnectionFailed: there is no complete response.
        """
        message = self.message(method, target, headers, body)
        while True:
            connection = await self._acquire()
            connection.deadline = trio.current_time() + self.request_seconds
            self._busy.add(connection)
            if self._watchdog_rest is not None:
                self._watchdog_rest.set()
            try:
                reply = await connection.exchange(message, self.max_body_bytes)
            except _BROKEN as problem:
                self._release(connection, broken=True)
                if not self._may_repeat(connection, method):
                    raise self._failure(connection, problem) from problem
            except BaseException:
                self._release(connection, broken=True)
                raise
            else:
                self._release(connection)
                if connection.requests > 1:
                    self.heard_at = trio.current_time()
                return reply

    @asynccontextmanager
    async def stream(
        self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b""
    ) -> AsyncGenerator["ResponseStream", None]:
        """Send a request over a connection of its own, and read the response piece by piece.

        There is no deadline for the body: how long a stream may be silent depends on what it is used for.

        Raises:
            ConnectionFailed: there is no connection, or no response.
        """
        message = self.message(method, target, headers, body)
        while True:
            connection = self._connection_after_stream() or await self.dial()
            connection.heard_at = trio.current_time()
            try:
                self._streams.add(connection)
                try:
                    with trio.fail_after(self.request_seconds):
                        status, answered = await connection.start(message)
                except (*_BROKEN, trio.TooSlowError) as problem:
                    if self._may_repeat(connection, method):
                        continue
                    raise self._failure(connection, problem) from problem
                yield ResponseStream(self, connection, status, answered)
                if connection.reusable and connection.is_complete:
                    connection.idle_since = trio.current_time()
                    self._after_streams.append(connection)
                return
            finally:
                self._streams.discard(connection)
                if connection not in self._after_streams:
                    connection.close()

    async def dial(self) -> Http1Connection:
        """Open a connection; fails when :meth:`drop_silent` finds that this takes too long.

        Raises:
            ConnectionFailed: there is none.
        """
        with trio.CancelScope() as scope:
            self._dials[scope] = trio.current_time()
            try:
                return await self.dialer.dial()
            finally:
                del self._dials[scope]
        raise ConnectionFailed(self.dialer.settings.server, CONNECTION_LOST, server_answers=True)

    @contextmanager
    def pipeline(self, connection: Http1Connection) -> Iterator[None]:
        """Inside the block *connection*, which its user opened by :meth:`dial`, is one that can be silent for long."""
        connection.heard_at = trio.current_time()
        self._streams.add(connection)
        try:
            yield
        finally:
            self._streams.discard(connection)

    def drop_silent(self, since: float) -> None:
        """Close connections over which nothing was heard since *since*: the server answers others.

        What waits for a response there fails, as when a connection breaks.
        """
        for idle in (self._idle, self._after_streams):
            for connection in idle:
                if connection.idle_since <= since:
                    connection.close()  # found to be stale when it is to be used
        for connection in list(self._busy):
            if connection.deadline - self.request_seconds <= since and not connection.received_anything:
                connection.lose()
        for connection in list(self._streams):
            if connection.heard_at <= since:
                connection.lose()
        for scope, began in list(self._dials.items()):
            if began <= since:
                scope.cancel()

    async def watchdog(self) -> None:
        """Close connections whose request has taken too long; never returns."""
        while True:
            if not self._busy:
                self._watchdog_rest = trio.Event()
                await self._watchdog_rest.wait()
                self._watchdog_rest = None
                continue  # the request that set the event can be complete already
            # All requests have the same timeout, so those that start during this sleep have later deadlines than these.
            await trio.sleep_until(min(connection.deadline for connection in self._busy))
            now = trio.current_time()
            for connection in [busy for busy in self._busy if busy.deadline <= now]:
                connection.timed_out = True
                connection.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in [*self._idle, *self._busy, *self._after_streams]:
            connection.close()
        self._open -= len(self._idle)
        self._idle.clear()
        self._after_streams.clear()

    def message(self, method: bytes, target: bytes, headers: bytes, body: bytes) -> bytes:
        """A request, head and body in one piece."""
        length = b"Content-Length: %d\r\n" % len(body) if body or method not in _SAFE else b""
        return b"".join(
            (method, b" ", self._prefix, target, b" HTTP/1.1\r\n", self.fixed_headers, headers, length, b"\r\n", body)
        )

    async def _acquire(self) -> Http1Connection:
        while self._idle:
            connection = self._idle.pop()
            usable = False
            try:
                usable = self._is_usable(connection)
            finally:
                if not usable:
                    self._free_slot()
                    connection.close()
            if usable:
                return connection
        if self._open < self.max_connections:
            self._open += 1
        else:
            task = trio.lowlevel.current_task()
            self._waiting.append(task)

            def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
                self._waiting.remove(task)
                return trio.lowlevel.Abort.SUCCEEDED

            handed: Http1Connection | None = await trio.lowlevel.wait_task_rescheduled(abort)
            if handed is not None:
                return handed
        try:
            return await self.dial()
        except BaseException:
            self._free_slot()
            raise

    def take_idle(self) -> Http1Connection | None:
        """An open connection that is not in use, for good; None if there is none."""
        while self._idle:
            connection = self._idle.pop()
            self._free_slot()
            if self._is_usable(connection):
                return connection
            connection.close()
        return self._connection_after_stream()

    def _connection_after_stream(self) -> Http1Connection | None:
        """An open connection whose stream is over, if there is one."""
        while self._after_streams:
            connection = self._after_streams.pop()
            if self._is_usable(connection):
                return connection
            connection.close()
        return None

    def _is_usable(self, connection: Http1Connection) -> bool:
        """Whether an idle connection can take a request."""
        fresh = trio.current_time() - connection.idle_since < IDLE_SECONDS
        return fresh and self.is_current(connection) and not connection.is_stale()

    def is_current(self, connection: Http1Connection) -> bool:
        """Whether it was opened with the current certificates."""
        return connection.generation == self.dialer.tls.generation

    def _release(self, connection: Http1Connection, *, broken: bool = False) -> None:
        self._busy.discard(connection)
        if broken or not connection.reusable or not self.is_current(connection):
            connection.close()
            self._free_slot()
        elif self._waiting:
            trio.lowlevel.reschedule(self._waiting.popleft(), outcome.Value(connection))
        else:
            connection.idle_since = trio.current_time()
            self._idle.append(connection)

    def _free_slot(self) -> None:
        """Account for a closed connection: the first waiting task may open another one."""
        if self._waiting:
            trio.lowlevel.reschedule(self._waiting.popleft(), outcome.Value(None))
        else:
            self._open -= 1

    def _may_repeat(self, connection: Http1Connection, method: bytes) -> bool:
        reused = connection.requests > 1
        had_no_effect = not connection.sent_anything or method in _SAFE
        return reused and had_no_effect and not connection.received_anything and not connection.timed_out

    def _failure(self, connection: Http1Connection, problem: BaseException) -> ConnectionFailed:
        # In TLS 1.3 a server refuses a client's certificate after the handshake, and the alert can be lost.
        if isinstance(problem, ssl.SSLError) or (connection.requests == 1 and not connection.received_anything):
            self.dialer.tls.reload_or_keep()
        timed_out = connection.timed_out or isinstance(problem, trio.TooSlowError)
        if timed_out:
            text = f"context deadline exceeded: no complete response within {self.request_seconds:g} s"
        elif connection.is_lost:
            text = CONNECTION_LOST
        elif isinstance(problem, trio.ClosedResourceError):
            text = "the connection was closed on our side"
        else:
            text = describe_failure(problem)
        kind = ResponseTooLarge if isinstance(problem, BodyTooLarge) else ConnectionFailed
        return kind(
            self.dialer.settings.server,
            text,
            may_have_reached_server=connection.sent_anything,
            timed_out=timed_out,
            server_answers=connection.is_lost,
        )


@define(eq=False)
class ResponseStream:
    """A response whose body is read while it arrives.

    Attributes:
        status: the HTTP status.
        headers: with lower-case names.
    """

    _pool: Pool
    _connection: Http1Connection
    status: int
    headers: Headers

    async def receive(self) -> bytes:
        """The next bytes of the body, as the server sent them; empty at its end.

        Raises:
            ConnectionFailed: the body is incomplete.
        """
        try:
            received = await self._connection.receive_body()
            self._connection.heard_at = self._pool.heard_at = trio.current_time()
            return received
        except _BROKEN as problem:
            raise self._pool._failure(self._connection, problem) from problem


def _authority(dialer: Dialer) -> bytes:
    host = f"[{dialer.host}]" if ":" in dialer.host else dialer.host
    return f"{host}:{dialer.port}".encode()
