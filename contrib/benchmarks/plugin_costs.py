"""What it costs to time the hooks of a plugin, and to trace the calls for pods that are not there.

One scheduler with a plugin schedules one batch of pods after the other: as it is; while all hooks are timed; and with a
trace for a pod that never comes. The plugin itself switches that between the batches, so that nothing else differs. The
order of the three changes from round to round, because the cluster fills up meanwhile.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

from attrs import define

from contrib.benchmarks.report import Figure
from contrib.benchmarks.scheduler_process import SchedulerProcess
from contrib.benchmarks.simulated_cluster import TIMEOUT_SECONDS, SimulatedCluster, simulated_cluster
from trio_sched.daemon.limits import TIME_HOOKS_AT_START_SECONDS

NODES = 1_000
PODS = 100
"""In a batch; short ones, because a machine is faster at one moment than at another."""
ROUNDS = 180
GOAL_RATIO = 1.02
MODES = ("off", "timed", "traced")
PAUSE_SECONDS = TIME_HOOKS_AT_START_SECONDS
"""So long after its start a scheduler times no hooks any more by itself."""
SWITCH_SECONDS = 0.05
"""So long after it was told to, the plugin has switched."""
PLUGIN = """
import trio

from trio_sched.daemon.hooks.blocking_hooks import BlockingHooks
from trio_sched.daemon.plugins.plugin_trace import PluginTrace, TraceSelector
from trio_sched.plugin_api import Action, Input, Resource, hookimpl, on, unschedulable

MODES = open({modes!r})


def remembered(method, instances):
    def call(self, *args):
        instances.add(self)
        return method(self, *args)

    return call


LOOPS, TRACES = set(), set()
BlockingHooks.start = remembered(BlockingHooks.start, LOOPS)
PluginTrace.install = remembered(PluginTrace.install, TRACES)


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

    @hookimpl
    async def run(self):
        (loop,), (trace,) = LOOPS, TRACES
        while line := await trio.to_thread.run_sync(MODES.readline, abandon_on_cancel=True):
            trace.choose(TraceSelector.read("nowhere/nobody") if line == "traced\\n" else None)
            if line == "timed\\n":
                loop.time_for(10_000.0)
            else:
                loop.hook_times.switch_off()
"""
PROFILE = {"plugins": {"multiPoint": {"enabled": [{"name": "Measured"}]}}}


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, simulated_cluster() as cluster:
        modes = Path(folder) / "modes"
        os.mkfifo(modes)
        file = Path(folder) / "measured.py"
        file.write_text(PLUGIN.replace("{modes!r}", repr(str(modes))))
        cluster.ask("create_nodes", count=NODES)
        with (
            cluster.scheduler(f"--plugin={file}", profile=PROFILE) as scheduler,
            modes.open("w", buffering=1) as switch,
        ):
            scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
            time.sleep(PAUSE_SECONDS)
            found: dict[str, list[float]] = {mode: [] for mode in MODES}
            batches = _Batches(cluster, scheduler)
            batches.cpu_seconds()  # the first one warms up
            orders = list(permutations(MODES))
            for i in range(ROUNDS):
                for mode in orders[i % len(orders)]:
                    switch.write(f"{mode}\n")
                    time.sleep(SWITCH_SECONDS)
                    found[mode].append(batches.cpu_seconds())
    where = f"{NODES:,} nodes, {ROUNDS} times {PODS} pods"
    cpu = {mode: statistics.median(seconds) for mode, seconds in found.items()}
    yield Figure("plugins", where, "scheduler CPU, with a plugin", cpu["off"] / PODS * 1e6, "µs/pod")
    for mode, what in (("timed", "all hooks timed"), ("traced", "a trace for other pods")):
        yield Figure("plugins", where, f"{what}, against neither", cpu[mode] / cpu["off"], "times", GOAL_RATIO)


@define(eq=False)
class _Batches:
    cluster: SimulatedCluster
    scheduler: SchedulerProcess
    pods: int = 0

    def cpu_seconds(self) -> float:
        """What the scheduler uses for the next batch."""
        before = self.scheduler.cpu_seconds()
        self.pods += PODS
        self.cluster.ask("create_pods", count=PODS, type="plain")
        return self.cluster.cpu_until_last_event(self.pods, self.scheduler) - before
