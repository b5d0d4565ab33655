"""Runs the waves on a virtual cluster and compares the scheduler's sizes and times at the end with earlier ones."""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from random import Random

import trio
from attrs import define, field, frozen
from trio.testing import MockClock

from contrib.soak.census import census, module_containers
from contrib.soak.workload import STORAGE_CLASS, Size, bring, make_wave, probes, take_away
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.testing import node
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

WAVES_AT_ONCE = 2
WAVE_SECONDS = 60.0
"""Simulated seconds from one wave to the next: enough to schedule it, and for the one that left to be gone."""
_OURS = ("trio_sched.", "plugins_builtin.")
_NOT_THE_SCHEDULER = ("trio_sched.simulator", "trio_sched.testing", "trio._", "trio.", "outcome", "httpx", "logging")
ALLOWED_GROWTH = 1.1
ALLOWED_ENTRIES = 80
"""What a container may have more at the end: a wave differs from another by chance."""


@frozen
class Sample:
    """The scheduler between two waves, when all standing objects but no waves are there."""

    wave: int
    sizes: Counter[str]
    decision_seconds: float
    """The median time of a decision on one of the probes."""
    blocks: int
    """Memory blocks of the interpreter, the simulator's included."""


@define
class Report:
    """What was measured."""

    pods: int = 0
    nodes: int = 0
    bound: int = 0
    samples: list[Sample] = field(factory=list)
    seconds: float = 0.0

    def grown(self) -> dict[str, tuple[int, int]]:
        """Container → most entries in the first half and least in the last quarter, where those are more.

        A cache that is emptied when it is full has any size below its limit at any time.
        """
        first, last = self.samples[: len(self.samples) // 2], self.samples[-max(1, len(self.samples) // 4) :]
        grown: dict[str, tuple[int, int]] = {}
        for path in self.samples[-1].sizes:
            before, after = max(one.sizes[path] for one in first), min(one.sizes[path] for one in last)
            if after > before * ALLOWED_GROWTH + ALLOWED_ENTRIES:
                grown[path] = before, after
        return grown


def soak(size: Size, *, seed: int = 0, samples: int = 8) -> Report:
    """Run it under a clock that jumps.

    Args:
        size: how much comes and goes.
        seed: of everything random.
        samples: how often to measure, at equal distances.
    """
    began = time.perf_counter()
    clock = MockClock(autojump_threshold=0)
    report: Report = trio.run(partial(_soak, size, seed, samples), clock=clock)
    report.seconds = time.perf_counter() - began
    return report


async def _soak(size: Size, seed: int, samples: int) -> Report:
    rng, report = Random(seed), Report()
    standing = [node(f"standing-{i}", labels={"soak.test/standing": "x"}) for i in range(size.standing_nodes)]
    async with virtual_cluster(nodes=standing, seed=seed) as cluster:
        await cluster.create(STORAGE_CLASS)
        listening = cluster.api.store.collection("pods")
        bound: set[str] = set()
        listening.listen(lambda change: bound.add(change.current.key) if _is_bound(change.current.fields) else None)
        every = max(1, size.waves // samples)
        present = []
        for number in range(size.waves):
            wave = make_wave(number, size, rng)
            await bring(cluster, wave)
            present.append(wave)
            report.nodes += len(wave.nodes)
            report.pods += len(wave.pods)
            await trio.sleep(WAVE_SECONDS)
            last = (number + 1) % every == 0
            while present and (last or len(present) >= WAVES_AT_ONCE):
                await take_away(cluster, present.pop(0), rng)
            if last:
                await cluster.settle()
                _forget_events(cluster)
                report.bound += len(bound)
                bound.clear()
                report.samples.append(_sample(cluster, number + 1))
    return report


def _is_bound(fields: dict[str, object]) -> bool:
    spec = fields.get("spec")
    return isinstance(spec, dict) and bool(spec.get("nodeName"))


def _forget_events(cluster: VirtualCluster) -> None:
    """As an API server does after an hour."""
    store = cluster.api.store
    for event in list(store.collection("events").objects.values()):
        store.delete("events", event)


def _sample(cluster: VirtualCluster, wave: int) -> Sample:
    assembly = cluster.scheduler.assembly
    assert assembly is not None
    modules = {name: module for name, module in sys.modules.items() if module is not None}
    roots = {"assembly": assembly, **module_containers(modules, _OURS)}
    seconds = list(_decision_seconds(cluster))
    return Sample(
        wave, census(roots, leave_out=_NOT_THE_SCHEDULER), statistics.median(seconds), sys.getallocatedblocks()
    )


def _decision_seconds(cluster: VirtualCluster) -> Iterator[float]:
    assembly = cluster.scheduler.assembly
    assert assembly is not None
    for probe in probes(200):
        began = time.perf_counter()
        assembly.scheduler.decide(QueuedPodInfo(probe, 0.0))
        yield time.perf_counter() - began
