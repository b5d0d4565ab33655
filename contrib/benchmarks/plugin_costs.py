"""What it costs to time the hooks of a plugin, and to trace the calls for pods that are not there.

One scheduler after the other, each in a process of its own with the same plugin and as many pods: as it is; while all
hooks are timed, which is always so for the first seconds; and with a trace for one pod that never comes. Again and
again, since the machine changes more than what is measured.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from contrib.benchmarks.report import Figure
from contrib.benchmarks.simulated_cluster import TIMEOUT_SECONDS, simulated_cluster
from trio_sched.daemon.limits import TIME_HOOKS_AT_START_SECONDS

NODES = 1_000
PODS = 2_000
ROUNDS = 5
GOAL_RATIO = 1.02
PAUSE_SECONDS = TIME_HOOKS_AT_START_SECONDS + 0.5
"""So long after its start a scheduler times no hooks any more."""
PLUGIN = """
from trio_sched.plugin_api import Action, Input, Resource, hookimpl, on, unschedulable


class Measured:
    name = "Measured"
    depends_on = frozenset({Input.NODE})

    def __init__(self, args, handle):
        pass

    @hookimpl
    def pre_filter(self, pod, nodes, state):
        state.write("Measured", pod.name)

    @hookimpl
    def filter_node(self, node):
        return unschedulable("too slow") if node.labels.get("disk") == "slow" else None

    @hookimpl
    def score_node(self, node):
        return 100 if node.labels.get("pool") == "memory" else 0

    @hookimpl
    def sign(self, pod):
        return pod.labels.get("app", "")

    @hookimpl
    def reserve(self, pod, node_name, state):
        return None

    @hookimpl
    def permit(self, pod, node_name):
        return None

    @hookimpl
    async def post_bind(self, pod, node_name):
        return None

    @hookimpl
    def events_to_register(self):
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)]
"""
PROFILE = {"plugins": {"multiPoint": {"enabled": [{"name": "Measured"}]}}}
TRACED = "--trace-plugins=nowhere/nobody"


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measured.py"
        file.write_text(PLUGIN)
        plugin = f"--plugin={file}"
        found: dict[str, list[float]] = {"off": [], "timed": [], "traced": []}
        for _ in range(ROUNDS):
            found["off"].append(_cpu_per_pod(PAUSE_SECONDS, plugin))
            found["timed"].append(_cpu_per_pod(0.0, plugin))
            found["traced"].append(_cpu_per_pod(PAUSE_SECONDS, plugin, TRACED))
    where = f"{NODES:,} nodes, {PODS:,} pods, {ROUNDS} rounds"
    off = statistics.median(found["off"])
    yield Figure("plugins", where, "scheduler CPU, with a plugin", off, "µs/pod")
    for name, what in (("timed", "all hooks timed"), ("traced", "a trace for other pods")):
        ratio = statistics.median(one / base for one, base in zip(found[name], found["off"], strict=True))
        yield Figure("plugins", where, f"{what}, against neither", ratio, "times", GOAL_RATIO)


def _cpu_per_pod(pause_seconds: float, *flags: str) -> float:
    """In microseconds; the pods come so long after the start."""
    with simulated_cluster() as cluster:
        cluster.ask("create_nodes", count=NODES)
        with cluster.scheduler(*flags, profile=PROFILE) as scheduler:
            scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
            time.sleep(pause_seconds)
            before = scheduler.cpu_seconds()
            cluster.ask("create_pods", count=PODS, type="plain")
            return (cluster.cpu_until_last_event(PODS, scheduler) - before) / PODS * 1e6
