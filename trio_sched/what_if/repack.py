"""Cell compaction: how few nodes hold all pods if these are placed from scratch, as Borg's authors measured it.

Nodes are left out in a random order, and how many of them can be is found by bisection. The result of one order is a
matter of chance; of several, the 90th percentile is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from random import Random
from typing import Final

import trio
from attrs import frozen
from msgspec import structs

from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import TrioSchedError
from trio_sched.objects.node_pools import pool_name
from trio_sched.objects.pod import Pod
from trio_sched.simulation.live.cluster_snapshot import ClusterSnapshot, assembled, fill
from trio_sched.simulation.report.sections import Section
from trio_sched.simulation.simulated_run import Plan, scheduler_names
from trio_sched.simulation.units import plural
from trio_sched.what_if.answer import Answer
from trio_sched.what_if.plan_snapshot import snapshot_of_plan

_PERCENTILE: Final = 0.9


class NothingToPack(TrioSchedError):
    """There are no nodes, or no pods that could be placed elsewhere."""


@frozen(kw_only=True)
class Trial:
    """What one order of the nodes has come to."""

    seed: int
    nodes: int
    """How many are enough."""
    pools: Counter[str]
    """How many of each pool."""


@frozen(kw_only=True)
class Repacked:
    """What all trials have come to."""

    trials: Sequence[Trial]
    pods: int
    """How many were placed from scratch each time."""
    unplaced: int
    """How many of them find no place on all nodes either."""
    pools: Counter[str]
    """How many nodes there are."""

    @property
    def reported(self) -> Trial:
        """The trial at the 90th percentile: nine of ten need no more nodes."""
        in_order = sorted(self.trials, key=lambda one: (one.nodes, one.seed))
        return in_order[min(int(_PERCENTILE * len(in_order)), len(in_order) - 1)]


def repack(plan: Plan, trials: int, progress: Callable[[int, int], None]) -> Repacked:
    """Pack the pods of the cluster of *plan* from scratch.

    Args:
        plan: the cluster, and the scheduler; its seed is that of the first trial, the next ones have those after it.
        trials: how many orders of the nodes are tried.
        progress: is told how many trials are over, of how many.

    Raises:
        NothingToPack: there are no nodes, or no pods that could be placed elsewhere.
        TrioSchedError: an object is refused, or the scheduler cannot run so; possibly in an exception group.
    """
    packing = _Packing(plan, snapshot_of_plan(plan))
    if not packing.snapshot.nodes or not packing.movable:
        raise NothingToPack("there is nothing to pack: there are no nodes, or no pods that a scheduler here places")
    unplaced = packing.unplaced(packing.names, plan.seed)
    done = []
    for number in range(trials):
        done.append(packing.trial(plan.seed + number, unplaced))
        progress(number + 1, trials)
    return Repacked(trials=done, pods=len(packing.movable), unplaced=unplaced, pools=packing.pools_of(packing.names))


class _Packing:
    """The pods and nodes of a cluster, and how many pods find no place on some of the nodes."""

    def __init__(self, plan: Plan, snapshot: ClusterSnapshot) -> None:
        self.plan, self.snapshot = plan, snapshot
        self.names = [node.name for node in snapshot.nodes if not node.spec.unschedulable]
        self._pools = {node.name: pool_name(node) or "-" for node in snapshot.nodes}
        ours = frozenset(scheduler_names(plan.settings))
        movable = [_from_scratch(pod) for pod in snapshot.pods if pod.scheduler_name in ours and not _is_of_node(pod)]
        self.movable: list[Pod] = sorted(movable, key=lambda pod: (-pod.priority, pod.key))
        """The largest priority first, as a queue has them."""
        moved = {pod.uid for pod in self.movable}
        self._fixed = [pod for pod in snapshot.pods if pod.uid not in moved]

    def pools_of(self, names: Collection[str]) -> Counter[str]:
        """How many of the nodes *names* are of which pool."""
        return Counter(self._pools[name] for name in names)

    def trial(self, seed: int, unplaced: int) -> Trial:
        """How few nodes are enough, in an order that *seed* decides, so that no more pods stay *unplaced*."""
        order = list(self.names)
        Random(seed).shuffle(order)
        too_few, enough = 0, len(order)
        while enough - too_few > 1:
            tried = (too_few + enough) // 2
            if self.unplaced(order[:tried], seed) <= unplaced:
                enough = tried
            else:
                too_few = tried
        return Trial(seed=seed, nodes=enough, pools=self.pools_of(order[:enough]))

    def unplaced(self, names: Collection[str], seed: int) -> int:
        """How many pods find no place on the nodes *names*."""
        kept = frozenset(names)
        nodes = [node for node in self.snapshot.nodes if node.name in kept]
        pods = [pod for pod in self._fixed if not pod.node_name or pod.node_name in kept]
        snapshot = ClusterSnapshot(nodes=nodes, pods=pods, others=self.snapshot.others)
        return trio.run(self._unplaced, snapshot, seed)

    async def _unplaced(self, snapshot: ClusterSnapshot, seed: int) -> int:
        async with assembled(self.plan.settings, self.plan.begins) as assembly:
            assembly.scheduler.rng.seed(seed)
            fill(assembly, snapshot)
            return sum(not _is_placed(assembly.scheduler, pod) for pod in self.movable)


def _is_placed(scheduler: Scheduler, pod: Pod) -> bool:
    decision = scheduler.decide(QueuedPodInfo(pod=pod, timestamp=0.0))
    if not isinstance(decision, ScheduleResult):
        return False
    return not isinstance(scheduler.assume_and_reserve(pod, decision, now=0.0), SchedulingFailure)


def _from_scratch(pod: Pod) -> Pod:
    """*pod* without a node, and without a nomination."""
    status = structs.replace(pod.status, nominated_node_name="")
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=""), status=status)


def _is_of_node(pod: Pod) -> bool:
    """Whether *pod* comes and goes with its node: a DaemonSet's or a static one."""
    return any(one.controller and one.kind in ("DaemonSet", "Node") for one in pod.metadata.owner_references or ())


def repack_answer(found: Repacked) -> Answer:
    """*found* as an answer."""
    reported, total = found.reported, found.pools.total()
    counts = sorted(one.nodes for one in found.trials)
    sentences = [
        f"{reported.nodes} of {plural(total, 'node')} are enough for {plural(found.pods, 'pod')} placed from scratch "
        f"(90th percentile of {plural(len(counts), 'trial')}; {counts[0]} to {counts[-1]})"
    ]
    if found.unplaced:
        verbs = ("finds", "does") if found.unplaced == 1 else ("find", "do")
        sentences.append(
            f"{plural(found.unplaced, 'pod')} {verbs[0]} no place on all nodes either, and {verbs[1]} not count"
        )
    return Answer(
        question="compact, packed from scratch",
        works=True,
        sentences=tuple(sentences),
        sections=tuple(_sections(found)),
    )


def _sections(found: Repacked) -> Iterator[Section]:
    reported = found.reported
    yield Section(
        "repackedPools",
        "Pools at the 90th percentile",
        heads=("Pool", "Nodes", "Needed"),
        keys=("name", "nodes", "needed"),
        numbers=("Nodes", "Needed"),
        rows=[(name, nodes, reported.pools[name]) for name, nodes in sorted(found.pools.items())],
    )
    yield Section(
        "trials",
        "Trials",
        heads=("Seed", "Nodes needed"),
        keys=("seed", "needed"),
        numbers=("Seed", "Nodes needed"),
        rows=[(one.seed, one.nodes) for one in found.trials],
    )
