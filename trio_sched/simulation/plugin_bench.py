"""Measures what a plugin costs: the same pods are scheduled without it and with it, on clusters in memory.

What is measured is the processor time of the whole process, the API server in memory included; what both runs have in
common is in neither difference.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from functools import partial
from random import Random
from statistics import median
from typing import Final

import trio
from attrs import evolve, field, frozen

from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.config.schema import PluginRef
from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.documents.json_values import Json
from trio_sched.engine.registry.plugin_registry import points_of
from trio_sched.errors import TrioSchedError
from trio_sched.simulation.simulated_cluster import same_order
from trio_sched.simulation.simulated_run import Activity, in_process_clients, scheduler_names
from trio_sched.simulator import ApiServer, Controllers, jumping_clock, populate, trio_clock

_BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
_STEP_SECONDS: Final = 0.25
_LONGEST_SECONDS: Final = 600.0
"""Seconds of the cluster's time: pods that nobody has decided on by then are gated."""
_CONDITIONS: Final = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
_TIMED_SECONDS: Final = 1e9
_POD: Final[Json] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pod", "namespace": "default", "labels": {"app": "bench"}},
    "spec": {"containers": [{"name": "main", "image": "bench", "resources": {"requests": {"cpu": "50m"}}}]},
}


class NothingPlaced(TrioSchedError):
    """No pod found a node, so what the plugin costs was not measured."""

    def __str__(self) -> str:
        return (
            "none of the pods found a node; give more nodes, or a pod that the plugin lets pass: --pod FILE, and "
            "--explain of trio-sched simulate says why"
        )


@frozen(kw_only=True)
class Bench:
    """What is scheduled."""

    nodes: int
    running: int
    """Pods that are on the nodes at the beginning, in turn."""
    warm_up: int
    """Pods that are scheduled before it is measured."""
    pods: int
    rounds: int
    """How often each way, in turn."""
    pod: Json | None = None
    """A manifest of which the pods are copies."""


@frozen
class HookCost:
    """What one hook has taken while it was measured, in a run of its own."""

    hook: str
    calls: int
    """How often they were called; of ``async`` hooks how often they went on after a wait, the first time included."""
    seconds: float


@frozen(kw_only=True)
class Measured:
    """Processor time in seconds per pod, one figure for each round."""

    without: Sequence[float]
    with_plugin: Sequence[float]
    hooks: Sequence[HookCost] = field(factory=tuple)
    """The dearest first; none for a plugin of this project."""
    placed: int = 0
    """How many of the pods have found a node with the plugin."""

    @property
    def cost(self) -> float:
        """What the plugin costs: the difference of the medians."""
        return median(self.with_plugin) - median(self.without)


def measure_plugin(settings: DaemonSettings, name: str, bench: Bench) -> Measured:
    """Measure the plugin *name*; it need not be enabled in *settings*.

    Raises:
        PluginError: it does not exist or cannot be used.
        NothingPlaced: no pod has found a node.
        TrioSchedError: the scheduler cannot run so.
    """
    points = points_of(settings.registry.load(name))
    ours = evolve(settings, profiles=tuple(_with_plugin(one, name, points) for one in settings.profiles))
    others = evolve(settings, profiles=tuple(_without_plugin(one, name) for one in settings.profiles))
    without: list[float] = []
    with_plugin: list[float] = []
    for _ in range(bench.rounds):
        without.append(_run(others, bench, "")[0])
        with_plugin.append(_run(ours, bench, "")[0])
    _seconds, hooks, placed = _run(ours, bench, name)
    if not placed:
        raise NothingPlaced
    return Measured(without=without, with_plugin=with_plugin, hooks=hooks, placed=placed)


def _with_plugin(profile: ResolvedProfile, name: str, points: frozenset[str]) -> ResolvedProfile:
    """*profile* with the plugin, at all its points unless it is enabled already."""
    if name in profile.plugins:
        return profile
    if not points:
        return evolve(profile, without_point=(*profile.without_point, name))
    changed = dict(profile.points)
    for point in points:
        before, ref = changed.get(point, ()), PluginRef(name, 1)
        first = point in ("bind", "queue_sort")  # the first binder that does not skip binds; one order is enough
        changed[point] = (ref,) if point == "queue_sort" else (ref, *before) if first else (*before, ref)
    return evolve(profile, points=changed)


def _without_plugin(profile: ResolvedProfile, name: str) -> ResolvedProfile:
    points = {point: tuple(ref for ref in refs if ref.name != name) for point, refs in profile.points.items()}
    if not points.get("queue_sort"):
        points["queue_sort"] = (PluginRef("PrioritySort", 1),)
    if not points.get("bind"):
        points["bind"] = (PluginRef("DefaultBinder", 1),)
    return evolve(profile, points=points, without_point=tuple(one for one in profile.without_point if one != name))


def _run(settings: DaemonSettings, bench: Bench, timed: str) -> tuple[float, tuple[HookCost, ...], int]:
    """Seconds per pod, what the hooks of the plugin *timed* took if it is not empty, and how many pods were placed."""
    with same_order():
        return trio.run(_measure, settings, bench, timed, clock=jumping_clock(_STEP_SECONDS))


async def _measure(settings: DaemonSettings, bench: Bench, timed: str) -> tuple[float, tuple[HookCost, ...], int]:
    server, stop = ApiServer(trio_clock(_BEGIN), 0), trio.Event()
    populate(server, [*map(_node, range(bench.nodes)), *(_running_pod(bench, i) for i in range(bench.running))])
    activity = Activity(server, frozenset(scheduler_names(settings)), Controllers(server))
    scheduler = scheduler_names(settings)[0]
    async with in_process_clients(server, settings) as clients, trio.open_nursery() as scheduling:
        assembly = assemble(settings, clients, random=Random(0), wall_clock=server.now)
        await scheduling.start(partial(run_daemon, assembly, stop=stop))
        hooks = assembly.blocking_hooks
        with activity.followed(lambda _decided, _all: None):
            await _place(server, activity, [_pod(bench, scheduler, f"warm-up-{i}") for i in range(bench.warm_up)])
            names = [f"measured-{i}" for i in range(bench.pods)]
            pods = [_pod(bench, scheduler, name) for name in names]
            if timed:
                hooks.time_for(_TIMED_SECONDS)
            gc.collect()
            before, began = dict(hooks.hook_times.totals), time.process_time()
            await _place(server, activity, pods)
            seconds = time.process_time() - began
            costs = _costs(before, hooks.hook_times.totals, timed)
        stop.set()
    namespace = pods[0]["metadata"]["namespace"]
    stored = (server.store.get("pods", f"{namespace}/{name}") for name in names)
    placed = sum(one is not None and bool(one.fields["spec"].get("nodeName")) for one in stored)
    return seconds / bench.pods, costs, placed


async def _place(server: ApiServer, activity: Activity, pods: Sequence[Json]) -> None:
    """Create *pods*, and wait until all are decided on."""
    populate(server, pods)
    with trio.move_on_after(_LONGEST_SECONDS):
        while activity.undecided:  # noqa: ASYNC110  # it tells nobody
            await trio.sleep(_STEP_SECONDS)


def _costs(
    before: Mapping[tuple[str, str], tuple[float, int]], after: Mapping[tuple[str, str], tuple[float, int]], plugin: str
) -> tuple[HookCost, ...]:
    found = []
    for key, (seconds, calls) in after.items():
        seconds_before, calls_before = before.get(key, (0.0, 0))
        if key[0] == plugin and calls > calls_before:
            found.append(HookCost(key[1], calls - calls_before, seconds - seconds_before))
    return tuple(sorted(found, key=lambda one: -one.seconds))


def _node(i: int) -> Json:
    """Node number *i*, in one of three zones."""
    name = f"node-{i:05}"
    amounts = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "500Gi", "pods": "250"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{i % 3}"}
    conditions = [{"type": type_, "status": status} for type_, status in _CONDITIONS.items()]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": conditions},
    }


def _running_pod(bench: Bench, i: int) -> Json:
    pod = _pod(bench, "", f"running-{i}")
    pod["spec"]["nodeName"] = f"node-{i % bench.nodes:05}"
    pod["status"] = {"phase": "Running"}
    return pod


def _pod(bench: Bench, scheduler: str, name: str) -> Json:
    """A copy of the pod of *bench* for *scheduler*."""
    pod = deepcopy(_POD if bench.pod is None else bench.pod)
    metadata = {key: part for key, part in pod.get("metadata", {}).items() if key in ("labels", "annotations")}
    pod["metadata"] = {**metadata, "name": name, "namespace": pod.get("metadata", {}).get("namespace") or "default"}
    pod["spec"] = {key: part for key, part in pod.get("spec", {}).items() if key != "nodeName"}
    if scheduler:
        pod["spec"]["schedulerName"] = scheduler
    pod.pop("status", None)
    return pod
