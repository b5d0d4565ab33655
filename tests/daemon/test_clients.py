"""The connections of a daemon that may only read refuse every write before anything is sent."""

from collections.abc import Awaitable, Callable

import httpx
import pytest

from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.clients import Clients, open_clients
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import WriteNotPermitted
from trio_sched.kube_client.pipelined_posts import PipelinedPosts
from trio_sched.kube_client.settings import ConnectionSettings


class Server(httpx.AsyncBaseTransport):
    """Notes what is sent."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.methods.append(request.method)
        return httpx.Response(200, json={})


CLIENTS: list[Callable[[Clients], KubeClient]] = [lambda c: c.main, lambda c: c.events, lambda c: c.leases]


def posts_of(client: KubeClient) -> PipelinedPosts:
    return PipelinedPosts(client, lambda *_: None, lambda _: None, lambda: 1.0, 1.0)


WRITES: list[Callable[[KubeClient], Awaitable[object]]] = [
    lambda client: client.call(b"POST", b"/x"),
    lambda client: client.call(b"PUT", b"/x"),
    lambda client: client.call(b"PATCH", b"/x"),
    lambda client: client.call(b"DELETE", b"/x"),
    lambda client: client.http.post("/x"),
    lambda client: client.http.delete("/x"),
]


@pytest.mark.parametrize("chosen", CLIENTS, ids=["main", "events", "leases"])
async def test_every_write_is_refused_and_reads_are_sent(chosen: Callable[[Clients], KubeClient]) -> None:
    server = Server()
    opened = open_clients(
        SchedulerConfig(), ConnectionSettings(server="http://api.test"), transport=server, read_only=True
    )
    async with opened as clients:
        client = chosen(clients)
        for write in WRITES:
            with pytest.raises(WriteNotPermitted, match="a shadow"):
                await write(client)
        with pytest.raises(WriteNotPermitted, match="a shadow"):
            posts_of(client).submit(b"/x", b"{}")
        await client.call(b"GET", b"/x")
        await client.http.get("/x")
    assert server.methods == ["GET", "GET"]
