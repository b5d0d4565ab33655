"""HTTP as Hypercorn speaks it, without what no client of these endpoints needs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from h2.errors import ErrorCodes
from h2.events import PriorityUpdated, RequestReceived
from hypercorn.protocol.events import Body, Event
from hypercorn.protocol.h2 import BUFFER_HIGH_WATER, H2Protocol
from hypercorn.protocol.h11 import H11Protocol
from priority.priority import MissingStreamError

from trio_sched.daemon.serving.connections.http2_frames import Http2Frames
from trio_sched.daemon.serving.connections.time_share import timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import h11


class Http1(H11Protocol):
    """HTTP/1.1."""

    spend: Callable[[float], None]
    """Counts the seconds that its tasks use."""

    @property
    def held_bytes(self) -> int:
        """What has arrived and is kept until more does."""
        return len(self.connection.trailing_data[0])

    def split(self, data: bytes) -> Iterable[bytes]:
        """The parts of *data* that are handled in a turn of their own."""
        return (data,)

    async def _check_protocol(self, event: h11.Request) -> None:
        """HTTP/2 is agreed upon in the handshake, and in no other way."""

    def close(self) -> None:
        """Let go of everything: objects that refer to each other would stay until the garbage collector runs."""
        vars(self.connection).clear()
        vars(self).clear()


class Http2(H2Protocol):
    """HTTP/2."""

    spend: Callable[[float], None]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._frames = Http2Frames()
        # Else h2 uses its own limit until the client acknowledges ours, if it ever does.
        self.connection.decoder.max_header_list_size = self.config.h2_max_header_list_size

    @property
    def held_bytes(self) -> int:
        """The same as for HTTP/1.1."""
        return self._frames.held_bytes

    def split(self, data: bytes) -> Iterable[bytes]:
        """The same, a frame each.

        Raises:
            ClientMisbehaves: the client has sent what none has to send.
        """
        return self._frames.split(data)

    async def stream_send(self, event: Event) -> None:
        """Take a part of a response, and wait until it is sent if there is much of it.

        Hypercorn does not wait if the client lets nothing be sent at all, and would keep what a stream goes on to make.
        """
        await super().stream_send(event)
        buffer = self.stream_buffers.get(event.stream_id) if isinstance(event, Body) else None
        if buffer is not None and len(buffer.buffer) >= BUFFER_HIGH_WATER:
            await buffer.drain()

    async def send_task(self) -> None:
        """Send what waits, as Hypercorn does: a client can make it look at all streams with a few bytes."""
        await timed(super().send_task(), self.spend)

    async def _create_stream(self, request: RequestReceived) -> None:
        if dict(request.headers).get(b":method") == b"CONNECT":  # tunnels and web sockets: Hypercorn would keep them
            self.connection.reset_stream(request.stream_id, ErrorCodes.REFUSED_STREAM)
            self.keep_alive_requests += 1
            return
        await super()._create_stream(request)

    async def _priority_updated(self, event: PriorityUpdated) -> None:
        """Priorities are advice that RFC 9113 has withdrawn; following it costs time and memory."""

    def close(self) -> None:
        """The same as for HTTP/1.1."""
        for stream_id in self.stream_buffers:
            with suppress(MissingStreamError):
                self.priority.remove_stream(stream_id)
        vars(self.connection).clear()
        vars(self).clear()
