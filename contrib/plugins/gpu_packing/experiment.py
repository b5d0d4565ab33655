"""How much of a cluster's GPUs is allocated when it is full: GpuPacking, best fit and the paper's policy on one trace.

As in Weng et al. (USENIX ATC 2023): the 1,213 nodes with GPUs of the "openb" trace; its tasks, and more drawn from
them until they ask for 130 % of the GPUs, arrive one by one in random order; what does not fit stays pending. Measured
is the share of GPUs that is allocated then, by the real scheduler on a simulated API server::

    python contrib/plugins/gpu_packing/experiment.py --data FOLDER_WITH_THE_TRACE --keep

A run takes about a minute. Remove results.json to start over.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import trio
from attrs import asdict, frozen
from trio.testing import MockClock

from trio_sched.plugin_api import Node, Pod
from trio_sched.testing import node, node_affinity, pod, term
from trio_sched.testing.cluster import virtual_cluster

sys.path.insert(0, str(Path(__file__).parent))

from trio_sched_gpu_packing import GpuPacking
from trio_sched_gpu_packing.fragmentation import Weights

RESOURCE: Final = "trio-sched.dev/gpu-milli"
MODEL: Final = "nvidia.com/gpu.product"
ARRIVING: Final = 1.3
"""What the pods ask for together, as a share of the cluster's GPUs."""
PAUSE_SECONDS: Final = 0.1
"""Between two arrivals, of simulated time: the mix of pods is learnt meanwhile."""
FIRST_SEED: Final = 42
RESULTS: Final = Path(__file__).parent / "results.json"
PAPER: Final = {
    "default": {"best fit": 93.1, "FGD": 95.4},
    "gpuspec33": {"best fit": 93.1, "FGD": 94.6},
    "multigpu50": {"best fit": 95.7, "FGD": 97.2},
}
"""Means of ten runs, in percent, from the results that the paper's authors published with their simulator."""

CONFIG: Final = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
profiles:
  - plugins:
      multiPoint:
        enabled: [{{name: GpuPacking, weight: 1}}]
      score:
        disabled: [{{name: "*"}}]
        enabled: [{{name: GpuPacking}}]
      postFilter:
        disabled: [{{name: "*"}}]
    pluginConfig:
      - name: GpuPacking
        args: {{resource: {RESOURCE}, unitsPerGpu: 1000, modelLabel: {MODEL}}}
"""


class BestFit(GpuPacking):
    """The node, and the GPU, that is left with least."""

    weights: ClassVar[Weights] = Weights(filled=0, one_pod=0)


class FragmentationGradient(GpuPacking):
    """The measure of the paper alone."""

    weights: ClassVar[Weights] = Weights(filled=0, one_pod=1, best_fit=0)


POLICIES: Final = {"best fit": BestFit, "FGD": FragmentationGradient, "GpuPacking": GpuPacking}


@frozen
class Task:
    """A row of the trace."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    milli: int
    models: tuple[str, ...]

    @property
    def gpu_milli(self) -> int:
        """What it asks for of GPUs, in thousandths of one."""
        return self.gpus * self.milli


@frozen
class Run:
    """The outcome of one run."""

    trace: str
    policy: str
    seed: int
    allocated_percent: float
    pending: int
    seconds: float


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a gzipped CSV file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_tasks(folder: Path, trace: str) -> list[Task]:
    """The tasks of a trace."""
    return [
        Task(
            cpu_milli=int(row["cpu_milli"]),
            memory_mib=int(row["memory_mib"]),
            gpus=int(row["num_gpu"]),
            milli=int(row["gpu_milli"]) if int(row["num_gpu"]) else 0,
            models=tuple(filter(None, (row.get("gpu_spec") or "").split("|"))),
        )
        for row in read_rows(folder / f"openb_pod_list_{trace}.csv.gz")
    ]


def read_nodes(folder: Path) -> list[Node]:
    """The nodes with GPUs."""
    return [
        node(
            row["sn"],
            cpu=f"{row['cpu_milli']}m",
            memory=f"{row['memory_mib']}Mi",
            pods=1000,
            allocatable={RESOURCE: int(row["gpu"]) * 1000},
            labels={MODEL: row["model"]},
        )
        for row in read_rows(folder / "openb_node_list_gpu_node.csv.gz")
    ]


def arrivals(tasks: list[Task], capacity_milli: int, seed: int) -> list[Task]:
    """The tasks, and others drawn from them until `ARRIVING` is reached, in random order."""
    chance = random.Random(seed)
    arriving, asked = list(tasks), sum(task.gpu_milli for task in tasks)
    while asked + (drawn := chance.choice(tasks)).gpu_milli <= ARRIVING * capacity_milli:
        asked += drawn.gpu_milli
        arriving.append(drawn)
    chance.shuffle(arriving)
    return arriving


def as_pod(number: int, task: Task) -> Pod:
    """The pod of a task."""
    return pod(
        f"task-{number:05}",
        cpu=f"{task.cpu_milli}m",
        memory=f"{task.memory_mib}Mi",
        requests={RESOURCE: task.gpu_milli} if task.gpus else None,
        affinity=node_affinity(term(f"{MODEL} In {' '.join(task.models)}")) if task.models else None,
    )


async def fill(nodes: list[Node], tasks: Iterable[Task], policy: type[GpuPacking], seed: int) -> tuple[int, int]:
    """Schedule the tasks; returns the GPU thousandths that were allocated, and the number of pending pods."""
    asked = {f"task-{number:05}": task for number, task in enumerate(tasks)}
    async with virtual_cluster(
        nodes=nodes, config=CONFIG, plugins=[policy], kubelets=False, seed=seed, real_seconds=3600
    ) as cluster:
        for number, task in enumerate(asked.values()):
            await cluster.create(as_pod(number, task))
            await trio.sleep(PAUSE_SECONDS)
        await cluster.settle()
        placed = {one.name for one in cluster.pods() if one.node_name}
    return sum(asked[name].gpu_milli for name in placed), len(asked) - len(placed)


def run(folder: Path, job: tuple[str, str, int]) -> Run:
    """One policy on one trace with one seed."""
    trace, policy, seed = job
    began = time.perf_counter()
    nodes, tasks = read_nodes(folder), read_tasks(folder, trace)
    capacity = sum(int(row["gpu"]) for row in read_rows(folder / "openb_node_list_gpu_node.csv.gz")) * 1000
    chosen = POLICIES[policy]
    allocated, pending = trio.run(
        fill, nodes, arrivals(tasks, capacity, seed), chosen, seed, clock=MockClock(autojump_threshold=0.0)
    )
    seconds = time.perf_counter() - began
    return Run(trace, policy, seed, round(100 * allocated / capacity, 2), pending, round(seconds, 1))


def table(runs: list[Run]) -> str:
    """Means per trace and policy, beside those of the paper."""
    lines = [f"{'trace':<12} {'policy':<11} {'allocated %':>11} {'from..to':>14} {'paper %':>8} {'runs':>5}"]
    for trace in dict.fromkeys(one.trace for one in runs):
        for policy in POLICIES:
            values = [one.allocated_percent for one in runs if (one.trace, one.policy) == (trace, policy)]
            if values:
                spread = f"{min(values):.1f}..{max(values):.1f}"
                paper = PAPER[trace].get(policy)
                shown = "" if paper is None else f"{paper:.1f}"
                mean = statistics.mean(values)
                lines.append(f"{trace:<12} {policy:<11} {mean:>11.2f} {spread:>14} {shown:>8} {len(values):>5}")
    return "\n".join(lines)


def main() -> None:
    """Run everything that was asked for, print the table, keep the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with openb_*.csv.gz")
    parser.add_argument("--trace", choices=list(PAPER), action="append", help="default: default; may be repeated")
    parser.add_argument("--policy", choices=list(POLICIES), action="append", help="default: all; may be repeated")
    parser.add_argument("--seeds", type=int, default=10, help="how many runs; default: 10")
    parser.add_argument("--processes", type=int, default=2, help="how many runs at a time; default: 2")
    parser.add_argument("--keep", action="store_true", help="keep runs in results.json, and repeat none that is there")
    given = parser.parse_args()
    if not (given.data / "openb_node_list_gpu_node.csv.gz").exists():
        parser.error(f"there is no openb_node_list_gpu_node.csv.gz in {given.data}; give the folder of the trace")
    jobs = [
        (trace, policy, FIRST_SEED + number)
        for trace in given.trace or ["default"]
        for number in range(given.seeds)
        for policy in given.policy or POLICIES
    ]
    runs = read_results() if given.keep else {}
    with ProcessPoolExecutor(given.processes) as pool:
        for one in pool.map(partial(run, given.data), [job for job in jobs if job not in runs]):
            runs[one.trace, one.policy, one.seed] = one
            print(f"{one.trace} {one.policy}, seed {one.seed}: {one.allocated_percent} %, {one.seconds} s", flush=True)
            if given.keep:
                RESULTS.write_text(json.dumps(as_data(runs.values()), indent=2) + "\n", encoding="utf-8")
    print()
    print(table(list(runs.values())))


def read_results() -> dict[tuple[str, str, int], Run]:
    """The runs that have been kept."""
    if not RESULTS.exists():
        return {}
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))["runs"]
    return {(one["trace"], one["policy"], one["seed"]): Run(**one) for one in kept}


def as_data(runs: Iterable[Run]) -> dict[str, Any]:
    """What is kept."""
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "arriving": ARRIVING,
        "paper": PAPER,
        "runs": [asdict(one) for one in sorted(runs, key=lambda one: (one.trace, one.seed, one.policy))],
    }


if __name__ == "__main__":
    main()
