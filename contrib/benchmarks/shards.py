"""What sharing the work costs: the processor time of all replicas for a pod, pods per second, time to bind.

On few cores many replicas wait for each other, so there are two ways to measure. *One of N* is one process that holds
one of N shards, while the server binds the pods of the others itself: what it takes for a pod of the cluster, times N,
is what N processes take that have a core each. *N processes* are all of them, on the cores that there are.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence

from attrs import frozen

from contrib.benchmarks.report import Figure
from contrib.benchmarks.scheduler_process import SchedulerProcess
from contrib.benchmarks.simulated_cluster import SimulatedCluster, simulated_cluster
from contrib.benchmarks.simulated_server import FAST
from contrib.benchmarks.workload import APPS

NODES = (1_000,)
PODS = 2_000
"""Those that one process binds."""
REPLICAS = (1, 2, 4, 8)
PODS_PER_SECOND = 50.0
SECONDS = 8.0
PAUSE_SECONDS = 1.0
WORK_GOAL = 1.25
NOMINATED_GOAL = 2.5
CORES_GOAL = 0.85


@frozen
class Burst:
    """What became of pods that were created as fast as they were bound."""

    pods: int
    seconds: float
    cpu_seconds: tuple[float, ...]
    """The CPU time of each process."""
    busy_seconds: float
    """For how long each has run or waited for a core, on average."""

    @property
    def cpu_per_pod(self) -> float:
        """In microseconds, all processes together."""
        return sum(self.cpu_seconds) / self.pods * 1e6


def run(nodes: Sequence[int] = (), pods: int | None = None) -> Iterator[Figure]:
    """One process that shares nothing, then one of N, then N processes."""
    for count in nodes or NODES:
        yield from _run(count, pods or PODS)


def _run(nodes: int, pods: int) -> Iterator[Figure]:
    base = one_of(0, nodes, pods)
    where = f"{nodes:,} nodes"
    yield Figure("shards", f"{where}, no sharding", "scheduler CPU", base.cpu_per_pod, "µs/pod")
    yield Figure("shards", f"{where}, no sharding", "throughput", base.pods / base.seconds, "pods/s")
    for replicas in REPLICAS:
        burst, case = one_of(replicas, nodes, pods), f"{where}, one of {replicas}"
        of_all = replicas * burst.cpu_per_pod
        yield Figure("shards", case, "its CPU", burst.cpu_per_pod, "µs/pod of the cluster")
        yield Figure(
            "shards", case, f"times {replicas}, against no sharding", of_all / base.cpu_per_pod, "times", WORK_GOAL
        )
        yield Figure("shards", case, "throughput of the cluster", burst.pods / burst.seconds, "pods/s")
        yield _busy(case, burst)
    for replicas in REPLICAS:
        yield from all_of(replicas, nodes, pods, f"{where}, {replicas} processes")


def _busy(case: str, burst: Burst) -> Figure:
    """Whether the replicas do what their cores allow; else the server is the limit."""
    share = burst.busy_seconds / burst.seconds
    return Figure("shards", case, "at work or runnable", share, "of the time", CORES_GOAL, more_is_better=True)


def one_of(replicas: int, nodes: int, pods: int) -> Burst:
    """Measure one process that binds *pods*, a share of one in so many *replicas*; of 0: one that shares nothing."""
    with simulated_cluster(FAST) as cluster:
        cluster.ask("create_nodes", count=nodes)
        cluster.ask("create_running_pods", count=APPS)
        cluster.ask("hold_other_shards", shards=max(replicas, 1))
        with cluster.replicas(1, replicas) as (scheduler,):
            count = pods * max(replicas, 1)
            _burst_of_one(cluster, scheduler, count // 5)
            return _burst_of_one(cluster, scheduler, count)


def _burst_of_one(cluster: SimulatedCluster, scheduler: SchedulerProcess, pods: int) -> Burst:
    bound, events = (cluster.ask(what, count=0, seconds=0) for what in ("wait_bound", "wait_events"))
    cpu, busy, began = scheduler.cpu_seconds(), scheduler.busy_seconds(), time.monotonic()
    own = cluster.ask("create_shared_pods", count=pods)
    seconds = cluster.wait_bound(bound[0] + pods, scheduler).last_at - began
    busy = scheduler.busy_seconds() - busy
    used = cluster.cpu_until_last_event(events + own, scheduler) - cpu
    return Burst(pods, seconds, (used,), busy)


def all_of(replicas: int, nodes: int, pods: int, case: str) -> Iterator[Figure]:
    """Measure so many *replicas*: a burst of pods, then pods at a low rate, each for one node, mostly of another."""
    with simulated_cluster(FAST) as cluster:
        cluster.ask("create_nodes", count=nodes)
        with cluster.replicas(replicas, 2 * replicas) as schedulers:
            first = schedulers[0]
            cluster.ask("create_pods", count=pods // 5)
            cluster.wait_bound(pods // 5, first)
            time.sleep(PAUSE_SECONDS)
            burst = _burst_of_all(cluster, schedulers, pods, pods // 5)
            cluster.ask("create_pods_steadily", per_second=PODS_PER_SECOND, seconds=SECONDS, type="one-node")
            cluster.wait_bound(round(PODS_PER_SECOND * SECONDS), first)
            waited: dict[bool, list[float]] = {False: [], True: []}
            for seconds, was_nominated in zip(*map(cluster.ask, ("seconds_to_bind", "were_nominated")), strict=True):
                waited[was_nominated].append(seconds)
    each = ", ".join(f"{one / pods * 1e6:.0f}" for one in burst.cpu_seconds)
    yield Figure("shards", case, f"CPU of all ({each})", burst.cpu_per_pod, "µs/pod")
    yield Figure("shards", case, "throughput", pods / burst.seconds, "pods/s")
    yield _busy(case, burst)
    local = statistics.median(waited[False])
    yield Figure("shards", case, "creation to bind, own node, p50", local * 1e3, "ms")
    if waited[True]:
        nominated = statistics.median(waited[True])
        yield Figure("shards", case, "creation to bind, nominated, p50", nominated * 1e3, "ms")
        yield Figure("shards", case, "nominated, against own node", nominated / local, "times", NOMINATED_GOAL)


def _burst_of_all(cluster: SimulatedCluster, schedulers: Sequence[SchedulerProcess], pods: int, before: int) -> Burst:
    def cpu() -> list[float]:
        return [one.cpu_seconds() for one in schedulers]

    def busy() -> float:
        return statistics.fmean(one.busy_seconds() for one in schedulers)

    cpu_before, busy_before, began = cpu(), busy(), time.monotonic()
    cluster.ask("create_pods", count=pods)
    seconds = cluster.wait_bound(before + pods, schedulers[0]).last_at - began
    was_busy = busy() - busy_before
    cluster.cpu_until_last_event(before + pods, schedulers[0])
    used = tuple(after - one for after, one in zip(cpu(), cpu_before, strict=True))
    return Burst(pods, seconds, used, was_busy)
