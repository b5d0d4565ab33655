"""What it costs to follow a cluster that is busy with other things, and pods that come at a low rate."""

import statistics
import time
from collections.abc import Iterator, Sequence

from contrib.benchmarks.report import Figure
from contrib.benchmarks.scheduler_process import SchedulerProcess
from contrib.benchmarks.simulated_cluster import TIMEOUT_SECONDS, SimulatedCluster, simulated_cluster

NODES = 5_000
PODS_PER_NODE = 10
UPDATES_PER_SECOND = 200.0
HEARTBEATS_PER_SECOND = 20.0
"""5,000 kubelets report the status of their node every five minutes when nothing changes: 17 a second."""
SECONDS = 10.0
UPDATE_GOAL = 120.0
LOW_RATE_NODES = 1_000
LOW_RATE_PODS_PER_SECOND = 100.0
SETTLING_SECONDS = 0.3
"""From the last change to the reading of the clock: the scheduler is behind by some milliseconds."""


def run(node_counts: Sequence[int] = ()) -> Iterator[Figure]:
    """Changes of status that move no pod, then pods at a low rate."""
    for nodes in node_counts or (NODES,):
        yield from _run_updates(nodes, nodes * PODS_PER_NODE)
    for nodes in node_counts or (LOW_RATE_NODES,):
        yield from _run_low_rate(nodes)


def _run_updates(nodes: int, pods: int) -> Iterator[Figure]:
    """Changes of the status of running pods, then heartbeats of nodes."""
    case = f"{nodes:,} nodes, {pods:,} running pods"
    with simulated_cluster() as cluster:
        cluster.ask("create_nodes", count=nodes)
        cluster.ask("create_running_pods", count=pods)
        with cluster.scheduler() as scheduler:
            scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
            pod_update = _cpu_per_update(cluster, scheduler, "update_pods_steadily", UPDATES_PER_SECOND)
            heartbeat = _cpu_per_update(cluster, scheduler, "update_nodes_steadily", HEARTBEATS_PER_SECOND)
            memory = scheduler.memory_mib()
    name = f"{UPDATES_PER_SECOND:g} pod updates/s"
    yield Figure("churn", case, name, pod_update * 1e6, "µs CPU/update", UPDATE_GOAL)
    yield Figure("churn", case, f"{HEARTBEATS_PER_SECOND:g} heartbeats of nodes/s", heartbeat * 1e6, "µs CPU/update")
    yield Figure("churn", case, "memory", memory, "MiB")


def _cpu_per_update(cluster: SimulatedCluster, scheduler: SchedulerProcess, command: str, per_second: float) -> float:
    before = scheduler.cpu_seconds()
    updates: int = cluster.ask(command, per_second=per_second, seconds=SECONDS)
    time.sleep(SETTLING_SECONDS)
    return (scheduler.cpu_seconds() - before) / updates


def _run_low_rate(nodes: int) -> Iterator[Figure]:
    """Pods one by one at equal distances: here the wake-ups cost, not the decisions."""
    with simulated_cluster() as cluster:
        cluster.ask("create_nodes", count=nodes)
        with cluster.scheduler() as scheduler:
            scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
            before = scheduler.cpu_seconds()
            cluster.ask("create_pods_steadily", per_second=LOW_RATE_PODS_PER_SECOND, seconds=SECONDS)
            pods = round(LOW_RATE_PODS_PER_SECOND * SECONDS)
            used = cluster.cpu_until_last_event(pods, scheduler) - before
            waited = sorted(cluster.ask("seconds_to_bind"))
    case = f"{nodes:,} nodes, {LOW_RATE_PODS_PER_SECOND:g} new pods/s"
    yield Figure("churn", case, "scheduler CPU", used / pods * 1e6, "µs/pod")
    yield Figure("churn", case, "creation to bind, p50", statistics.median(waited) * 1e3, "ms")
    yield Figure("churn", case, "creation to bind, p99", waited[int(len(waited) * 0.99)] * 1e3, "ms")
