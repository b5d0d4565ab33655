"""How long trio-sched takes to start: ``--version``, and until the first pod is bound in a cluster of some size.

Seconds include those that the simulator needs for its lists, which for large clusters are most of them; CPU does not.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from contrib.benchmarks.report import Figure
from contrib.benchmarks.scheduler_process import TRIO_SCHED
from contrib.benchmarks.simulated_cluster import TIMEOUT_SECONDS, simulated_cluster

SIZES = ((1_000, 5_000), (5_000, 50_000))
"""Nodes and running pods."""
PODS_PER_NODE = 10
"""Where only the number of nodes is given."""
FIRST_BIND_GOALS = {(1_000, 5_000): 1.2, (5_000, 50_000): 3.0, (15_000, 150_000): 12.0}
PEAK_GOALS = {(5_000, 50_000): 225.0, (15_000, 150_000): 700.0}
RUNS = 5
IMPORTS = (sys.executable, "-c", "import trio, numpy")


def run(node_counts: Sequence[int] = ()) -> Iterator[Figure]:
    """``--version`` beside the imports that any scheduler on trio and numpy needs; then clusters of these sizes."""
    yield from _run_version()
    for nodes, pods in [(count, count * PODS_PER_NODE) for count in node_counts] or SIZES:
        yield from _run_first_bind(nodes, pods)


def _run_version() -> Iterator[Figure]:
    version, imports = [], []
    for _ in range(RUNS + 1):
        version.append(_cpu_and_wall([*TRIO_SCHED, "--version"]))
        imports.append(_cpu_and_wall(IMPORTS))
    for position, what in enumerate(("CPU", "wall")):
        # The first runs write bytecode and fill the caches of the disk.
        ours, theirs = (statistics.median(one[position] for one in runs[1:]) for runs in (version, imports))
        yield Figure("start", "--version", what, ours * 1e3, "ms", round(theirs * 1e3, 1))
        yield Figure("start", "import trio, numpy", what, theirs * 1e3, "ms")


def _cpu_and_wall(command: Sequence[str]) -> tuple[float, float]:
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return used.ru_utime + used.ru_stime, seconds


def _run_first_bind(nodes: int, pods: int) -> Iterator[Figure]:
    case = f"{nodes:,} nodes, {pods:,} running pods"
    with simulated_cluster() as cluster:
        cluster.ask("create_nodes", count=nodes)
        cluster.ask("create_running_pods", count=pods)
        cluster.ask("create_pods", count=1)
        with cluster.scheduler() as scheduler:
            synced = scheduler.wait_synced(timeout_seconds=TIMEOUT_SECONDS)
            first_bind = cluster.wait_bound(1, scheduler).first_at - scheduler.started_at
            scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
            cpu, peak, memory = scheduler.cpu_seconds(), scheduler.peak_mib(), scheduler.memory_mib()
    yield Figure("start", case, "until synced", synced, "s")
    yield Figure("start", case, "until the first bind", first_bind, "s", FIRST_BIND_GOALS.get((nodes, pods)))
    yield Figure("start", case, "CPU", cpu, "s")
    yield Figure("start", case, "memory when idle", memory, "MiB")
    yield Figure("start", case, "peak memory", peak, "MiB", PEAK_GOALS.get((nodes, pods)))
