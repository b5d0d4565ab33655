"""A control plane, a scheduler, a shadow of it, and pods that come and go."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import trio
from attrs import define, field, frozen

from contrib.benchmarks.real.prepare import write_objects
from contrib.benchmarks.real.workloads import NODE_PATH, POD_PATH, PRIORITY_CLASS_PATH
from contrib.benchmarks.scheduler_process import (
    TRIO_SCHED,
    SchedulerProcess,
    scheduler_process,
    write_configuration,
    write_kubeconfig,
)
from contrib.control_plane.control_plane import ControlPlane, control_plane
from contrib.control_plane.servers import SCHEDULER_TOKEN, Assets, ServerFiles
from contrib.shadow.workload import IMPORTANT, mixed_node, mixed_pod
from trio_sched.cli.process.shadow_report import TITLE
from trio_sched.kube_client.connection import JSON, MERGE_PATCH, KubeClient
from trio_sched.kube_client.errors import NotFound
from trio_sched.objects.timestamps import format_time

PARALLEL_REQUESTS = 32
SYNC_SECONDS = 60.0
LOOK_SECONDS = 0.5
MOST_PENDING = 200
BREAK_SECONDS = 0.1
"""While more wait, pods come more slowly, and others go."""
QUIET_SECONDS = 5.0
"""After so long without another bound pod the scheduler has done what it can."""


@frozen(kw_only=True)
class Options:
    """What is run."""

    command: Sequence[str]
    """The command line of the scheduler that schedules."""
    nodes: int
    pods: int
    alive: int
    """While there are more pods, as many are deleted as are created."""
    rate: float
    """Pods per second."""
    seconds: float
    """After this time no more are created."""
    qps: float
    percentage: int
    seed: int


@frozen(kw_only=True)
class Outcome:
    """What the shadow has shown."""

    exit_code: int
    table: str
    report: bytes
    log: str
    summary: str


async def run(assets: Assets, folder: Path, options: Options) -> Outcome:
    """Run it in *folder*.

    Raises:
        ServerDied: a server did not become ready.
    """
    files = ServerFiles.write(folder)
    async with control_plane(assets, files, folder) as server:
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(kubeconfig, server=server.url, authority=files.authority, token=SCHEDULER_TOKEN)
        config = _configuration(folder, kubeconfig, options)
        return await _run(server, folder, config, options)


def _configuration(folder: Path, kubeconfig: Path, options: Options) -> Path:
    config = write_configuration(folder, kubeconfig)
    content: dict[str, Any] = json.loads(config.read_text())
    content["clientConnection"] |= {"qps": options.qps, "burst": int(2 * options.qps)}
    content["percentageOfNodesToScore"] = options.percentage
    config.write_text(json.dumps(content))
    return config


async def _run(server: ControlPlane, folder: Path, config: Path, options: Options) -> Outcome:
    nodes = ((NODE_PATH, mixed_node(i)) for i in range(options.nodes))
    await write_objects(server.admin, nodes)
    await write_objects(server.admin, iter([(PRIORITY_CLASS_PATH, IMPORTANT)]))
    report, log = folder / "report.json", folder / "shadow.log"
    flags = ["--shadow", "--shadow-fail-on=differs", f"--shadow-report={report}", "--secure-port=0", "-v=3"]
    serving = ["--secure-port=0"]
    with scheduler_process(config, log, command=TRIO_SCHED, flags=flags) as shadow:
        await trio.to_thread.run_sync(lambda: shadow.wait_synced(timeout_seconds=SYNC_SECONDS))
        with scheduler_process(config, folder / "scheduler.log", command=options.command, flags=serving) as scheduler:
            began = time.monotonic()
            churn = Churn(server.admin, options, Random(options.seed))
            await churn.run()
            created_seconds = time.monotonic() - began
            await churn.wait_quiet()
            cpu = shadow.cpu_seconds(), scheduler.cpu_seconds()
            peak = shadow.peak_mib()
            exit_code = await _end(shadow)
    lines = log.read_text(errors="replace").splitlines()
    table = lines[next((i for i, line in enumerate(lines) if line.startswith(TITLE)), len(lines)) :]
    summary = (
        f"{churn.created} pods on {options.nodes} nodes created in {created_seconds:.0f} s; "
        f"CPU: shadow {cpu[0]:.1f} s, scheduler {cpu[1]:.1f} s; memory of the shadow {peak:.0f} MiB"
    )
    content = report.read_bytes() if report.exists() else b"{}"
    return Outcome(exit_code=exit_code, table="\n".join(table), report=content, log="\n".join(lines), summary=summary)


async def _end(shadow: SchedulerProcess) -> int:
    shadow.process.send_signal(signal.SIGTERM)
    return await trio.to_thread.run_sync(shadow.process.wait)


@define(eq=False)
class Churn:
    """Pods that come at a rate; while there are many, others of them go."""

    client: KubeClient
    options: Options
    dice: Random
    created: int = field(default=0, init=False)
    """How many pods have been."""
    _bound: list[str] = field(factory=list, init=False)
    """Names of pods that have a node, and are not deleted by this object yet."""
    _started: set[str] = field(factory=set, init=False)
    _deleted: set[str] = field(factory=set, init=False)
    _listed: int = field(default=0, init=False)

    async def run(self) -> None:
        """Create all pods; while the scheduler does not keep up, more slowly."""
        async with trio.open_nursery() as watching:
            watching.start_soon(self._keep_looking)
            async with trio.open_nursery() as nursery:
                limit = trio.CapacityLimiter(PARALLEL_REQUESTS)
                due = trio.current_time()
                ends = due + self.options.seconds
                for number in range(self.options.pods):
                    if due > ends:
                        break
                    self.created += 1
                    due = max(due + 1 / self.options.rate, trio.current_time())
                    await trio.sleep_until(due)
                    nursery.start_soon(self._create, mixed_pod(number, self.dice), limit)
                    if self._listed - len(self._bound) > MOST_PENDING:
                        due += BREAK_SECONDS
                    elif len(self._bound) <= self.options.alive:
                        continue
                    if self._bound:  # a pod that goes while it is being bound leaves no trace of its node
                        nursery.start_soon(self._delete, self._bound.pop(self.dice.randrange(len(self._bound))))
            watching.cancel_scope.cancel()

    async def _create(self, manifest: dict[str, Any], limit: trio.CapacityLimiter) -> None:
        async with limit:
            await self.client.call(b"POST", POD_PATH.encode(), headers=JSON, body=msgspec.json.encode(manifest))

    async def _delete(self, name: str) -> None:
        self._deleted.add(name)
        with suppress(NotFound):  # it has been preempted
            await self.client.call(b"DELETE", f"{POD_PATH}/{name}".encode())

    async def _keep_looking(self) -> None:
        while True:
            await self._look()
            await trio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        """Find out which pods there are, and which of them have a node."""
        listed = msgspec.json.decode(await self.client.call(b"GET", f"{POD_PATH}?resourceVersion=0".encode()))["items"]
        starting = [one["metadata"]["name"] for one in listed if one["spec"].get("nodeName")]
        async with trio.open_nursery() as nursery:
            for name in starting:
                if name not in self._started:
                    self._started.add(name)
                    nursery.start_soon(self._start, name, len(self._started))
        left = [one for one in listed if one["metadata"]["name"] not in self._deleted]
        self._bound = [one["metadata"]["name"] for one in left if one["spec"].get("nodeName")]
        self._listed = len(left)

    async def _start(self, name: str, number: int) -> None:
        """Tell when the pod started, as its kubelet does: which victims matter less depends on it."""
        started = format_time(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number))
        body = msgspec.json.encode({"status": {"startTime": started}})
        with suppress(NotFound):
            await self.client.call(b"PATCH", f"{POD_PATH}/{name}/status".encode(), headers=MERGE_PATCH, body=body)

    async def wait_quiet(self) -> None:
        """Wait until the scheduler binds nothing any more."""
        last, since = -1, trio.current_time()
        while trio.current_time() - since < QUIET_SECONDS:
            await self._look()
            if len(self._bound) != last:
                last, since = len(self._bound), trio.current_time()
            await trio.sleep(LOOK_SECONDS)
