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

import msgspec
import trio
from attrs import define, field

from contrib.benchmarks.real.servers import SCHEDULER_TOKEN, Assets
from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.faults.control_plane import ControlPlane, Server, control_plane
from contrib.faults.relay import Relay
from trio_sched.kube_client.connection import JSON
from trio_sched.kube_client.errors import KubeClientError, NotFound

NODES = 8
POLL_SECONDS = 0.01
BIND_SECONDS = 300.0
"""A pod that is not bound after so long is not waited for any longer."""
TRIO_SCHED = (sys.executable, "-m", "trio_sched")
POD_PATH = b"/api/v1/namespaces/default/pods"


class NotBound(Exception):
    """A pod was not bound in time."""


@define(eq=False)
class World:
    """A cluster with a scheduler, and the means to disturb it."""

    plane: ControlPlane
    relay: Relay
    scheduler: Server
    folder: Path
    random: Random
    is_ours: bool
    """Whether the scheduler is trio-sched."""
    _numbers: Callable[[], int] = field(init=False, factory=lambda: itertools.count().__next__)

    @property
    def authority(self) -> Path:
        """The bundle of certificates that the scheduler trusts."""
        return self.folder / "bundle.pem"

    async def call(self, method: bytes, path: bytes, body: object = None) -> Any:
        """A request of the administrator, past the relay."""
        data = b"" if body is None else msgspec.json.encode(body)
        return msgspec.json.decode(await self.plane.admin.call(method, path, headers=JSON if data else b"", body=data))

    async def create_pod(self, *, cpu: str = "10m", **spec: Any) -> str:
        """Create a pod that fits; returns its name."""
        name = f"p-{self._numbers()}"
        container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": cpu}}}
        manifest = {
            "metadata": {"name": name},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
        }
        await self.call(b"POST", POD_PATH, manifest)
        return name

    async def node_of(self, pod: str) -> str:
        """Where *pod* is bound; empty if it is not, or gone."""
        try:
            found = await self.call(b"GET", POD_PATH + b"/" + pod.encode())
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

    async def restart_scheduler(self) -> None:
        """A fresh process, with its caches filled: it has bound a pod."""
        await self.scheduler.stop(signal.SIGKILL)
        await self.scheduler.start()
        await self.seconds_to_bind()

    async def delete_pods(self) -> None:
        """Delete all pods."""
        await self.call(b"DELETE", POD_PATH, {"gracePeriodSeconds": 0})


@asynccontextmanager
async def world(assets: Assets, folder: Path, command: Sequence[str], *, seed: int) -> AsyncIterator[World]:
    """A cluster of `NODES` nodes, with *command* as its scheduler, which has bound a pod."""
    async with control_plane(assets, folder) as plane:
        relay = Relay(plane.port)
        async with relay.running():
            scheduler = Server(_command(command, folder, relay.port), folder / "scheduler.log")
            here = World(plane, relay, scheduler, folder, Random(seed), command == TRIO_SCHED)
            here.authority.write_bytes(plane.files.authority.read_bytes())
            await _create_nodes(here)
            try:
                await here.restart_scheduler()
                yield here
            finally:
                await scheduler.stop(signal.SIGKILL)


def _command(command: Sequence[str], folder: Path, port: int) -> list[str]:
    kubeconfig, config = folder / "kubeconfig", folder / "scheduler.yaml"
    authority = folder / "bundle.pem"
    write_kubeconfig(kubeconfig, server=f"https://127.0.0.1:{port}", authority=authority, token=SCHEDULER_TOKEN)
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
        "leaderElection": {"leaderElect": False},
    }
    config.write_text(json.dumps(configuration))
    return [*command, f"--config={config}", "--secure-port=0", "-v=2"]


async def _create_nodes(here: World) -> None:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "1000"}
    for number in range(NODES):
        manifest = {"metadata": {"name": f"n{number}"}, "status": {"allocatable": amounts, "capacity": amounts}}
        await here.call(b"POST", b"/api/v1/nodes", manifest)


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
