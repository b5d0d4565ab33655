"""A network in memory, on simulated time, between a client and a server whose handlers decide every byte."""

import trio
import trio.testing
import trustme
from attrs import define, field
from raw_server import Handler, RawServer

from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.kube_client.http.dialer import Dialer
from trio_sched.kube_client.http.http1 import Http1Connection


@define(eq=False)
class MemoryChannel:
    """The client's end of a connection; what it does not get because the network is silent never arrives."""

    stream: trio.StapledStream[trio.testing.MemorySendStream, trio.testing.MemoryReceiveStream]
    is_silent: bool
    sent_anything: bool = False
    is_broken: bool = False
    closed: trio.Event = field(factory=trio.Event)

    async def send(self, data: bytes) -> None:
        if self.is_broken:
            raise ConnectionResetError(104, "Connection reset by peer")
        self.sent_anything = True
        await self.stream.send_all(data)

    async def receive(self) -> bytes:
        received = bytes(await self.stream.receive_some())
        if self.is_broken:
            raise ConnectionResetError(104, "Connection reset by peer")
        if self.is_silent:
            await self.closed.wait()
            raise trio.ClosedResourceError
        return received

    def receive_nowait(self) -> bytes | None:
        return b"" if self.is_broken else None

    def is_stale(self) -> bool:
        return self.is_broken

    def reset(self) -> None:
        self.is_broken = True
        self.stream.receive_stream.put_eof()

    def close(self) -> None:
        self.is_broken = True
        self.closed.set()
        self.stream.send_stream.close()
        self.stream.receive_stream.close()


@define(eq=False)
class MemoryNetwork(Dialer):
    """Opens connections in memory to *handler*.

    Attributes:
        is_refusing: whether new connections are refused.
        new_are_silent: whether nothing arrives over new connections.
        dialled_at: when each connection was asked for.
    """

    handler: Handler = field(kw_only=True)
    nursery: trio.Nursery = field(kw_only=True)
    is_refusing: bool = False
    new_are_silent: bool = False
    dialled_at: list[float] = field(factory=list)
    channels: list[MemoryChannel] = field(factory=list)
    server: RawServer = field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.server = RawServer(self.handler, trustme.CA(), is_tls=False)

    async def dial(self) -> Http1Connection:
        self.dialled_at.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if self.is_refusing:
            raise ConnectionFailed(self.settings.server, "connection refused")
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self.server._talk, theirs)
        channel = MemoryChannel(ours, self.new_are_silent)
        self.channels.append(channel)
        return Http1Connection(channel)

    def silence(self) -> None:
        """Nothing arrives any more over the connections that exist."""
        for channel in self.channels:
            channel.is_silent = True

    def reset(self) -> None:
        """All connections break."""
        for channel in self.channels:
            if not channel.is_broken:
                channel.reset()
