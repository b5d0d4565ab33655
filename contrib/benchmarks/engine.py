"""What a decision costs: from a signed pod to a node, and assuming it there. No network, no tasks."""

import gc
import statistics
import time
from collections.abc import Iterator
from random import Random

import msgspec

from contrib.benchmarks.report import Figure
from contrib.benchmarks.workload import node, pod
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.daemon.memory import set_malloc_thresholds
from trio_sched.engine.cache import Cache
from trio_sched.engine.evaluation.decision import ScheduleResult
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.engine.registry.profile import Profile, build_profile
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing import FakeHandle

NODES = (1_000, 5_000, 15_000)
PODS = 3_000
WARM_UP = 500
GOALS = {("one shape", 5_000): 40.0, ("fresh shape", 5_000): 400.0}


def run() -> Iterator[Figure]:
    set_malloc_thresholds()
    profile = default_profile()
    for nodes in NODES:
        for case, shapes, mixed in (("one shape", 1, False), ("100 shapes", 100, False), ("mixed, 100", 100, True)):
            decide, assume = _recurring(scheduler(profile, nodes), shapes, mixed)
            where = f"{nodes:,} nodes, {case}"
            yield Figure("engine", where, "decide", decide, "µs/pod", GOALS.get((case, nodes)))
            yield Figure("engine", where, "assume", assume, "µs/pod")
        fresh = _fresh(scheduler(profile, nodes))
        yield Figure(
            "engine", f"{nodes:,} nodes, fresh shape", "decide", fresh, "µs/pod", GOALS.get(("fresh shape", nodes))
        )


def default_profile() -> Profile:
    (resolved,) = resolve_profiles(load_configuration(None), KNOWN_PLUGINS)
    registry = PluginRegistry.discover()
    return build_profile(resolved, registry, FakeHandle().for_plugin)


def scheduler(profile: Profile, nodes: int) -> Scheduler:
    cache = Cache()
    for i in range(nodes):
        cache.add_node(msgspec.convert(node(i), Node))
    found = Scheduler(cache=cache, queue=SchedulingQueue(get_unassigned_pod=lambda _uid: None), rng=Random(1))
    found.install_profiles({profile.name: profile})
    return found


def _info(scheduler: Scheduler, i: int, shape: int, mixed: bool) -> QueuedPodInfo:
    decoded = msgspec.convert(pod(i, shape, mixed=mixed), Pod)
    return QueuedPodInfo(decoded, 0.0, signature=scheduler.signatures.sign(decoded))


def _recurring(scheduler: Scheduler, shapes: int, mixed: bool) -> tuple[float, float]:
    infos = [_info(scheduler, i, i % shapes, mixed) for i in range(PODS)]
    return timed(scheduler, infos, WARM_UP)


def timed(scheduler: Scheduler, infos: list[QueuedPodInfo], warm_up: int) -> tuple[float, float]:
    """Microseconds to decide on a pod, and to assume it."""
    deciding = assuming = 0.0
    gc.disable()
    for i, info in enumerate(infos):
        began = time.perf_counter()
        decision = scheduler.decide(info)
        decided = time.perf_counter()
        assert isinstance(decision, ScheduleResult)
        scheduler.cache.assume(info.pod, decision.node_name)
        if i >= warm_up:
            deciding += decided - began
            assuming += time.perf_counter() - decided
    gc.enable()
    count = len(infos) - warm_up
    return deciding / count * 1e6, assuming / count * 1e6


def _fresh(scheduler: Scheduler) -> float:
    for i in range(200):  # an empty cluster would be too easy
        info = _info(scheduler, i, 0, False)
        decision = scheduler.decide(info)
        assert isinstance(decision, ScheduleResult)
        scheduler.cache.assume(info.pod, decision.node_name)
    times = []
    for i in range(60):
        info = _info(scheduler, 1_000 + i, 1_000 + i, False)
        began = time.perf_counter()
        scheduler.decide(info)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6
