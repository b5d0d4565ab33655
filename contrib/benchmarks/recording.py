"""What ``--record`` costs: the same pods and the same changes of running ones, at the same time with and without it."""

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from contrib.benchmarks.report import Figure
from contrib.benchmarks.scheduler_process import SchedulerProcess
from contrib.benchmarks.simulated_cluster import TIMEOUT_SECONDS, SimulatedCluster, simulated_cluster
from trio_sched.recording.folder import segment_paths

NODES = 1_000
PODS = 4_000
RUNNING_PODS = 5_000
UPDATES_PER_SECOND = 400.0
SECONDS = 5.0
PAIRS = 7
"""What else the machine does costs both of a pair about the same; the median of so many ratios hardly moves by it."""
GOAL_PERCENT = 3.0
GOAL_BYTES = 300.0
_SETTLING_SECONDS = 0.6
"""The thread that writes looks for notes some times a second."""

Act = Callable[[SimulatedCluster, SchedulerProcess], int]


def run(pods: int = PODS, constraint: str = "plain") -> Iterator[Figure]:
    """New pods, then changes of the status of running ones."""

    def schedule(cluster: SimulatedCluster, scheduler: SchedulerProcess) -> int:
        cluster.ask("create_pods", count=pods, type=constraint)
        cluster.cpu_until_last_event(pods, scheduler)
        return pods

    def update(cluster: SimulatedCluster, _scheduler: SchedulerProcess) -> int:
        updates: int = cluster.ask("update_pods_steadily", per_second=UPDATES_PER_SECOND, seconds=SECONDS)
        return updates

    yield from _compare(f"{NODES:,} nodes, {pods:,} {constraint} pods", "pod", 0, schedule)
    yield from _compare(f"{NODES:,} nodes, {UPDATES_PER_SECOND:g} pod updates/s", "update", RUNNING_PODS, update)


def _compare(case: str, unit: str, running_pods: int, act: Act) -> Iterator[Figure]:
    pairs, sizes = [], []
    for pair in range(PAIRS):
        without, with_it, size = _measure_pair(running_pods, act, recorded=pair % 2)
        pairs.append((without, with_it))
        sizes.append(size)
    percent = (statistics.median(with_it / without for without, with_it in pairs) - 1) * 100
    yield Figure("recording", case, "without", statistics.median(one[0] for one in pairs) * 1e6, f"µs CPU/{unit}")
    yield Figure("recording", case, "with", statistics.median(one[1] for one in pairs) * 1e6, f"µs CPU/{unit}")
    yield Figure("recording", case, "cost", percent, "% of CPU", GOAL_PERCENT)
    yield Figure("recording", case, "size", statistics.median(sizes), f"bytes/{unit}", GOAL_BYTES)


def _measure_pair(running_pods: int, act: Act, recorded: int) -> tuple[float, float, float]:
    """CPU seconds without and with a recording, and its bytes, for each of what *act* counts.

    Which of the two is the *recorded* one must alternate: what runs second costs some per cent more or less.
    """
    with ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        clusters = [stack.enter_context(simulated_cluster()) for _ in range(2)]
        for cluster in clusters:
            cluster.ask("create_nodes", count=NODES)
            cluster.ask("create_running_pods", count=running_pods)
        folder = clusters[recorded].folder / "recording"
        schedulers = [
            stack.enter_context(cluster.scheduler(*((f"--record={folder}",) if number == recorded else ())))
            for number, cluster in enumerate(clusters)
        ]
        for scheduler in schedulers:
            scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
        size = _size(folder)

        def measure(number: int) -> tuple[float, int]:
            scheduler = schedulers[number]
            before = scheduler.cpu_seconds()
            count = act(clusters[number], scheduler)
            time.sleep(_SETTLING_SECONDS)
            return (scheduler.cpu_seconds() - before) / count, count

        measured = list(threads.map(measure, range(2)))
        (without, _count), (with_it, count) = measured[1 - recorded], measured[recorded]
        return without, with_it, (_size(folder) - size) / count


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in segment_paths(folder)) if folder.exists() else 0
