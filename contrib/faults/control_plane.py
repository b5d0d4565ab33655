"""etcd and kube-apiserver as processes that can be stopped, killed, suspended and started again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import trio
import trustme
from attrs import define, field

from contrib.benchmarks.real.servers import (
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

READY_SECONDS = 120.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.02


class ServerDied(Exception):
    """A server of the control plane has ended by itself."""


@define(eq=False)
class Server:
    """A process that is started again and again with the same command."""

    command: Sequence[str]
    log_file: Path
    environment: Mapping[str, str] = field(factory=dict)
    """Besides that of this process."""
    is_log_read: bool = True
    """If not, its output goes into a pipe that nobody reads."""
    process: trio.Process | None = field(init=False, default=None)

    async def start(self) -> None:
        """Start it; whether it is ready is another question."""
        with self.log_file.open("ab") as log:
            output = log if self.is_log_read else subprocess.PIPE
            environment = {**os.environ, **self.environment}
            self.process = await trio.lowlevel.open_process(
                list(self.command), stdout=output, stderr=subprocess.STDOUT, env=environment
            )

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """End it with a signal, and wait for its end."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(number)
        with trio.CancelScope(shield=True):
            with trio.move_on_after(STOP_SECONDS) as waiting:
                await self.process.wait()
            if waiting.cancelled_caught:
                self.process.kill()
                await self.process.wait()
        self.process = None

    def suspend(self) -> None:
        """Stop it where it is; the kernel goes on acknowledging what it is sent."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def check(self) -> None:
        """Check that it runs.

        Raises:
            ServerDied: it does not.
        """
        if self.process is None or self.process.poll() is not None:
            lines = self.log_file.read_text(errors="replace").splitlines()[-5:]
            raise ServerDied("\n".join([f"{self.log_file.stem} has ended:", *lines]))


@define(eq=False)
class ControlPlane:
    """A control plane without controllers, and a client of its administrator, which no fault is put in front of."""

    assets: Assets
    folder: Path
    files: ServerFiles
    port: int
    etcd_url: str
    etcd: Server
    api_server: Server
    admin: KubeClient
    client_authority: trustme.CA
    """Signs certificates of clients."""

    @property
    def client_authority_file(self) -> Path:
        """The certificate of the authority of clients that the API server trusts."""
        return self.folder / "clients.pem"

    @property
    def url(self) -> str:
        """Of the API server."""
        return f"https://127.0.0.1:{self.port}"

    async def start_etcd(self) -> None:
        """Start etcd, and wait until it is healthy."""
        await self.etcd.start()
        with trio.fail_after(READY_SECONDS):
            while not await is_healthy(self.etcd_url):
                self.etcd.check()
                await trio.sleep(POLL_SECONDS)

    async def start_api_server(self) -> None:
        """Start the API server, and wait until it is ready."""
        await self.api_server.start()
        await self.wait_ready()

    async def restart(self) -> None:
        """Start both anew."""
        for server in (self.api_server, self.etcd):
            if server.process is not None and server.process.poll() is None:
                server.resume()
            await server.stop(signal.SIGKILL)
        await self.start_etcd()
        await self.start_api_server()

    async def wait_ready(self) -> None:
        """Wait until the API server is ready."""
        with trio.fail_after(READY_SECONDS):
            while not await is_ready(self.admin):
                self.api_server.check()
                await trio.sleep(POLL_SECONDS)

    async def compact(self) -> None:
        """Have etcd forget its history, so that resource versions of before have expired."""
        async with httpx.AsyncClient(base_url=self.etcd_url, trust_env=False) as etcd:
            found = await etcd.post("/v3/kv/range", json={"key": "AA==", "limit": 1})
            revision = found.raise_for_status().json()["header"]["revision"]
            (await etcd.post("/v3/kv/compaction", json={"revision": revision})).raise_for_status()

    def replace_serving_certificate(self) -> bytes:
        """Write a certificate of a new authority for the API server; returns the authority's.

        The bundle of the clients is not changed: that is done when it is, a moment later, in a cluster.
        """
        authority = trustme.CA()
        leaf = authority.issue_cert("127.0.0.1", "localhost")
        leaf.cert_chain_pems[0].write_to_path(self.files.certificate)
        leaf.private_key_pem.write_to_path(self.files.key)
        return authority.cert_pem.bytes()


@asynccontextmanager
async def control_plane(assets: Assets, folder: Path) -> AsyncIterator[ControlPlane]:
    """A running control plane; its processes are gone when the block is left."""
    files = ServerFiles.write(folder)
    etcd_url, port = f"http://127.0.0.1:{free_port()}", free_port()
    etcd = Server(etcd_command(assets.etcd, folder / "etcd", etcd_url), folder / "etcd.log")
    # The certificate of the server is replaced in some faults, the key for the tokens of service accounts is not.
    signing_key = folder / "tokens.key"
    signing_key.write_bytes(files.key.read_bytes())
    command = [
        *api_server_command(assets.kube_apiserver, files, port, etcd_url),
        f"--service-account-key-file={signing_key}",
        f"--service-account-signing-key-file={signing_key}",
        f"--client-ca-file={folder / 'clients.pem'}",
    ]
    client_authority = trustme.CA()
    client_authority.cert_pem.write_to_path(folder / "clients.pem")
    api_server = Server(command, folder / "kube-apiserver.log")
    settings = ConnectionSettings(
        server=f"https://127.0.0.1:{port}", tls=TlsSettings(insecure_skip_verify=True), token=ADMIN_TOKEN
    )
    async with connect(settings, qps=-1) as admin:
        plane = ControlPlane(assets, folder, files, port, etcd_url, etcd, api_server, admin, client_authority)
        try:
            await plane.start_etcd()
            await plane.start_api_server()
            yield plane
        finally:
            with trio.CancelScope(shield=True):
                for server in (api_server, etcd):
                    if server.process is not None:
                        server.resume()
                        await server.stop(signal.SIGKILL)
