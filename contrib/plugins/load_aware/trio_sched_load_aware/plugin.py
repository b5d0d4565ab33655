"""The plugin: fetches the load of nodes, and scores and filters by it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from typing import ClassVar, Final

import numpy as np
import trio
import trio.lowlevel
from attrs import Attribute, define, field, frozen, validators
from numpy.typing import NDArray

from trio_sched.plugin_api import (
    SKIP,
    Action,
    CycleState,
    Duration,
    EventRegistration,
    Handle,
    Input,
    Int64Array,
    NodeColumns,
    Pod,
    Resource,
    Status,
    Verdicts,
    format_seconds,
    hookimpl,
    int_scores,
    on,
    pod_resources,
    unschedulable,
)
from trio_sched_load_aware.loads import Placed, RecentPods, SignalLoads
from trio_sched_load_aware.prometheus import UnusableData, query, read_token

_CHUNK: Final = 500
"""How many pods are looked at before other tasks run."""
_LOG_SECONDS: Final = 300.0
"""How often a failure of the endpoint is told at most."""


class Of(Enum):
    """The resource that a signal is a share of; requests of new pods count in the same."""

    CPU = "cpu"
    MEMORY = "memory"
    NONE = "none"
    """Another one, network for instance: requests do not count."""


@frozen(kw_only=True)
class Signal:
    """One kind of load."""

    name: str = field(validator=validators.matches_re(r"[a-z][a-z0-9_]{0,62}"))
    """In reasons and metrics."""
    query: str = field(validator=validators.min_len(1))
    """PromQL with one value per node: the share of its capacity that is in use, from 0 to 1."""
    of: Of = Of.NONE
    """The resource that is measured."""
    weight: int = field(default=1, validator=[validators.ge(0), validators.le(100)])
    """How much it counts in the score."""
    threshold_percent: int = field(default=0, validator=[validators.ge(0), validators.le(100)])
    """Nodes with this load or more are rejected; 0 rejects none."""


_CPU: Final = Signal(
    name="cpu", query='1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[2m]))', of=Of.CPU
)
_MEMORY: Final = Signal(
    name="memory", query="1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes", of=Of.MEMORY
)


def _different_names(_args: object, attribute: Attribute[tuple[Signal, ...]], signals: tuple[Signal, ...]) -> None:
    if not signals or len({one.name for one in signals}) < len(signals):
        raise ValueError(f"{attribute.name}: there must be at least one, each with a name of its own")


def _is_http(_args: object, attribute: Attribute[str], address: str) -> None:
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"{attribute.name}: {address!r} must begin with http:// or https://")


@frozen(kw_only=True)
class LoadAwareArgs:
    """What ``pluginConfig`` says."""

    address: str = field(default="http://prometheus-server.monitoring.svc", validator=_is_http)
    """Where the Prometheus API is; ``/api/v1/query`` is added."""
    signals: tuple[Signal, ...] = field(default=(_CPU, _MEMORY), validator=_different_names)
    """What is asked for; by default CPU and memory, from node_exporter."""
    node_label: str = field(default="instance", validator=validators.min_len(1))
    """The label of the series with the name of the node; a port is cut off."""
    interval: Duration = field(default=15.0, validator=validators.ge(1.0))
    """How often it is asked."""
    timeout: Duration = field(default=5.0, validator=validators.gt(0.0))
    """How long a request may take."""
    max_age: Duration = field(default=120.0, validator=validators.ge(1.0))
    """For how long data counts; nodes with older data are scored like an average node, and not rejected."""
    peak_half_life: Duration = field(default=60.0, validator=validators.ge(0.0))
    """After what time half of a peak is forgotten; 0 takes every sample as it is."""
    warm_up: Duration = field(default=120.0, validator=validators.ge(0.0))
    """How long it takes until the data shows the load of a new pod; its requests count for the rest of that time."""
    token_file: str = ""
    """A file with a bearer token; it is read again for every request."""
    ca_file: str = ""
    """Certificates to trust instead of the usual ones."""


@define(eq=False)
class _Known:
    """What all instances of the plugin share: one of them fetches the data."""

    recent: RecentPods
    loads: tuple[dict[str, float], ...] = ()
    """Node → load, per signal; only what is new enough."""
    means: tuple[float, ...] = ()
    """The mean of each signal, which counts for nodes without data."""


class LoadAware:
    """Prefers nodes with little measured load; see `LoadAwareArgs`."""

    name: ClassVar[str] = "LoadAware"
    Args: ClassVar[type[LoadAwareArgs]] = LoadAwareArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.PODS})
    run_once_per_process: ClassVar[bool] = True

    def __init__(self, args: LoadAwareArgs, handle: Handle) -> None:
        self._args, self._handle = args, handle
        empty: tuple[dict[str, float], ...] = tuple({} for _ in args.signals)
        self._known = handle.shared(lambda: _Known(RecentPods(args.warm_up), empty, (0.0,) * len(empty)))
        self._signals = tuple(SignalLoads(args.max_age, args.peak_half_life) for _ in args.signals)
        self._thresholds = [one.threshold_percent / 100.0 for one in args.signals]
        self._reasons = [
            unschedulable(f"node(s) had a {one.name} load of {one.threshold_percent} % or more") for one in args.signals
        ]
        self._was_stale = [False] * len(args.signals)
        self._logged_at = float("-inf")
        metrics = handle.metrics
        self._fetches = metrics.counter("fetches_total", "Requests for the load of nodes.", ["signal", "result"])
        self._age = metrics.gauge("data_age_seconds", "Age of the newest load that was measured.", ["signal"])
        self._stale = metrics.gauge("data_stale", "1 while no load is known that is new enough.", ["signal"])
        self._nodes = metrics.gauge("nodes_with_data", "Nodes whose load is known.", ["signal"])
        self._recent = metrics.gauge("recent_pods", "Pods whose requests count because the load does not show them.")

    # --- the data -----------------------------------------------------------------------------------------------------

    @hookimpl
    async def run(self) -> None:
        """Fetch the load of all nodes again and again."""
        began = self._handle.now()
        while True:
            due = trio.current_time() + self._args.interval
            values: list[dict[str, float] | None] = [None] * len(self._args.signals)
            async with trio.open_nursery() as nursery:
                for number in range(len(self._args.signals)):
                    nursery.start_soon(self._fetch, number, values)
            await self._find_new_pods()
            self._take_in(values, began)
            await trio.sleep_until(max(due, trio.current_time()))

    async def _fetch(self, number: int, values: list[dict[str, float] | None]) -> None:
        args, signal = self._args, self._args.signals[number]
        try:
            token = read_token(args.token_file) if args.token_file else ""
            values[number] = await query(
                self._handle.http,
                args.address,
                signal.query,
                args.node_label,
                token=token,
                ca_file=args.ca_file,
                timeout_seconds=args.timeout,
            )
        except UnusableData as problem:
            self._fetches.inc(signal=signal.name, result="failed")
            now = self._handle.now()
            if now - self._logged_at >= _LOG_SECONDS:
                self._logged_at = now
                self._handle.log.warning("the %s load of nodes could not be fetched: %s", signal.name, problem)
        else:
            self._fetches.inc(signal=signal.name, result="fetched")

    def _take_in(self, values: list[dict[str, float] | None], began: float) -> None:
        """Show what was fetched to the hooks, and drop what is too old."""
        now, known = self._handle.now(), self._known
        names = {node.name for node in self._handle.objects("Node")}
        for signal, found in zip(self._signals, values, strict=True):
            if found is not None:
                signal.add({name: value for name, value in found.items() if name in names}, now)
            signal.forget(now, names)
        loads = tuple(signal.shown() for signal in self._signals)
        self._report(loads, now, began)
        sampled_at = min((now if found else float("-inf") for found in values), default=now)
        pods_changed = known.recent.advance(sampled_at, now)
        self._recent.set(len(known.recent))
        if loads == known.loads and not pods_changed:
            return
        overloaded = self._overloaded()
        known.loads = loads
        known.means = tuple(round(sum(one.values()) / len(one), 2) if one else 0.0 for one in loads)
        self._handle.invalidate()
        if pods_changed or overloaded - self._overloaded():
            self._retry_rejected()

    def _report(self, loads: tuple[dict[str, float], ...], now: float, began: float) -> None:
        for number, (signal, of) in enumerate(zip(self._signals, self._args.signals, strict=True)):
            newest = signal.newest
            if newest is not None:
                self._age.set(now - newest, signal=of.name)
            else:
                self._age.set(now - began, signal=of.name)
            is_stale = not loads[number]
            self._stale.set(int(is_stale), signal=of.name)
            self._nodes.set(len(loads[number]), signal=of.name)
            if is_stale is not self._was_stale[number]:
                self._was_stale[number] = is_stale
                if is_stale:
                    self._handle.log.warning("no %s load is known: all nodes count the same", of.name)
                else:
                    self._handle.log.info("the %s load of %d nodes is known", of.name, len(loads[number]))

    def _overloaded(self) -> set[tuple[int, str]]:
        return {
            (number, node)
            for number, loads in enumerate(self._known.loads)
            if self._thresholds[number]
            for node, load in loads.items()
            if load >= self._thresholds[number]
        }

    def _retry_rejected(self) -> None:
        """No event tells the queue that a node has less load."""
        if any(self._thresholds):
            for one in self._handle.pending_pods():
                if self.name in one.rejected_by:
                    self._handle.retry_after(one.pod, 0.0)

    async def _find_new_pods(self) -> None:
        """Find new pods, those too that were placed by other schedulers, or before this one has started."""
        since = format_seconds(self._handle.wall_seconds() - self._args.warm_up)
        for number, pod in enumerate(list(self._handle.objects("Pod"))):
            if pod.node_name and (pod.status.start_time or "") > since and pod.uid not in self._known.recent:
                self._place(pod, pod.node_name)
            if number % _CHUNK == _CHUNK - 1:
                await trio.lowlevel.checkpoint()

    def _place(self, pod: Pod, node_name: str) -> None:
        resources = pod_resources(pod)
        placed = Placed(node_name, self._handle.now(), resources.nonzero_cpu_milli, resources.nonzero_memory_bytes)
        self._known.recent.add(pod.uid, placed)

    # --- finding nodes ------------------------------------------------------------------------------------------------

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """Its requests, and whether it may be rejected."""
        resources = pod_resources(pod)
        return resources.nonzero_cpu_milli, resources.nonzero_memory_bytes, _is_of_daemon_set(pod)

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Pods of a DaemonSet have no choice."""
        return None if any(self._thresholds) and not _is_of_daemon_set(pod) else SKIP

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """No node whose load is at a threshold; those without data pass."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        extra_cpu, extra_memory = self._not_shown(nodes)
        for number, threshold in enumerate(self._thresholds):
            loads = self._known.loads[number]
            if not threshold or not loads:
                continue
            load = self._load(number, nodes, np.nan) + self._share(number, nodes, extra_cpu, extra_memory)
            codes[(codes == 0) & (load >= threshold - 1e-9)] = number + 1
        return Verdicts(codes, lambda code: self._reasons[code - 1])

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """What would be idle with the pod on the node, in per cent, as the weighted mean of all signals with data."""
        resources = pod_resources(pod)
        extra_cpu, extra_memory = self._not_shown(nodes)
        extra_cpu += resources.nonzero_cpu_milli
        extra_memory += resources.nonzero_memory_bytes
        total, weights = np.zeros(len(nodes)), 0
        for number, signal in enumerate(self._args.signals):
            if not self._known.loads[number]:
                continue
            load = self._load(number, nodes, self._known.means[number])
            load += self._share(number, nodes, extra_cpu, extra_memory)
            total += signal.weight * np.clip(1.0 - load, 0.0, 1.0)
            weights += signal.weight
        return int_scores(np.rint(total * 100.0 / weights)) if weights else np.zeros(len(nodes), dtype=np.int64)

    def _load(self, number: int, nodes: NodeColumns, unknown: float) -> NDArray[np.float64]:
        loads = self._known.loads[number]
        return np.array([loads.get(name, unknown) for name in nodes.names], dtype=np.float64)

    def _not_shown(self, nodes: NodeColumns) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Milli-CPU and bytes of pods on each node that the load does not show yet."""
        cpu, memory = np.zeros(len(nodes)), np.zeros(len(nodes))
        recent = self._known.recent
        with_recent = recent.nodes()
        if not with_recent:
            return cpu, memory
        for position, name in enumerate(nodes.names):
            if name in with_recent:
                present = (pod.uid for pod in nodes.node(position).pods)
                cpu[position], memory[position] = recent.on(name, present)
        return cpu, memory

    def _share(
        self, number: int, nodes: NodeColumns, cpu: NDArray[np.float64], memory: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """These amounts as shares of what the nodes have."""
        of = self._args.signals[number].of
        if of is Of.NONE:
            return np.zeros(len(nodes))
        amount, row = (cpu, 0) if of is Of.CPU else (memory, 1)
        share: NDArray[np.float64] = amount / np.maximum(nodes.allocatable[row], 1)
        return share

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """From now on its requests count, until the load shows it."""
        if not state.is_trial:
            self._place(pod, node_name)
        return None

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """It is not there after all."""
        self._known.recent.remove(pod.uid)

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """New nodes have no load; what becomes less on the others is seen when it is fetched."""
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
            on(Resource.ASSIGNED_POD, Action.DELETE, node_local=True),
        ]


def _is_of_daemon_set(pod: Pod) -> bool:
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())
