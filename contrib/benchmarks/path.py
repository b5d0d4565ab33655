"""The whole path: the scheduler in one process, an API server in another, pods from creation to bind.

With a kubeconfig any cluster takes the place of the simulator: its nodes are used as they are, the pods are made in a
namespace of their own, which is deleted afterwards.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from contrib.benchmarks.report import Figure
from contrib.benchmarks.scheduler_process import scheduler_process, write_configuration
from contrib.benchmarks.simulated_cluster import TIMEOUT_SECONDS, simulated_cluster
from contrib.benchmarks.workload import new_pod

NODES = (1_000, 5_000, 15_000)
PODS = 2_000
GOAL_CPU = 750.0
GOAL_GROWTH = 1.3
NAMESPACE = "trio-sched-benchmark"


def run(
    nodes: Sequence[int] = NODES, pods: int = PODS, kubeconfig: str | None = None, constraint: str = "plain"
) -> Iterator[Figure]:
    if kubeconfig is not None:
        yield from _figures("given cluster", pods, *_on_cluster(kubeconfig, pods, constraint))
        return
    cpu: dict[int, float] = {}
    for count in nodes:
        cpu[count], seconds, peak = _on_simulator(count, pods, constraint)
        yield from _figures(f"{count:,} nodes, {pods:,} {constraint} pods", pods, cpu[count], seconds, peak)
    if len(cpu) > 1:
        small, large = min(cpu), max(cpu)
        case = f"{large:,} nodes against {small:,}"
        yield Figure("path", case, "scheduler CPU", cpu[large] / cpu[small], "times", GOAL_GROWTH)


def _figures(case: str, pods: int, cpu_seconds: float, seconds: float, peak_mib: float) -> Iterator[Figure]:
    yield Figure("path", case, "scheduler CPU", cpu_seconds / pods * 1e6, "µs/pod", GOAL_CPU)
    yield Figure("path", case, "throughput", pods / seconds, "pods/s")
    yield Figure("path", case, "peak memory", peak_mib, "MiB")


def _on_simulator(nodes: int, pods: int, constraint: str) -> tuple[float, float, float]:
    with simulated_cluster() as cluster:
        cluster.ask("create_nodes", count=nodes)
        with cluster.scheduler() as scheduler:
            scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
            cpu, began = scheduler.cpu_seconds(), time.monotonic()
            cluster.ask("create_pods", count=pods, type=constraint)
            used = cluster.cpu_until_last_event(pods, scheduler) - cpu
            done = cluster.wait_bound(pods, scheduler).last_at
            return used, done - began, scheduler.peak_mib()


def _on_cluster(kubeconfig: str, pods: int, constraint: str) -> tuple[float, float, float]:
    def kubectl(*arguments: str, stdin: bytes | None = None) -> bytes:
        command = ["kubectl", "--kubeconfig", kubeconfig, "--namespace", NAMESPACE, *arguments]
        return subprocess.run(command, input=stdin, check=True, stdout=subprocess.PIPE).stdout

    def create() -> None:
        items = []
        for i in range(pods):
            one = new_pod(constraint, i)
            del one["metadata"]["namespace"]
            items.append(one)
        kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())

    def bound() -> int:
        listed = kubectl("get", "pods", "--field-selector", "spec.nodeName!=", "-o", "name")
        return len(listed.splitlines())

    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    kubectl("apply", "-f", "-", stdin=json.dumps(namespace).encode())
    try:
        with tempfile.TemporaryDirectory() as folder:
            config = write_configuration(Path(folder), Path(kubeconfig).resolve())
            with scheduler_process(config, Path(folder) / "scheduler.log") as scheduler:
                scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
                cpu, began = scheduler.cpu_seconds(), time.monotonic()
                create()
                while bound() < pods:
                    scheduler.check_running()
                    if time.monotonic() - began > TIMEOUT_SECONDS:
                        raise SystemExit(f"not all pods were bound within {TIMEOUT_SECONDS:.0f} s")
                    time.sleep(0.1)
                return scheduler.cpu_seconds() - cpu, time.monotonic() - began, scheduler.peak_mib()
    finally:
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")
