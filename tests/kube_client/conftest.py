"""Servers to talk to: one on a real socket, one behind an httpx transport; and a client of the latter."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trustme
from file_writer import Write
from raw_server import Handler, RawServer, StartServer
from recording_transport import RecordingTransport

from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.settings import ConnectionSettings


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def start_server(nursery: trio.Nursery, authority: trustme.CA) -> StartServer:
    async def start(handler: Handler, *, tls: bool = False) -> RawServer:
        server = RawServer(handler, authority, tls)
        await nursery.start(server.serve)
        return server

    return start


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


@pytest.fixture
def server() -> RecordingTransport:
    """Stands in for an API server behind an httpx transport."""
    return RecordingTransport()


@pytest.fixture
async def client(server: RecordingTransport) -> AsyncIterator[KubeClient]:
    async with connect(ConnectionSettings(server="http://api.test"), transport=server) as client:
        yield client
