"""One connection: Hypercorn's, with an end to everything that a client can make it wait for."""

from __future__ import annotations

import logging
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework

from trio_sched.daemon.serving.limits import (
    HANDSHAKE_SECONDS,
    IDLE_SECONDS,
    MAX_HEADER_BYTES,
    MAX_REQUESTS_PER_CONNECTION,
    MAX_STREAMS,
)
from trio_sched.daemon.serving.tls_stream import TlsStream

log = logging.getLogger(__name__)

_TURNS_TO_FINISH = 5
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

    def __init__(self, app: ASGIFramework, config: Config, secured: TlsStream) -> None:
        wrapper = ASGIWrapper(app)
        super().__init__(wrapper, config, WorkerContext(None), {STATE_KEY: self}, secured)  # type: ignore[arg-type]
        self.tls = secured
        self.requests = 0
        """How many are under way, those whose stream was reset included."""
        self.is_ending = False
        """Whether it is to end once no request is under way."""
        self._scope = trio.CancelScope()

    @property
    def is_idle(self) -> bool:
        """Whether it can be closed without breaking off a request."""
        return self.requests == 0

    async def serve(self) -> None:
        """Answer requests until the connection ends; whatever a client does costs only its own connection."""
        try:
            with self._scope:
                await self.run()
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except* Exception as group:  # Hypercorn and h2 raise various errors for what clients send
            log.debug("connection ended: %r", group.exceptions[0])
        finally:
            self.tls.drop()

    def request_begins(self) -> None:
        """Count a request; a client that resets one stream after the other does not get more of them than others."""
        self.requests += 1
        if self.requests > 2 * max(self.config.h2_max_concurrent_streams, 1):
            self.drop()

    def request_ends(self) -> None:
        """The opposite."""
        self.requests -= 1

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
            await super()._read_data()
        finally:
            self._scope.cancel()  # the client has gone

    async def _close(self) -> None:
        # Hypercorn's tasks may wait for each other: for a body that nobody reads any more, for instance.
        try:
            await super()._close()
        finally:
            self._scope.cancel()
