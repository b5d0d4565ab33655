"""One scheduler on one workload: on a copy of the prepared state, behind servers of its own."""

from __future__ import annotations

import math
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
import trio
from attrs import frozen

from contrib.benchmarks.real.observer import Observer
from contrib.benchmarks.real.workloads import POD_PATH, Workload, pod_to_schedule
from contrib.benchmarks.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    write_configuration,
    write_kubeconfig,
)
from contrib.control_plane.control_plane import ControlPlane, control_plane
from contrib.control_plane.servers import SCHEDULER_TOKEN, Assets, ServerFiles
from trio_sched.kube_client.connection import JSON

TIMEOUT_SECONDS = 1200.0
SETTLED_SECONDS = 2.0
"""After the last expected event more may come, about victims for instance."""
SILENT_SECONDS = 15.0
"""kube-scheduler drops events when its queue is full: those that are not there by then will not come."""
POLL_SECONDS = 0.05


@frozen(kw_only=True)
class Measured:
    """What one run has shown; seconds are counted from the start of the process, CPU is that of the process.

    Attributes:
        first_bind_seconds: when the first bind was seen.
        last_bind_seconds: when the last bind was seen.
        start_cpu_seconds: the CPU until the first bind or event; at a low rate, until the pods began to come.
        cpu_seconds: the CPU until the last event (or bind); at a low rate, of that only what came after the start.
        peak_mib: the most memory.
        wait_p50_ms: from the creation of a pod to its bind, at a low rate only.
        wait_p99_ms: likewise.
        events: how many of each reason have arrived.
    """

    first_bind_seconds: float
    last_bind_seconds: float
    start_cpu_seconds: float
    cpu_seconds: float
    peak_mib: float
    wait_p50_ms: float | None = None
    wait_p99_ms: float | None = None
    events: Mapping[str, int]


async def measure(
    assets: Assets, files: ServerFiles, workload: Workload, prepared: Path, command: Sequence[str]
) -> Measured:
    """Run the scheduler *command* on a copy of the state in *prepared*."""
    with tempfile.TemporaryDirectory(prefix="trio-sched-bench-") as name:
        folder = Path(name)
        shutil.copytree(prepared / "etcd", folder / "etcd")
        async with control_plane(assets, files, folder) as server:
            kubeconfig = folder / "kubeconfig"
            write_kubeconfig(kubeconfig, server=server.url, authority=files.authority, token=SCHEDULER_TOKEN)
            config = write_configuration(folder, kubeconfig)
            return await _measure(server, workload, config, folder / "scheduler.log", command)


async def _measure(
    server: ControlPlane, workload: Workload, config: Path, log_file: Path, command: Sequence[str]
) -> Measured:
    # Lists everything once, so that the caches of a fresh API server are warm for both schedulers.
    await server.admin.call(b"GET", b"/api/v1/pods?resourceVersion=0")
    await server.admin.call(b"GET", b"/api/v1/nodes?resourceVersion=0")
    running: list[SchedulerProcess] = []
    pods = workload.schedulable | workload.unschedulable
    observer = Observer(server.admin, pods, lambda: running[0].cpu_seconds() if running else 0.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(observer.watch_pods)
        await nursery.start(observer.watch_events)
        with scheduler_process(config, log_file, command=command) as scheduler:
            began = trio.current_time()
            running.append(scheduler)
            measured = await (_low_rate if workload.pods_per_second else _backlog)(
                server, workload, observer, scheduler, began
            )
            nursery.cancel_scope.cancel()
    return measured


async def _backlog(
    _server: ControlPlane, workload: Workload, observer: Observer, scheduler: SchedulerProcess, began: float
) -> Measured:
    await _wait(observer, scheduler, workload.schedulable, workload.unschedulable)
    times = observer.bound_at.values()
    return Measured(
        first_bind_seconds=min(times) - began,
        last_bind_seconds=max(times) - began,
        start_cpu_seconds=observer.first_cpu,
        cpu_seconds=observer.last_cpu,
        peak_mib=scheduler.peak_mib(),
        events=dict(observer.reasons),
    )


async def _low_rate(
    server: ControlPlane, workload: Workload, observer: Observer, scheduler: SchedulerProcess, began: float
) -> Measured:
    first = pod_to_schedule(workload, 0)["metadata"]["name"]
    await _wait(observer, scheduler, {first}, set())
    start_cpu = scheduler.cpu_seconds()
    created_at: dict[str, float] = {}

    async def create(i: int) -> None:
        manifest = pod_to_schedule(workload, i)
        created_at[manifest["metadata"]["name"]] = trio.current_time()
        await server.admin.call(b"POST", POD_PATH.encode(), headers=JSON, body=msgspec.json.encode(manifest))

    async with trio.open_nursery() as nursery:
        beginning = trio.current_time()
        for i in range(1, workload.pods):
            await trio.sleep_until(beginning + i / workload.pods_per_second)
            nursery.start_soon(partial(create, i))
    await _wait(observer, scheduler, workload.schedulable, set())
    waited = sorted((observer.bound_at[name] - moment) * 1e3 for name, moment in created_at.items())
    return Measured(
        first_bind_seconds=observer.bound_at[first] - began,
        last_bind_seconds=max(observer.bound_at.values()) - began,
        start_cpu_seconds=start_cpu,
        cpu_seconds=observer.last_cpu - start_cpu,
        peak_mib=scheduler.peak_mib(),
        wait_p50_ms=statistics.median(waited),
        wait_p99_ms=waited[math.ceil(len(waited) * 0.99) - 1],
        events=dict(observer.reasons),
    )


async def _wait(observer: Observer, scheduler: SchedulerProcess, schedulable: set[str], refused: set[str]) -> None:
    """Wait until all that must happen to these pods has arrived, and nothing comes any more."""
    began = observer.last_at = trio.current_time()
    while True:
        await trio.sleep(POLL_SECONDS)
        scheduler.check_running()
        now = trio.current_time()
        silent = now - observer.last_at
        if len(observer.bound_at.keys() & schedulable) == len(schedulable):
            all_events = schedulable <= observer.scheduled and refused <= observer.refused
            if silent >= (SETTLED_SECONDS if all_events else SILENT_SECONDS):
                return
        if now - began > TIMEOUT_SECONDS:
            raise scheduler.failure(f"{len(observer.bound_at)} of {len(schedulable)} pods were bound in time")
