"""What it costs to decide on pods that count other pods."""

from collections.abc import Iterator

import msgspec

from contrib.benchmarks.engine import default_profile, scheduler, timed
from contrib.benchmarks.report import Figure
from contrib.benchmarks.workload import constrained_pod
from trio_sched.daemon.memory import set_malloc_thresholds
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.objects.pod import Pod

APPS = 20
TOPOLOGY_GOALS = {"spread": 250.0, "affinity": 300.0}


def run(nodes: int = 5_000, existing: int = 10_000, pods: int = 1_500) -> Iterator[Figure]:
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
            infos.append(QueuedPodInfo(decoded, 0.0, signature=made.signatures.sign(decoded)))
        decide, assume = timed(made, infos, warm_up=100)
        where = f"{nodes:,} nodes, {existing:,} pods, {case}"
        yield Figure("topology", where, "decide", decide, "µs/pod", goal)
        yield Figure("topology", where, "assume", assume, "µs/pod")
