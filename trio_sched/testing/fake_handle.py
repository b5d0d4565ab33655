"""A `Handle` for tests: it records calls, and returns what the test has set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from itertools import chain
from random import Random
from typing import Any, Literal, TypeVar, cast

from attrs import define, field

from trio_sched.config.feature_gates import DEFAULT_GATES, DEFAULT_VERSION
from trio_sched.daemon.logs.plugin_log import PluginLog, plugin_log
from trio_sched.daemon.metrics.series.handle_metrics import PluginMetricRegistry, PluginMetrics
from trio_sched.daemon.plugins.object_references import reference_to
from trio_sched.daemon.plugins.plugin_handle import check_event, check_retry
from trio_sched.daemon.plugins.plugin_http import PluginHttp
from trio_sched.engine.group_forest import GroupForest
from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api.custom_resources import CustomResource
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.handle import Handle
from trio_sched.plugin_api.pending_pods import PendingPod, QueueState
from trio_sched.plugin_api.pod_groups import PodGroupState, PodGroupTree
from trio_sched.plugin_api.preemption import DryRun, Victims
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.devices.device_table import KINDS as DEVICE_KINDS
from trio_sched.snapshot.node_columns import NodeColumns, NodeView
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing.endpoints import Endpoint, PretendEndpoints
from trio_sched.testing.fake_objects import FakeObjects

T = TypeVar("T")


@define(eq=False)
class FakeWaitingPod:
    """A waiting pod for tests; records whether plugins allow or reject it."""

    pod: Pod
    pending_plugins: frozenset[str]
    rejection: tuple[str, str] | None = None
    """(plugin, message) once it is rejected."""

    @property
    def is_allowed(self) -> bool:
        """Whether all plugins have allowed it."""
        return not self.pending_plugins and self.rejection is None

    def allow(self, plugin: str) -> None:
        """*plugin* allows the pod."""
        self.pending_plugins -= {plugin}

    def reject(self, plugin: str, message: str) -> bool:
        """Reject the pod; False if it was rejected or allowed already."""
        if self.rejection is not None or not self.pending_plugins:
            return False
        self.rejection = (plugin, message)
        return True


@define(eq=False, kw_only=True)
class FakeHandle(FakeObjects):
    """A `Handle` for tests; every attribute can be changed at any time."""

    profile_name: str = "default-scheduler"
    plugin_name: str = "Plugin"
    """The name in metrics and logs of a plugin that gets this handle itself; see `for_plugin`."""
    gates: dict[str, bool] = field(factory=dict)
    """Feature gates that differ from Kubernetes' defaults, or that Kubernetes does not have."""
    emulated_version: tuple[int, int] = DEFAULT_VERSION
    """The minor version of Kubernetes whose behaviour plugins have; gates keep their defaults unless in *gates*."""
    _nodes: NodeColumns = field(factory=lambda: NodeColumns(NodeTable()))
    waiting: dict[str, FakeWaitingPod] = field(factory=dict)
    """What `waiting_pods` returns, by UID."""
    bind_status: Status | None = None
    """What `bind` returns."""
    bound: list[tuple[Pod, str]] = field(factory=list)
    """(pod, node name) for every call of `bind`."""
    grouped: list[Pod] = field(factory=list)
    """The members of pod groups that `pod_group_state` knows; one with a node is assigned to it."""
    assumed: list[tuple[Pod, str]] = field(factory=list)
    """Those of *grouped* that are assumed on a node, with its name."""
    activated: list[Pod] = field(factory=list)
    """Pods that `activate` was called with."""
    rng: Random = field(factory=lambda: Random(0))
    """The random number generator."""
    pending: MutableMapping[str, Pod | PendingPod] = field(factory=dict)
    """What `pending_pods` and `pending_pod` return, by ``namespace/name``; a plain pod is in flight."""
    evicted: list[Pod] = field(factory=list)
    """Pods that `evict` was called with."""
    invalidations: int = 0
    """How often `invalidate` was called."""
    sorts: int = 0
    """How often `sort_queue` was called."""
    retries: list[tuple[Pod, float]] = field(factory=list)
    """(pod, seconds) for every call of `retry_after`."""
    endpoints: MutableMapping[str, Endpoint] = field(factory=dict)
    """What responds to the requests of `http`, by the beginning of the URL: ``{"http://prometheus:9090": respond}``."""
    dry_run: DryRun = field(factory=lambda: DryRun({}, {}))
    """What `dry_run_preemption` returns."""
    preempted: list[tuple[Pod, tuple[Pod, ...], str]] = field(factory=list)
    """(preemptor, victims, node name) for every call of `preempt`."""
    preempt_status: Status | None = None
    """What `preempt` returns."""
    preempting_for: set[str] = field(factory=set)
    """UIDs of pods and pod groups for which `is_preempting_for` is true."""
    preempting_on: set[str] = field(factory=set)
    """Names of nodes for which `is_preempting_on` is true."""
    events: list[tuple[Any, str, str]] = field(factory=list)
    """(object, reason, note) for every call of `record_event`."""
    counted: list[tuple[str, ...]] = field(factory=list)
    """(metric, labels…) for every call of `count`."""
    jobs: list[Callable[[], Awaitable[None]]] = field(factory=list)
    """What `run_in_background` was called with."""
    _shown_devices: dict[tuple[str, str, str], Any] = field(factory=dict, init=False)
    """The slices and claims that the columns have."""
    _metrics: PluginMetricRegistry = field(factory=PluginMetricRegistry, init=False)
    _shared: dict[str, Any] = field(factory=dict, init=False)

    def for_plugin(self, name: str) -> Handle:
        """The handle of the plugin *name*: this one, but with metrics, a log and shared objects of its own.

        `make_plugin`, `schedule` and all that make plugins give it to them.
        """
        return cast("Handle", _OfPlugin(self, name))

    @property
    def nodes(self) -> NodeColumns:
        """The nodes, with the slices and claims in *known_objects*; can be set."""
        self._show_devices()
        return self._nodes

    @nodes.setter
    def nodes(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._shown_devices.clear()
        self._show_devices()

    def _show_devices(self) -> None:
        devices = self._nodes.devices
        found = {
            (kind, one.metadata.namespace, one.metadata.name): one
            for kind in DEVICE_KINDS
            for one in self.known_objects.get(kind, ())
        }
        for key in self._shown_devices.keys() - found.keys():
            kind, namespace, name = key
            devices.remove(kind, name, namespace)
        for key, one in found.items():
            if self._shown_devices.get(key) is not one:
                devices.put(one)
        self._shown_devices = found

    def pods_or_nodes(self, kind: str) -> Iterable[Any]:
        """The nodes, or the pods on them and those in *pending*."""
        if kind == "Node":
            return [view.node for view in self._nodes]
        placed = chain.from_iterable(view.pods for view in self._nodes)
        return [*placed, *(one.pod for one in self.pending_pods())]

    def pod_created(self, pod: Any) -> None:
        """Put a pod into *pending*."""
        if isinstance(pod, Pod):
            self.pending[pod.key] = pod

    def feature_enabled(self, gate: str) -> bool:
        """The value in *gates*, else Kubernetes' default.

        Raises:
            KeyError: there is no such gate.
        """
        return self.gates[gate] if gate in self.gates else DEFAULT_GATES.enabled(gate)

    def now(self) -> float:
        """The time on *clock*."""
        return self.clock

    def waiting_pods(self) -> Mapping[str, FakeWaitingPod]:
        """The pods in *waiting*."""
        return self.waiting

    def add_waiting(self, pod: Pod, *plugins: str) -> FakeWaitingPod:
        """Add *pod* to *waiting*, pending *plugins*."""
        waiting = self.waiting[pod.uid] = FakeWaitingPod(pod, frozenset(plugins))
        return waiting

    def pod_group_state(self, namespace: str, name: str) -> PodGroupState | None:
        """The state of a group whose pods are in *grouped*, and in *assumed* those that are assumed on a node."""
        states = PodGroupStates()
        for pod in self.grouped:
            states.add(pod)
        for pod, node_name in self.assumed:
            states.assume(pod, node_name)
        return states.get(f"{namespace}/{name}")

    def pod_group_tree(self, namespace: str, name: str) -> PodGroupTree | Status:
        """The tree of the groups in *known_objects* that a pod group is in."""
        forest = GroupForest()
        for kind in ("CompositePodGroup", "PodGroup"):
            for group in self.known_objects.get(kind, ()):
                forest.put(group, self.clock)
        return forest.tree_of(f"{namespace}/{name}")

    def activate(self, pods: Iterable[Pod]) -> None:
        """Record *pods* in *activated*."""
        self.activated.extend(pods)

    def nominated_node(self, pod: Pod) -> str:
        """The nominated node in the pod's status."""
        return pod.nominated_node_name

    def pending_pods(self) -> list[PendingPod]:
        """The pods in *pending*."""
        return [self._as_pending(one) for one in self.pending.values()]

    def pending_pod(self, namespace: str, name: str) -> PendingPod | None:
        """The pod in *pending* with this name, or None."""
        one = self.pending.get(f"{namespace}/{name}")
        return None if one is None else self._as_pending(one)

    def _as_pending(self, one: Pod | PendingPod) -> PendingPod:
        if isinstance(one, PendingPod):
            return one
        return PendingPod(pod=one, state=QueueState.IN_FLIGHT, added_at=self.clock)

    def retry_after(self, pod: Pod, seconds: float) -> None:
        """Record the call in *retries*.

        Raises:
            ValueError: *seconds* is negative.
        """
        check_retry(pod, seconds)
        self.retries.append((pod, seconds))

    @property
    def log(self) -> PluginLog:
        """A logger, as in the scheduler: a test reads it with pytest's ``caplog``."""
        return plugin_log(self.plugin_name, self.profile_name)

    @property
    def metrics(self) -> PluginMetrics:
        """The metrics of the plugin; a test reads them with `metric_value`."""
        return self._metrics.of_plugin(self.plugin_name)

    def metric_value(self, name: str, **labels: Any) -> float:
        """What a plugin has counted in its metric *name* under *labels*; of a histogram the number of observations.

        Raises:
            LookupError: no plugin has made such a metric, or two have.
            ValueError: the metric has other labels.
        """
        return self._metrics.value(name, labels)

    @property
    def http(self) -> PluginHttp:
        """Requests to *endpoints*."""
        how = "add it to FakeHandle(endpoints={url: function})"
        return PluginHttp(PretendEndpoints(self.endpoints, how))

    def shared(self, factory: Callable[[], T]) -> T:
        """What the instances of the plugin share."""
        return self.shared_of(self.plugin_name, factory)

    def shared_of(self, plugin: str, factory: Callable[[], T]) -> T:
        """What the instances of *plugin* that got this handle share."""
        if plugin not in self._shared:
            self._shared[plugin] = factory()
        return cast("T", self._shared[plugin])

    def dry_run_preemption(
        self,
        pod: Pod,
        state: CycleState,
        node_names: Sequence[str],
        num_candidates: int,
        *,
        evictable: Callable[[NodeView], Iterable[Pod]] | None = None,
    ) -> DryRun:
        """Return *dry_run*."""
        return self.dry_run

    async def process_preemption(self, pod: Pod, candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """Return *candidates*: there are no extenders."""
        return candidates

    async def preempt(
        self,
        preemptor: Pod,
        victims: Sequence[Pod],
        node_name: str,
        plugin: str,
        *,
        in_background: bool,
        pdb_violations: int = 0,
        group_disruptions: int = 0,
    ) -> Status | None:
        """Record the victims in *preempted* and return *preempt_status*."""
        self._written.append(("Pod", "delete"))
        self.preempted.append((preemptor, tuple(victims), node_name))
        return self.preempt_status

    def is_preempting_for(self, preemptor: Pod | PodGroup | CompositePodGroup) -> bool:
        """Whether its UID is in *preempting_for*."""
        return preemptor.metadata.uid in self.preempting_for

    def is_preempting_on(self, node_name: str) -> bool:
        """Whether the node is in *preempting_on*."""
        return node_name in self.preempting_on

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Record the binding in *bound* and return *bind_status*."""
        self.bound.append((pod, node_name))
        return self.bind_status

    def wall_seconds(self) -> float:
        """The time on *clock*, counted from 1970."""
        return self.clock

    def record_event(self, about: Any, type: Literal["Normal", "Warning"], reason: str, action: str, note: str) -> None:
        """Record the event in *events*.

        Raises:
            TypeError: *about* is no object.
            ValueError: another argument is not usable.
        """
        check_event(type, reason, action, note)
        kinds = [kind for kind in (*(self.watched or ()), *self.known_objects) if isinstance(kind, CustomResource)]
        reference_to(about, {kind.resource: kind for kind in kinds})
        self.events.append((about, reason, note))

    def count(self, metric: str, *labels: str, seconds: float | None = None) -> None:
        """Record the call in *counted*."""
        self.counted.append((metric, *labels))

    def run_in_background(self, job: Callable[[], Awaitable[None]]) -> None:
        """Put *job* into *jobs*; the test calls and awaits it."""
        self.jobs.append(job)

    def invalidate(self) -> None:
        """Count the call in *invalidations*."""
        self.invalidations += 1

    def sort_queue(self) -> None:
        """Count the call in *sorts*."""
        self.sorts += 1

    async def evict(self, pod: Pod) -> None:
        """Record the pod in *evicted*, or raise *refusal*."""
        self._written.append(("Pod/eviction", "create"))
        if self.refusal is not None:
            raise self.refusal
        self.evicted.append(pod)


class _OfPlugin:
    """What one plugin gets of a `FakeHandle`."""

    def __init__(self, handle: FakeHandle, plugin_name: str) -> None:
        self._handle, self.plugin_name = handle, plugin_name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    @property
    def log(self) -> PluginLog:
        return plugin_log(self.plugin_name, self._handle.profile_name)

    @property
    def metrics(self) -> PluginMetrics:
        return self._handle._metrics.of_plugin(self.plugin_name)

    def shared(self, factory: Callable[[], T]) -> T:
        return self._handle.shared_of(self.plugin_name, factory)
