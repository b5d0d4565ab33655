"""Recordings of clusters in which something happens."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio

from trio_sched.recording.recording_settings import RecordingSettings
from trio_sched.simulator import jumping_clock
from trio_sched.testing import VirtualCluster, virtual_cluster

Fill = Callable[[VirtualCluster], Awaitable[None]]


def record(folder: Path | RecordingSettings, fill: Fill, *, seed: int = 7, **options: Any) -> None:
    """Record a cluster in which *fill* creates pods; *options* are those of `virtual_cluster`."""

    async def run() -> None:
        async with virtual_cluster(record=folder, seed=seed, **options) as cluster:
            await fill(cluster)
            await cluster.settle()
            await cluster.stop_scheduler()

    trio.run(run, clock=jumping_clock())
