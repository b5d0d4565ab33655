"""A TCP relay between a scheduler and its API server, which can be told to misbehave.

It carries bytes, TLS or not: what it does to a connection is what a network, a load balancer or a broken proxy does.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum

import trio
from attrs import define, field

READ_BYTES = 64 * 1024
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with zero seconds: the kernel sends RST in place of FIN."""


class Mode(Enum):
    """What becomes of a connection."""

    FORWARD = "forward"
    RESET = "reset"
    """It is accepted, and reset when its first bytes arrive."""
    CLOSE = "close"
    """It is accepted and closed, as by a load balancer without a backend."""
    GARBAGE = "garbage"
    """It is accepted, and answered with random bytes."""
    HOLD = "hold"
    """It is accepted, and nothing is forwarded in either direction; its bytes are acknowledged all the same."""


@define(eq=False)
class Flow:
    """One connection through the relay."""

    client: trio.SocketStream
    forwarding: trio.Event = field(init=False, factory=trio.Event)
    """Set while bytes are forwarded."""

    def hold(self) -> None:
        """Forward nothing from now on."""
        self.forwarding = trio.Event()

    def release(self) -> None:
        """Forward again, what was held included."""
        self.forwarding.set()

    def reset(self) -> None:
        """End it with a reset."""
        with suppress(OSError):
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.client.socket.close()


def _set_event() -> trio.Event:
    event = trio.Event()
    event.set()
    return event


@define(eq=False)
class Relay:
    """Relays from a port of its own to *upstream_port* on this machine."""

    upstream_port: int
    port: int = field(init=False, default=0)
    mode: Mode = field(init=False, default=Mode.FORWARD)
    """What becomes of new connections."""
    delay_seconds: float = field(init=False, default=0.0)
    """The delay of each piece that is forwarded."""
    piece_bytes: int = field(init=False, default=READ_BYTES)
    """At most so many are forwarded at a time."""
    cut_after_bytes: int | None = field(init=False, default=None)
    """A connection is reset once it has brought so many bytes to the client."""
    accepted: int = field(init=False, default=0)
    """How many connections there were."""
    requests: int = field(init=False, default=0)
    """How many pieces clients have sent; of a client that is quiet each is a request, or a part of a handshake."""
    flows: set[Flow] = field(init=False, factory=set)
    _nursery: trio.Nursery = field(init=False)
    _listening: trio.CancelScope | None = field(init=False, default=None)
    _answering: trio.Event = field(init=False, factory=_set_event)
    """Set while bytes are forwarded to clients."""

    def hold_answers(self) -> None:
        """Forward nothing to the client, on any connection."""
        self._answering = trio.Event()

    def release_answers(self) -> None:
        """Forward it again."""
        self._answering.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Relay]:
        """The relay listens inside the block."""
        async with trio.open_nursery() as self._nursery:
            await self.listen()
            yield self
            self._nursery.cancel_scope.cancel()

    async def listen(self) -> None:
        """Accept connections, on the same port as before."""
        listeners = await trio.open_tcp_listeners(self.port, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        self._listening = trio.CancelScope()
        await self._nursery.start(self._accept, listeners, self._listening)

    async def restart(self) -> None:
        """Reset everything, and forward from now on."""
        self.mode, self.delay_seconds, self.piece_bytes, self.cut_after_bytes = Mode.FORWARD, 0.0, READ_BYTES, None
        self.release_answers()
        self.refuse()
        self.reset_all()
        await self.listen()

    def refuse(self) -> None:
        """Close the port: new connections are refused by the kernel."""
        assert self._listening is not None
        self._listening.cancel()

    def reset_all(self) -> None:
        """Reset every connection."""
        for flow in list(self.flows):
            flow.reset()

    def hold_all(self) -> None:
        """Forward nothing more on the connections that exist; nobody is told."""
        for flow in self.flows:
            flow.hold()

    def release_all(self) -> None:
        """Forward on all of them again."""
        for flow in self.flows:
            flow.release()

    async def _accept(
        self,
        listeners: list[trio.SocketListener],
        scope: trio.CancelScope,
        *,
        task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        with scope:
            await trio.serve_listeners(self._relay, listeners, handler_nursery=self._nursery, task_status=task_status)

    async def _relay(self, client: trio.SocketStream) -> None:
        self.accepted += 1
        flow = Flow(client)
        self.flows.add(flow)
        try:
            if self.mode is Mode.CLOSE:
                return
            if self.mode is Mode.RESET:
                await client.receive_some(READ_BYTES)
                flow.reset()
                return
            if self.mode is Mode.GARBAGE:
                await client.receive_some(READ_BYTES)
                await client.send_all(os.urandom(1000))
                return
            if self.mode is Mode.FORWARD:
                flow.release()
            await self._forward(flow)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # one side is gone, or the connection was reset on purpose
        finally:
            self.flows.discard(flow)
            flow.client.socket.close()

    async def _forward(self, flow: Flow) -> None:
        await flow.forwarding.wait()
        server = await trio.open_tcp_stream("127.0.0.1", self.upstream_port)
        async with server, trio.open_nursery() as nursery:
            nursery.start_soon(self._copy, flow, flow.client, server, False, nursery.cancel_scope)
            nursery.start_soon(self._copy, flow, server, flow.client, True, nursery.cancel_scope)

    async def _copy(
        self,
        flow: Flow,
        source: trio.SocketStream,
        target: trio.SocketStream,
        is_answer: bool,
        both: trio.CancelScope,
    ) -> None:
        left = self.cut_after_bytes
        try:
            while received := await source.receive_some(self.piece_bytes):
                if is_answer:
                    await self._answering.wait()
                else:
                    self.requests += 1
                if self.delay_seconds:
                    await trio.sleep(self.delay_seconds)
                await flow.forwarding.wait()
                if is_answer and left is not None:
                    left -= len(received)
                    if left < 0:
                        flow.reset()
                        break
                await target.send_all(received)
            await flow.forwarding.wait()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        both.cancel()
