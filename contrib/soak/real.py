"""Runs the process of the scheduler on a real API server, and reads its memory while objects come and go."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

import msgspec
import trio
from attrs import define, field, frozen

from contrib.benchmarks.scheduler_process import (
    TRIO_SCHED,
    SchedulerProcess,
    scheduler_process,
    write_configuration,
    write_kubeconfig,
)
from contrib.control_plane.control_plane import ControlPlane, control_plane
from contrib.control_plane.servers import SCHEDULER_TOKEN, Assets, ServerFiles
from contrib.soak.real_workload import (
    API_SERVER_FLAGS,
    SCHEDULER_FLAGS,
    Item,
    namespace_of,
    node_of,
    objects_of,
    standing_objects,
)
from trio_sched.kube_client.connection import JSON, MERGE_PATCH
from trio_sched.kube_client.errors import ConnectionFailed

MINUTE_SECONDS = 60.0
WAVE_SECONDS = 15
"""How long one creates objects, after which the next one does."""
LIFE_SECONDS = 30.0
"""How long its objects stay then."""
WAVES_AT_ONCE = 5
"""On a busy machine deletions do not keep up, and the next wave waits."""
PARALLEL_REQUESTS = 16
TRIES = 5
READY_SECONDS = 60.0
SETTLING_MINUTES = 15
"""Caches fill up meanwhile."""
ALLOWED_MIB = 10.0
"""By how much memory may differ from one time to another, in a process that does not grow."""
CLEARED_MINUTES = 3
"""How long the scheduler is left alone at the end, with nothing but nodes."""


@frozen
class Minute:
    """The scheduler after so many minutes."""

    minute: int
    memory_mib: float
    created: int
    """Pods so far."""
    bound: int
    """Pods that were bound, as far as they are deleted by now."""
    alive: int
    """Objects that exist."""


@define
class Report:
    """What was measured."""

    minutes: list[Minute] = field(factory=list)
    first_mib: float = 0.0
    """Before anything came."""
    last_mib: float = 0.0
    """After all was gone."""

    @property
    def settling_minutes(self) -> int:
        """Those that do not count; a quarter of a short run."""
        return min(SETTLING_MINUTES, len(self.minutes) // 4)

    @property
    def growth_mib(self) -> float:
        """By how much more memory there was at the end than after the settling; a third of the minutes each."""
        counted = [one.memory_mib for one in self.minutes[self.settling_minutes :]]
        third = max(1, len(counted) // 3)
        return statistics.mean(counted[-third:]) - statistics.mean(counted[:third])

    @property
    def is_level(self) -> bool:
        """Whether the scheduler has not grown."""
        return self.growth_mib <= ALLOWED_MIB


async def soak_real(
    assets: Assets,
    minutes: int,
    pods_per_second: int,
    seed: int,
    show: Callable[[Minute], None],
    command: Sequence[str] = TRIO_SCHED,
) -> Report:
    """Run it; *show* is called every minute."""
    with tempfile.TemporaryDirectory(prefix="trio-sched-soak-") as name:
        folder = Path(name)
        files = ServerFiles.write(folder)
        async with control_plane(assets, files, folder, flags=API_SERVER_FLAGS) as server:
            kubeconfig = folder / "kubeconfig"
            write_kubeconfig(kubeconfig, server=server.url, authority=files.authority, token=SCHEDULER_TOKEN)
            config = write_configuration(folder, kubeconfig)
            churn = Churn(server, pods_per_second, Random(seed))
            await churn.in_parallel([partial(churn.create, item) for item in standing_objects()])
            with scheduler_process(config, folder / "scheduler.log", command=command, flags=SCHEDULER_FLAGS) as process:
                return await _soak(churn, process, minutes, show)


async def _soak(churn: Churn, process: SchedulerProcess, minutes: int, show: Callable[[Minute], None]) -> Report:
    await trio.to_thread.run_sync(partial(process.wait_until_idle, timeout_seconds=READY_SECONDS))
    report = Report(first_mib=process.memory_mib())
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(churn.run, minutes * MINUTE_SECONDS)
        for number in range(1, minutes + 1):
            await trio.sleep_until(began + number * MINUTE_SECONDS)
            process.check_running()
            one = Minute(number, process.memory_mib(), churn.created, churn.bound, churn.alive)
            report.minutes.append(one)
            show(one)
    await trio.sleep(CLEARED_MINUTES * MINUTE_SECONDS)
    report.last_mib = process.memory_mib()
    return report


@define(eq=False)
class Churn:
    """Creates and deletes the objects, as users and controllers of a cluster do together."""

    server: ControlPlane
    pods_per_second: int
    rng: Random
    created: int = field(default=0, init=False)
    bound: int = field(default=0, init=False)
    alive: int = field(default=0, init=False)
    _waves: trio.Semaphore = field(factory=lambda: trio.Semaphore(WAVES_AT_ONCE), init=False)
    _limit: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(PARALLEL_REQUESTS), init=False)

    async def run(self, seconds: float) -> None:
        """One wave after the other; the last one is gone when it returns."""
        ends, wave = trio.current_time() + seconds - LIFE_SECONDS, 0
        async with trio.open_nursery() as nursery:
            while trio.current_time() + WAVE_SECONDS < ends:
                await self._waves.acquire()
                nursery.start_soon(self._wave, wave)
                await trio.sleep(WAVE_SECONDS)
                wave += 1

    async def _wave(self, wave: int) -> None:
        try:
            await self._come_and_go(wave)
        finally:
            self._waves.release()

    async def _come_and_go(self, wave: int) -> None:
        node, namespace = node_of(wave), namespace_of(wave)
        await self.create(node)
        await self.create(namespace)
        items: list[Item] = []
        began = trio.current_time()
        for second in range(WAVE_SECONDS):
            await trio.sleep_until(began + second)
            for item in objects_of(wave, second, self.pods_per_second, self.rng):
                await self.create(item)
                items.append(item)
        await trio.sleep(LIFE_SECONDS)
        await self.delete(node)
        await self.in_parallel([partial(self.delete, item) for item in items[::-1]])
        await self._delete_namespace(namespace)

    async def create(self, item: Item) -> None:
        """Create an object."""
        await self._call(b"POST", item.collection, msgspec.json.encode(item.manifest))
        self.alive += 1
        self.created += item.is_pod

    async def delete(self, item: Item) -> None:
        """Delete an object, if nobody has, without waiting for whoever has a finalizer on it."""
        self.alive -= 1
        body = await self._call(b"DELETE", item.path, b'{"gracePeriodSeconds":0}')
        if body is None:  # a victim
            self.bound += item.is_pod
            return
        left = msgspec.json.decode(body)
        if item.is_pod:
            self.bound += bool(left["spec"].get("nodeName"))
        elif left.get("metadata", {}).get("finalizers"):
            await self._call(b"PATCH", item.path, b'{"metadata":{"finalizers":null}}', MERGE_PATCH)

    async def _delete_namespace(self, namespace: Item) -> None:
        """Delete the namespace, as the namespace controller does, except for events: these expire soon."""
        name = namespace.manifest["metadata"]["name"]
        await self.delete(namespace)
        finalized = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
        await self._call(b"PUT", f"{namespace.path}/finalize", msgspec.json.encode(finalized))

    async def _call(self, method: bytes, path: str, body: bytes, headers: bytes = JSON) -> bytes | None:
        """The body of the response; None if the object is not there."""
        for left in reversed(range(TRIES)):
            try:
                reply = await self.server.admin.request(method, path.encode(), headers=headers, body=body)
            except ConnectionFailed:  # a busy machine
                if not left:
                    raise
                continue
            if reply.status < 300 or (reply.status == 409 and left < TRIES - 1):
                return reply.body
            if reply.status == 404 and method != b"POST":
                return None
            if reply.status < 500 or not left:
                text = reply.body[:500].decode(errors="replace")
                raise SystemExit(f"{method.decode()} {path}: {reply.status}: {text}")
        raise AssertionError("the last try has returned or failed")

    async def in_parallel(self, jobs: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Run *jobs*, a few at a time."""

        async def run(job: Callable[[], Awaitable[None]]) -> None:
            async with self._limit:
                await job()

        async with trio.open_nursery() as nursery:
            for job in jobs:
                nursery.start_soon(run, job)
