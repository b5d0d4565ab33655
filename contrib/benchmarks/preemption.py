"""Preemption: what the dry run costs, and the whole path from important pods to their binds."""

import statistics
import time
from collections.abc import Iterator, Sequence

import msgspec

from contrib.benchmarks.engine import default_profile, scheduler
from contrib.benchmarks.report import Figure
from contrib.benchmarks.simulated_cluster import TIMEOUT_SECONDS, simulated_cluster
from contrib.benchmarks.workload import VICTIMS_PER_NODE, big_pod
from trio_sched.daemon.memory import set_malloc_thresholds
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.preemption import BudgetsByNamespace

NODES = 500
GOAL_CPU = 7_000.0
"""Three tenths of what kube-scheduler needs for such a pod."""
DRY_RUN_NODES = 5_000


def run(node_counts: Sequence[int] = (), preemptors: int | None = None) -> Iterator[Figure]:
    """The dry run in the engine, then the whole path."""
    yield from _run_dry_run(DRY_RUN_NODES)
    for nodes in node_counts or (NODES,):
        yield from _run_path(nodes, preemptors or nodes)


def _run_dry_run(nodes: int, each: int = 4, pods: int = 20) -> Iterator[Figure]:
    """Important pods on a cluster that less important ones fill: finding out that nothing fits, and the dry run."""
    set_malloc_thresholds()
    profile = default_profile()
    made = scheduler(profile, nodes)
    for i in range(nodes * each):
        filler = msgspec.convert(big_pod(i, priority=0), Pod)
        made.cache.assume(filler, made.cache.table.names[i % nodes])
    names = made.cache.table.names
    enough = min(nodes, max(nodes // 10, 100))
    deciding, trying = [], []
    budgets: BudgetsByNamespace = {}
    for i in range(pods):
        preemptor = msgspec.convert(big_pod(nodes * each + i, priority=100), Pod)
        info = QueuedPodInfo(preemptor, 0.0, signature=made.signatures.sign(preemptor))
        began = time.perf_counter()
        decision = made.decide(info)
        decided = time.perf_counter()
        assert isinstance(decision, SchedulingFailure)
        assert decision.state is not None
        found = made.dry_run_preemption(preemptor, decision.state, names[i:] + names[:i], enough, budgets)
        trying.append(time.perf_counter() - decided)
        deciding.append(decided - began)
        assert len(found.candidates) == enough
    where = f"{nodes:,} nodes, {nodes * each:,} pods"
    yield Figure("preemption", where, "decide", statistics.median(deciding) * 1e6, "µs/pod")
    yield Figure("preemption", f"{where}, {enough} candidates", "dry run", statistics.median(trying) * 1e6, "µs/pod")


def _run_path(nodes: int, preemptors: int) -> Iterator[Figure]:
    """Nodes that are full of pods of low priority; every preemptor needs the room of three of them."""
    with simulated_cluster() as cluster:
        cluster.ask("create_nodes", count=nodes, type="small")
        cluster.ask("create_priority_class")
        cluster.ask("create_running_pods", count=nodes * VICTIMS_PER_NODE, type="victim")
        with cluster.scheduler() as scheduler:
            scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
            cpu, began = scheduler.cpu_seconds(), time.monotonic()
            cluster.ask("create_pods", count=preemptors, type="preemptor")
            used = cluster.cpu_until_last_event(preemptors, scheduler) - cpu
            last_bound = cluster.wait_bound(preemptors, scheduler).last_at
    case = f"{nodes:,} full nodes, {preemptors:,} preemptors"
    yield Figure("preemption", case, "scheduler CPU", used / preemptors * 1e6, "µs/pod", GOAL_CPU)
    yield Figure("preemption", case, "throughput", preemptors / (last_bound - began), "pods/s")
