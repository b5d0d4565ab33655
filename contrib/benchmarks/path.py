"""The whole path: the scheduler in one process, an API server in another, pods from creation to bind.

With a kubeconfig any cluster takes the place of the simulator: its nodes are used as they are, the pods are made in a
namespace of their own, which is deleted afterwards.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from contrib.benchmarks.loopback import certificates, server_process
from contrib.benchmarks.report import Figure
from contrib.benchmarks.workload import constrained_pod

NODES = (1_000, 5_000, 15_000)
GOAL_CPU = 750.0
GOAL_GROWTH = 1.3
SHAPES = 20
TIMEOUT_SECONDS = 600.0
NAMESPACE = "trio-sched-benchmark"


def run(
    nodes: Sequence[int] = NODES, pods: int = 2_000, kubeconfig: str | None = None, constraint: str = "plain"
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
    with (
        certificates() as folder,
        server_process("contrib.benchmarks.simulated_server", str(folder), str(nodes)) as (server, address),
    ):
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [
                        {"name": "c", "cluster": {"server": address, "certificate-authority": str(folder / "ca.pem")}}
                    ],
                    "users": [{"name": "u", "user": {"token": "benchmark"}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        assert server.stdin is not None
        assert server.stdout is not None

        def ask(command: str) -> str:
            server.stdin.write(command + "\n")
            server.stdin.flush()
            return server.stdout.readline().strip()

        return _measure(
            str(kubeconfig),
            pods,
            create=lambda: ask(f"pods {pods} {SHAPES} {constraint}"),
            bound=lambda: int(ask("bound")),
        )


def _on_cluster(kubeconfig: str, pods: int, constraint: str) -> tuple[float, float, float]:
    def kubectl(*arguments: str, stdin: bytes | None = None) -> bytes:
        command = ["kubectl", "--kubeconfig", kubeconfig, "--namespace", NAMESPACE, *arguments]
        return subprocess.run(command, input=stdin, check=True, stdout=subprocess.PIPE).stdout

    def create() -> None:
        items = []
        for i in range(pods):
            one = constrained_pod(i, i % SHAPES, constraint)
            one["metadata"] = {"name": one["metadata"]["name"], "labels": one["metadata"]["labels"]}
            one["spec"]["containers"][0].pop("volumeMounts")
            items.append(one)
        kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())

    def bound() -> int:
        listed = kubectl("get", "pods", "--field-selector", "spec.nodeName!=", "-o", "name")
        return len(listed.splitlines())

    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    kubectl("apply", "-f", "-", stdin=json.dumps(namespace).encode())
    try:
        return _measure(kubeconfig, pods, create=create, bound=bound)
    finally:
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def _measure(
    kubeconfig: str, pods: int, *, create: Callable[[], object], bound: Callable[[], int]
) -> tuple[float, float, float]:
    """CPU seconds of the scheduler, seconds until all pods were bound, peak memory in MiB."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(
            json.dumps(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "clientConnection": {"kubeconfig": kubeconfig, "qps": 5000, "burst": 5000},
                    "leaderElection": {"leaderElect": False},
                }
            )
        )
        config.flush()
        scheduler = subprocess.Popen(
            [sys.executable, "-m", "trio_sched", "--config", config.name, "--secure-port=0"], stderr=subprocess.PIPE
        )
        try:
            _wait_until_idle(scheduler.pid)
            os.set_blocking(scheduler.stderr.fileno(), False)  # type: ignore[union-attr]
            cpu, began = _cpu_seconds(scheduler.pid), time.monotonic()
            create()
            done = _wait_until(lambda: bound() >= pods, scheduler)
            used, peak = _cpu_seconds(scheduler.pid) - cpu, _peak_mib(scheduler.pid)
        finally:
            scheduler.terminate()
            scheduler.wait()
            if scheduler.stderr is not None:
                scheduler.stderr.close()
    return used, done - began, peak


def _wait_until(reached: Callable[[], bool], scheduler: subprocess.Popen[bytes]) -> float:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not reached():
        if scheduler.stderr is not None:
            scheduler.stderr.read()  # a full pipe would stop it
        if scheduler.poll() is not None:
            raise SystemExit(f"the scheduler ended with exit code {scheduler.returncode}")
        if time.monotonic() > deadline:
            raise SystemExit(f"not all pods were bound within {TIMEOUT_SECONDS:.0f} s")
        time.sleep(0.1)
    return time.monotonic()


def _wait_until_idle(pid: int) -> None:
    """The scheduler is ready when it has stopped using the processor."""
    quiet, last = 0, -1.0
    while quiet < 5:
        time.sleep(0.3)
        try:
            now = _cpu_seconds(pid)
        except FileNotFoundError as gone:
            raise SystemExit("the scheduler did not start") from gone
        quiet = quiet + 1 if now - last < 0.03 and now > 0.2 else 0
        last = now


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise LookupError("no VmHWM")
