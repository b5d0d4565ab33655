"""API servers in processes or tasks of their own, on a port: the embedded one, and a real kube-apiserver with etcd."""

import os
import signal
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from attrs import define, field

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.control_plane import ControlPlane, control_plane
from contrib.control_plane.server_process import ServerProcess
from contrib.control_plane.servers import (
    ADMIN_TOKEN,
    SCHEDULER_TOKEN,
    Assets,
    ServerFiles,
    etcd_command,
    free_port,
    is_healthy,
)
from trio_sched.simulator import ApiServer, run_kubelets, serve

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: 1000, burst: 1000}}
leaderElection: {{leaderElect: {leader_elect}, leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 1s}}
"""


async def eventually(check: Callable[[], Awaitable[bool]], *, within_seconds: float) -> None:
    """Poll *check* until it is true; no event tells what happens in other processes."""
    with trio.fail_after(within_seconds):
        while True:
            if await check():
                return
            await trio.sleep(0.1)


@asynccontextmanager
async def process(command: list[str], log_file: Path) -> AsyncIterator[trio.Process]:
    """A process that is gone when the block is left; its output goes to *log_file*."""
    with log_file.open("ab") as log:
        started = await trio.lowlevel.open_process(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
            await started.wait()


@define(eq=False)
class Files:
    """Certificates and configuration in a folder of the test's own."""

    folder: Path
    server: ServerFiles = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.server = ServerFiles.write(self.folder)

    def scheduler_command(self, server: str, *, leader_elect: bool) -> list[str]:
        kubeconfig, config = self.folder / "kubeconfig", self.folder / "scheduler.yaml"
        write_kubeconfig(kubeconfig, server=server, authority=self.server.authority, token=SCHEDULER_TOKEN)
        config.write_text(CONFIGURATION.format(kubeconfig=kubeconfig, leader_elect=str(leader_elect).lower()))
        return [sys.executable, "-m", "trio_sched", "--config", str(config), "--secure-port=0"]


@define(eq=False)
class Server:
    """A running API server, and what an administrator does with it."""

    url: str
    files: Files
    admin: httpx.AsyncClient
    nodes: int
    pods: int
    stop: Callable[[], Awaitable[None]]
    resume: Callable[[], Awaitable[None]]
    plane: ControlPlane | None = None
    """What runs, if it is a real control plane."""

    async def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        response = await self.admin.request(method, path, json=body)
        response.raise_for_status()
        answer: dict[str, Any] = response.json()
        return answer

    async def create_nodes(self) -> None:
        amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts}
        for number in range(self.nodes):
            await self.request("POST", "/api/v1/nodes", {"metadata": {"name": f"n{number}"}, "status": status})

    async def create_pods(self, prefix: str, count: int, *, cpu: str = "100m") -> None:
        container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": cpu}}}
        for number in range(count):
            manifest = {"metadata": {"name": f"{prefix}-{number}"}, "spec": {"containers": [container]}}
            await self.request("POST", "/api/v1/namespaces/default/pods", manifest)

    async def bound(self) -> Counter[bool]:
        listed = await self.request("GET", "/api/v1/namespaces/default/pods")
        return Counter(bool(one["spec"].get("nodeName")) for one in listed["items"])

    async def wait_bound(self, count: int, *, within_seconds: float = 60) -> None:
        async def are_bound() -> bool:
            return (await self.bound())[True] >= count

        await eventually(are_bound, within_seconds=within_seconds)

    async def events(self, reason: str) -> list[dict[str, Any]]:
        listed = await self.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events")
        return [event for event in listed["items"] if event["reason"] == reason]

    async def holder(self) -> str:
        response = await self.admin.get(LEASE)
        return response.json()["spec"]["holderIdentity"] if response.status_code == 200 else ""

    def scheduler(self, name: str, *, leader_elect: bool = False) -> AbstractAsyncContextManager[trio.Process]:
        command = self.files.scheduler_command(self.url, leader_elect=leader_elect)
        return process(command, self.files.folder / f"{name}.log")


async def is_ready(admin: httpx.AsyncClient) -> bool:
    try:
        return (await admin.get("/readyz")).status_code == 200
    except httpx.TransportError:
        return False


@asynccontextmanager
async def embedded_server(files: Files) -> AsyncIterator[Server]:
    api = ApiServer()

    async def stop() -> None:
        api.stop()

    async def resume() -> None:
        api.resume()
        await eventually(partial(is_ready, admin), within_seconds=10)

    async with trio.open_nursery() as nursery:
        serving = partial(serve, api, certificate=files.server.certificate, private_key=files.server.key)
        url = await nursery.start(serving)
        await nursery.start(run_kubelets, api)
        async with admin_of(url, files) as admin:
            yield Server(url, files, admin, 10, 60, stop, resume)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def etcd(binary: Path, folder: Path) -> AsyncIterator[str]:
    """A running etcd; gives its URL."""
    url = f"http://127.0.0.1:{free_port()}"
    server = ServerProcess(etcd_command(binary, folder / "etcd", url), folder / "etcd.log")
    async with server.running(partial(is_healthy, url), end_with=signal.SIGKILL):
        yield url


@asynccontextmanager
async def real_server(files: Files, assets: str = ASSETS, *, all_kinds: bool = False) -> AsyncIterator[Server]:
    running = control_plane(
        Assets(Path(assets)), files.server, files.folder, end_with=signal.SIGKILL, all_kinds=all_kinds
    )
    async with running as plane, admin_of(plane.url, files) as admin:
        stop = partial(plane.api_server.stop, signal.SIGKILL)
        yield Server(plane.url, files, admin, 100, 500, stop, plane.start_api_server, plane)


def admin_of(url: str, files: Files) -> httpx.AsyncClient:
    context = ssl.create_default_context(cafile=str(files.server.authority))
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    return httpx.AsyncClient(base_url=url, headers=headers, verify=context, timeout=30, trust_env=False)


StartServer = Callable[[Files], AbstractAsyncContextManager[Server]]

REAL = pytest.param(
    real_server,
    id="real",
    marks=pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver"),
)
on_both = pytest.mark.parametrize("start_server", [pytest.param(embedded_server, id="embedded"), REAL])
