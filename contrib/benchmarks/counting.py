"""What it costs to decide on pods that count other pods, and to find out whom to preempt."""

import statistics
import time
from collections.abc import Iterator

import msgspec

from contrib.benchmarks.engine import default_profile, scheduler, timed
from contrib.benchmarks.report import Figure
from contrib.benchmarks.workload import big_pod, constrained_pod
from trio_sched.daemon.memory import set_malloc_thresholds
from trio_sched.engine.decision import SchedulingFailure
from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.objects.pod import Pod

APPS = 20
TOPOLOGY_GOALS = {"spread": 250.0, "affinity": 300.0}


def run_topology(nodes: int = 5_000, existing: int = 10_000, pods: int = 1_500) -> Iterator[Figure]:
    """Pods that count other pods: hard and soft spread, and required anti-affinity with preferred affinity."""
    set_malloc_thresholds()
    profile = default_profile()
    for case, goal in TOPOLOGY_GOALS.items():
        made = scheduler(profile, nodes)
        names = made.cache.table.names
        for i in range(existing):
            made.cache.assume(msgspec.convert(constrained_pod(i, i % APPS, case), Pod), names[i * 7919 % nodes])
        infos = []
        for i in range(existing, existing + pods):
            decoded = msgspec.convert(constrained_pod(i, i % APPS, case), Pod)
            infos.append(QueuedPodInfo(decoded, 0.0, signature=made.sign(decoded)))
        decide, assume = timed(made, infos, warm_up=100)
        where = f"{nodes:,} nodes, {existing:,} pods, {case}"
        yield Figure("topology", where, "decide", decide, "µs/pod", goal)
        yield Figure("topology", where, "assume", assume, "µs/pod")


def run_preemption(nodes: int = 5_000, each: int = 4, pods: int = 20) -> Iterator[Figure]:
    """Important pods on a cluster that less important ones fill: finding out that nothing fits, and the dry run."""
    set_malloc_thresholds()
    profile = default_profile()
    made = scheduler(profile, nodes)
    for i in range(nodes * each):
        filler = msgspec.convert(big_pod(i, priority=0), Pod)
        made.cache.assume(filler, made.cache.table.names[i % nodes])
    names = made.cache.table.names
    enough = max(nodes // 10, 100)
    deciding, trying = [], []
    for i in range(pods):
        preemptor = msgspec.convert(big_pod(nodes * each + i, priority=100), Pod)
        info = QueuedPodInfo(preemptor, 0.0, signature=made.sign(preemptor))
        began = time.perf_counter()
        decision = made.decide(info)
        decided = time.perf_counter()
        assert isinstance(decision, SchedulingFailure)
        assert decision.state is not None
        found = made.dry_run_preemption(preemptor, decision.state, names[i:] + names[:i], enough, {})
        trying.append(time.perf_counter() - decided)
        deciding.append(decided - began)
        assert len(found.candidates) == enough
    where = f"{nodes:,} nodes, {nodes * each:,} pods"
    yield Figure("preemption", where, "decide", statistics.median(deciding) * 1e6, "µs/pod")
    yield Figure("preemption", f"{where}, {enough} candidates", "dry run", statistics.median(trying) * 1e6, "µs/pod")
