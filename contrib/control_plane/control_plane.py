"""etcd and kube-apiserver, running, and a client of their administrator."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
from attrs import define

from contrib.control_plane.server_process import ServerProcess
from contrib.control_plane.servers import (
    ADMIN_TOKEN,
    Assets,
    ServerFiles,
    api_server_command,
    etcd_command,
    free_port,
    is_healthy,
    is_ready,
)
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings


@define(eq=False)
class ControlPlane:
    """A control plane without controllers."""

    files: ServerFiles
    port: int
    etcd_url: str
    etcd: ServerProcess
    api_server: ServerProcess
    admin: KubeClient
    """Has all rights and no limit."""
    all_kinds: bool = False
    """Whether the API server serves kinds that it does not by default."""

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self.port}"

    async def start_etcd(self) -> None:
        """Start etcd again, and wait until it is healthy."""
        await self.etcd.start()
        await self.etcd.wait_until(partial(is_healthy, self.etcd_url))

    async def start_api_server(self) -> None:
        """Start the API server again, and wait until it is ready."""
        await self.api_server.start()
        await self.wait_ready()

    async def change_api_server(self, assets: Assets) -> None:
        """Stop the API server, and start that of *assets* with the same data."""
        await self.api_server.stop(signal.SIGTERM)
        self.api_server.command = api_server_command(
            assets.kube_apiserver, self.files, self.port, self.etcd_url, all_kinds=self.all_kinds
        )
        await self.start_api_server()

    async def restart(self) -> None:
        """Start both again."""
        for server in (self.api_server, self.etcd):
            await server.stop(signal.SIGKILL)
        await self.start_etcd()
        await self.start_api_server()

    async def wait_ready(self) -> None:
        """Wait until the API server is ready."""
        await self.api_server.wait_until(partial(is_ready, self.admin))

    async def compact(self) -> None:
        """Have etcd forget its history, so that resource versions of before have expired."""
        async with httpx.AsyncClient(base_url=self.etcd_url, trust_env=False) as etcd:
            found = await etcd.post("/v3/kv/range", json={"key": "AA==", "limit": 1})
            revision = found.raise_for_status().json()["header"]["revision"]
            (await etcd.post("/v3/kv/compaction", json={"revision": revision})).raise_for_status()


@asynccontextmanager
async def control_plane(
    assets: Assets,
    files: ServerFiles,
    folder: Path,
    *,
    flags: Sequence[str] = (),
    end_with: int = signal.SIGTERM,
    all_kinds: bool = False,
) -> AsyncIterator[ControlPlane]:
    """A running control plane.

    Both servers have ended when the block is left, so that the data can be copied unless they were killed.

    Args:
        assets: the executables.
        files: certificates and tokens; they may be replaced while it runs.
        folder: gets the data, in ``etcd``, and the logs.
        flags: more flags of the API server.
        end_with: the signal that ends the servers.
        all_kinds: whether it serves device taint rules, workloads and pod groups, as far as it has them.

    Raises:
        ServerDied: a server did not become ready.
    """
    etcd_url, port = f"http://127.0.0.1:{free_port()}", free_port()
    etcd = ServerProcess(etcd_command(assets.etcd, folder / "etcd", etcd_url), folder / "etcd.log")
    serves = api_server_command(assets.kube_apiserver, files, port, etcd_url, all_kinds=all_kinds)
    command = [*serves, *flags]
    api_server = ServerProcess(command, folder / "kube-apiserver.log")
    settings = ConnectionSettings(
        server=f"https://127.0.0.1:{port}", tls=TlsSettings(insecure_skip_verify=True), token=ADMIN_TOKEN
    )
    async with (
        connect(settings, qps=-1) as admin,
        etcd.running(partial(is_healthy, etcd_url), end_with=end_with),
        api_server.running(partial(is_ready, admin), end_with=end_with),
    ):
        yield ControlPlane(files, port, etcd_url, etcd, api_server, admin, all_kinds)
