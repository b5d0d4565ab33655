"""etcd and kube-apiserver, started from the folder that ``KUBEBUILDER_ASSETS`` names."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import trio
import trustme
from attrs import frozen

from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.errors import KubeClientError
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings

ADMIN_TOKEN, SCHEDULER_TOKEN = "admin-token", "scheduler-token"
TOKENS = f'{ADMIN_TOKEN},admin,1,"system:masters"\n{SCHEDULER_TOKEN},system:kube-scheduler,2,""\n'
READY_SECONDS = 120.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.05


class AssetsMissing(Exception):
    """There is nothing to compare with."""


@frozen
class Assets:
    """The folder with the executables."""

    folder: Path

    @property
    def etcd(self) -> Path:
        """The executable of etcd."""
        return self.folder / "etcd"

    @property
    def kube_apiserver(self) -> Path:
        """The executable of the API server."""
        return self.folder / "kube-apiserver"

    @property
    def kube_scheduler(self) -> Path:
        """The executable of the scheduler to compare with."""
        return self.folder / "kube-scheduler"


def find_assets() -> Assets:
    """The folder that ``KUBEBUILDER_ASSETS`` names.

    Raises:
        AssetsMissing: it names none, or an executable is not there; says which.
    """
    named = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not named:
        raise AssetsMissing("KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kube-scheduler")
    assets = Assets(Path(named).resolve())
    needed = (assets.etcd, assets.kube_apiserver, assets.kube_scheduler)
    missing = [path.name for path in needed if not os.access(path, os.X_OK)]
    if missing:
        raise AssetsMissing(f"KUBEBUILDER_ASSETS ({named}) has no {' and no '.join(missing)}")
    return assets


@frozen
class ServerFiles:
    """The certificates and tokens of the API server, in one folder."""

    folder: Path

    @classmethod
    def write(cls, folder: Path) -> ServerFiles:
        """Write new ones into *folder*."""
        files, authority = cls(folder), trustme.CA()
        leaf = authority.issue_cert("127.0.0.1", "localhost")
        authority.cert_pem.write_to_path(files.authority)
        leaf.cert_chain_pems[0].write_to_path(files.certificate)
        leaf.private_key_pem.write_to_path(files.key)
        files.tokens.write_text(TOKENS)
        return files

    @property
    def authority(self) -> Path:
        """The certificate of the authority that signed the server's."""
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """The server's certificate."""
        return self.folder / "serving.pem"

    @property
    def key(self) -> Path:
        """Its private key, which also signs tokens of service accounts."""
        return self.folder / "serving.key"

    @property
    def tokens(self) -> Path:
        """The bearer tokens that are accepted."""
        return self.folder / "tokens.csv"


def etcd_command(binary: Path, data_folder: Path, url: str) -> list[str]:
    """An etcd of one member, without waiting for the disk."""
    peers = f"http://127.0.0.1:{free_port()}"
    return [
        str(binary),
        f"--data-dir={data_folder}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
    ]


def api_server_command(binary: Path, files: ServerFiles, port: int, etcd_url: str) -> list[str]:
    """An API server with RBAC and without the controllers that a cluster has."""
    return [
        str(binary),
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--cert-dir={files.folder}",
        f"--tls-cert-file={files.certificate}",
        f"--tls-private-key-file={files.key}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=RBAC",
        # No controller issues tokens for pods here, and none would ever report that a node has become ready.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.key}",
        f"--service-account-signing-key-file={files.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]


@frozen
class ApiServer:
    """A running API server, and a client with all rights and no limit."""

    url: str
    files: ServerFiles
    client: KubeClient


@asynccontextmanager
async def api_server(
    assets: Assets, files: ServerFiles, folder: Path, *, flags: Sequence[str] = ()
) -> AsyncIterator[ApiServer]:
    """etcd, and kube-apiserver with more *flags*; the data is in ``etcd`` below *folder*, the logs are beside it.

    Both have ended when the block is left, so the data can be copied.
    """
    etcd_url, port = f"http://127.0.0.1:{free_port()}", free_port()
    url = f"https://127.0.0.1:{port}"
    settings = ConnectionSettings(server=url, tls=TlsSettings(ca_file=str(files.authority)), token=ADMIN_TOKEN)
    async with _process(etcd_command(assets.etcd, folder / "etcd", etcd_url), folder / "etcd.log") as etcd:
        await _until(lambda: is_healthy(etcd_url), etcd, folder / "etcd.log")
        command = [*api_server_command(assets.kube_apiserver, files, port, etcd_url), *flags]
        log = folder / "kube-apiserver.log"
        async with _process(command, log) as process, connect(settings, qps=-1) as client:
            await _until(lambda: is_ready(client), process, log)
            yield ApiServer(url, files, client)


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


@asynccontextmanager
async def _process(command: Sequence[str], log_file: Path) -> AsyncIterator[trio.Process]:
    """A process that is asked to end when the block is left, and killed if it does not."""
    with log_file.open("ab") as log:
        process = await trio.lowlevel.open_process(list(command), stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            with trio.move_on_after(STOP_SECONDS) as waiting:
                await process.wait()
            if waiting.cancelled_caught:
                process.kill()
                await process.wait()


async def _until(check: Callable[[], Awaitable[bool]], process: trio.Process, log_file: Path) -> None:
    with trio.move_on_after(READY_SECONDS):
        while not await check():
            if process.poll() is not None:
                break
            await trio.sleep(POLL_SECONDS)
        else:
            return
    raise SystemExit("\n".join([f"{log_file.stem} did not become ready:", *_last_lines(log_file)]))


def _last_lines(log_file: Path) -> list[str]:
    return log_file.read_text(errors="replace").splitlines()[-5:]


async def is_healthy(url: str) -> bool:
    """Whether the etcd at *url* can be used."""
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            return (await client.get(f"{url}/health")).status_code == 200
        except httpx.TransportError:
            return False


async def is_ready(client: KubeClient) -> bool:
    """Whether an API server can be used."""
    try:
        if (await client.request(b"GET", b"/readyz")).status != 200:
            return False
        return (await client.request(b"GET", b"/api/v1/namespaces/default")).status == 200
    except KubeClientError:
        return False
