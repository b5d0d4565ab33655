"""What a fault works on: a control plane, a relay in front of it, and one scheduler behind the relay."""

from __future__ import annotations

import itertools
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
import msgspec
import trio
import trustme
from attrs import define, evolve, field

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.control_plane import ControlPlane, control_plane
from contrib.control_plane.server_process import ServerProcess
from contrib.control_plane.servers import SCHEDULER_TOKEN, Assets, ServerFiles, free_port
from contrib.faults.load import POD_PATH, Load, node_manifests, pod_manifest
from contrib.faults.relay import Relay
from trio_sched.kube_client.connection import JSON
from trio_sched.kube_client.errors import KubeClientError, NotFound

POLL_SECONDS = 0.01
BIND_SECONDS = 300.0
"""A pod that is not bound after so long is not waited for any longer."""
TRIO_SCHED = (sys.executable, "-m", "trio_sched")
_CLIENT_AUTHORITY = "clients.pem"
OPEN_PATHS = "/healthz,/readyz,/livez,/metrics,/debug/*"


class NotBound(Exception):
    """A pod was not bound in time."""


@define(eq=False)
class Cluster:
    """A cluster with a scheduler, and the means to disturb it."""

    plane: ControlPlane
    relay: Relay
    scheduler: ServerProcess
    folder: Path
    random: Random
    secure_port: int
    is_ours: bool
    """Whether the scheduler is trio-sched."""
    load: Load
    client_authority: trustme.CA
    """Signs certificates of clients that the API server takes."""
    has_endpoints: bool = True
    """Whether the scheduler answers requests of anybody, and its log can be read."""
    answers: list[str] = field(init=False, factory=list)
    """What both schedulers must have done alike."""
    problems: list[str] = field(init=False, factory=list)
    """What a fault has found not to hold."""
    _numbers: Callable[[], int] = field(init=False, factory=lambda: itertools.count().__next__)

    @property
    def client_authority_file(self) -> Path:
        """The certificate of the authority of clients that the API server trusts."""
        return self.folder / _CLIENT_AUTHORITY

    def replace_serving_certificate(self) -> bytes:
        """Write a certificate of a new authority for the API server; returns the authority's.

        The bundle of the scheduler is not changed: that is done when it is, a moment later, in a cluster.
        """
        authority = trustme.CA()
        leaf = authority.issue_cert("127.0.0.1", "localhost")
        leaf.cert_chain_pems[0].write_to_path(self.plane.files.certificate)
        leaf.private_key_pem.write_to_path(self.plane.files.key)
        return authority.cert_pem.bytes()

    @property
    def authority(self) -> Path:
        """The bundle of certificates that the scheduler trusts."""
        return self.folder / "bundle.pem"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the scheduler."""
        return self.folder / "kubeconfig"

    async def call(self, method: bytes, path: bytes, body: object = None, *, headers: bytes = JSON) -> Any:
        """A request of the administrator, past the relay."""
        data = b"" if body is None else msgspec.json.encode(body)
        answer = await self.plane.admin.call(method, path, headers=headers if data else b"", body=data)
        return msgspec.json.decode(answer)

    async def list_pods(self) -> dict[str, Any]:
        """All pods by name."""
        listed = await self.call(b"GET", POD_PATH.encode())
        return {pod["metadata"]["name"]: pod for pod in listed["items"]}

    async def create_pod(self, **details: Any) -> str:
        """Create a pod that fits; returns its name."""
        name = f"p-{self._numbers()}"
        await self.call(b"POST", POD_PATH.encode(), pod_manifest(name, **details))
        return name

    async def node_of(self, pod: str) -> str:
        """Where *pod* is bound; empty if it is not, or gone."""
        try:
            found = await self.call(b"GET", f"{POD_PATH}/{pod}".encode())
        except NotFound:
            return ""
        return str(found["spec"].get("nodeName", ""))

    async def wait_bound(self, pod: str) -> None:
        """Wait until *pod* is bound.

        Raises:
            NotBound: it took too long.
        """
        if not await eventually(partial(self.node_of, pod), within_seconds=BIND_SECONDS):
            raise NotBound(f"{pod} was not bound within {BIND_SECONDS:.0f} s")

    async def seconds_to_bind(self) -> float:
        """Create a pod now, and measure how long it takes until it is bound."""
        began = trio.current_time()
        await self.wait_bound(await self.create_pod())
        return trio.current_time() - began

    async def page(self, path: str) -> str:
        """What the scheduler's own endpoints say at *path*."""
        async with httpx.AsyncClient(verify=False, trust_env=False, timeout=10) as client:
            answer = await client.get(f"https://127.0.0.1:{self.secure_port}{path}")
        return answer.raise_for_status().text

    async def restart_scheduler(self, number: int = signal.SIGKILL) -> float:
        """A fresh process; returns how long it took from its start until it has bound a pod."""
        await self.scheduler.stop(number)
        await self.scheduler.start()
        return await self.seconds_to_bind()

    async def repair(self) -> None:
        """End every fault, with servers and a scheduler that were started again."""
        await self.plane.restart()
        await self.relay.restart()
        await self.restart_scheduler()

    @asynccontextmanager
    async def changed_scheduler(self, **changes: Any) -> AsyncIterator[None]:
        """Another process inside the block, with *changes* to how it is started; afterwards one as before."""
        usual, self.has_endpoints = self.scheduler, changes.pop("has_endpoints", True)
        await usual.stop(signal.SIGKILL)
        self.scheduler = evolve(usual, **changes)
        try:
            await self.restart_scheduler()
            yield
        finally:
            with trio.CancelScope(shield=True):
                await self.scheduler.stop(signal.SIGKILL)
            self.scheduler, self.has_endpoints = usual, True
            await self.restart_scheduler()


@asynccontextmanager
async def cluster(assets: Assets, folder: Path, command: Sequence[str], *, seed: int) -> AsyncIterator[Cluster]:
    """A cluster with *command* as its scheduler, which has bound a pod."""
    files, client_authority = ServerFiles.write(folder), trustme.CA()
    client_authority.cert_pem.write_to_path(folder / _CLIENT_AUTHORITY)
    # The certificate of the server is replaced in some faults, the key for the tokens of service accounts is not.
    signing_key = folder / "tokens.key"
    signing_key.write_bytes(files.key.read_bytes())
    flags = [
        f"--service-account-key-file={signing_key}",
        f"--service-account-signing-key-file={signing_key}",
        f"--client-ca-file={folder / _CLIENT_AUTHORITY}",
    ]
    async with control_plane(assets, files, folder, flags=flags, end_with=signal.SIGKILL) as plane:
        relay = Relay(plane.port)
        async with relay.running():
            secure_port = free_port()
            write_kubeconfig(
                folder / "kubeconfig",
                server=f"https://127.0.0.1:{relay.port}",
                authority=folder / "bundle.pem",
                token=SCHEDULER_TOKEN,
            )
            scheduler = ServerProcess(scheduler_command(command, folder, secure_port), folder / "scheduler.log")
            here = Cluster(
                plane,
                relay,
                scheduler,
                folder,
                Random(seed),
                secure_port,
                command == TRIO_SCHED,
                Load(plane.admin, Random(seed)),
                client_authority,
            )
            here.authority.write_bytes(plane.files.authority.read_bytes())
            for path, manifest in node_manifests():
                await here.call(b"POST", path.encode(), manifest)
            try:
                await here.restart_scheduler()
                yield here
            finally:
                await here.scheduler.stop(signal.SIGKILL)


def scheduler_command(
    command: Sequence[str], folder: Path, secure_port: int, *, name: str = "scheduler", leader_elect: bool = False
) -> list[str]:
    """The command line of a scheduler whose kubeconfig is in *folder*; its configuration file is written."""
    kubeconfig, config = folder / "kubeconfig", folder / f"{name}.yaml"
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
        "leaderElection": {"leaderElect": leader_elect},
    }
    config.write_text(json.dumps(configuration))
    serving = [f"--secure-port={secure_port}", "--bind-address=127.0.0.1"]
    if secure_port:
        serving += [
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--authentication-tolerate-lookup-failure=true",
            f"--authorization-always-allow-paths={OPEN_PATHS}",
        ]
    return [*command, f"--config={config}", "-v=2", *serving]


async def eventually(check: Callable[[], Awaitable[object]], *, within_seconds: float) -> bool:
    """Poll *check* until it is true; returns whether it was."""
    with trio.move_on_after(within_seconds):
        while True:
            try:
                if await check():
                    return True
            except KubeClientError:
                pass
            await trio.sleep(POLL_SECONDS)
    return False
