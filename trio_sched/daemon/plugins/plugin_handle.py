"""What plugins reach of the daemon: the `Handle` of one plugin in one profile."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

import trio
from attrs import define, field

from trio_sched.daemon.hooks.hook_time_limit import time_does_not_count
from trio_sched.daemon.limits import MAX_PLUGIN_RETRY_SECONDS
from trio_sched.daemon.logs.plugin_log import PluginLog, plugin_log
from trio_sched.daemon.metrics.series.handle_metrics import PluginMetrics
from trio_sched.daemon.plugins.handle_parts import HandleParts
from trio_sched.daemon.plugins.kind_mistakes import undeclared_write, write_key
from trio_sched.daemon.plugins.object_references import reference_to
from trio_sched.daemon.plugins.plugin_http import PluginHttp
from trio_sched.daemon.pods.preemption_executor import Loss
from trio_sched.daemon.writes.scheduler_events import EventType, PodEvent
from trio_sched.engine.evaluation.preemption import Evictable
from trio_sched.engine.queue.pending_pods import pending_pods
from trio_sched.go.text import quote
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api.custom_resources import CustomResource, Watched
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.handle import KindNotWatched, WaitingPod
from trio_sched.plugin_api.pending_pods import PendingPod
from trio_sched.plugin_api.pod_groups import PodGroupState, PodGroupTree
from trio_sched.plugin_api.preemption import DryRun, Victims
from trio_sched.plugin_api.status import Status, unresolvable
from trio_sched.snapshot.node_columns import NodeColumns

log = logging.getLogger(__name__)

T = TypeVar("T")


@define(eq=False)
class SharedObjects:
    """What the instances of plugins share, as long as one configuration is in force."""

    custom_resources: Mapping[str, CustomResource[Any]] = field(factory=dict)
    """Those that plugins have declared."""
    is_loading: bool = True
    """Whether plugins are still being made."""
    writes: dict[str, frozenset[tuple[str, str]]] = field(factory=dict)
    """What each plugin says that it writes; see `trio_sched.daemon.plugins.kind_mistakes.declared_writes`."""
    _of_plugins: dict[str, Any] = field(factory=dict, init=False)

    def of_plugin(self, plugin: str, factory: Callable[[], T]) -> T:
        """What *plugin* has made with its first *factory*."""
        if plugin not in self._of_plugins:
            self._of_plugins[plugin] = factory()
        found: T = self._of_plugins[plugin]
        return found

    def is_undeclared(self, plugin: str, written: str, verb: str) -> bool:
        """Whether *plugin* writes what it has not declared; False from the second time on."""
        declared = self.writes.get(plugin)
        if declared is None or (written, verb) in declared:
            return False
        self.writes[plugin] = declared | {(written, verb)}
        return True


@define(eq=False, kw_only=True)
class PluginHandle:
    """Given to one plugin of one profile; see `trio_sched.plugin_api.Handle` for the contract."""

    profile_name: str
    plugin_name: str
    _parts: HandleParts
    emulated_version: tuple[int, int]
    _gate: Callable[[str], bool]
    _shared: SharedObjects
    _log: PluginLog | None = field(default=None, init=False)

    @property
    def nodes(self) -> NodeColumns:
        """All nodes as they are now."""
        return NodeColumns(self._parts.scheduler.cache.table)

    def feature_enabled(self, gate: str) -> bool:
        """Whether the gate is on."""
        return self._gate(gate)

    def now(self) -> float:
        """Seconds of the scheduler's clock."""
        return trio.current_time()

    def objects(self, kind: Watched) -> Iterable[Any]:
        """All known objects of a kind."""
        try:
            return self._parts.scheduler.object_cache.objects(kind)
        except KindNotWatched:
            if self._shared.is_loading:  # then it is not known yet what this configuration watches
                return ()
            raise

    def object(self, kind: Watched, name: str, namespace: str = "") -> Any | None:
        """One known object."""
        try:
            return self._parts.scheduler.object_cache.get(kind, name, namespace)
        except KindNotWatched:
            if self._shared.is_loading:
                return None
            raise

    def version(self, kind: Watched) -> int:
        """The version of the objects of this kind."""
        return self._parts.scheduler.object_cache.version(kind)

    @property
    def rng(self) -> Random:
        """The scheduler's source of randomness."""
        return self._parts.scheduler.rng

    @property
    def log(self) -> PluginLog:
        """The plugin's logger."""
        if self._log is None:
            self._log = plugin_log(self.plugin_name, self.profile_name)
        return self._log

    @property
    def metrics(self) -> PluginMetrics:
        """The plugin's metrics."""
        return self._parts.plugin_metrics.of_plugin(self.plugin_name)

    @property
    def http(self) -> PluginHttp:
        """Requests to other servers."""
        return self._parts.http

    def shared(self, factory: Callable[[], T]) -> T:
        """What all instances of the plugin share."""
        return self._shared.of_plugin(self.plugin_name, factory)

    def invalidate(self) -> None:
        """Have cached results computed again."""
        scheduler = self._parts.scheduler
        if scheduler.object_cache.dependencies.is_recording:  # a hook whose result is to be cached calls this
            trio.lowlevel.current_trio_token().run_sync_soon(scheduler.invalidate_signatures, idempotent=True)
        else:
            scheduler.invalidate_signatures()

    def sort_queue(self) -> None:
        """Have queue_sort asked again."""
        queue = self._parts.scheduler.queue
        trio.lowlevel.current_trio_token().run_sync_soon(queue.sort_again, idempotent=True)

    # --- the queue --------------------------------------------------------------------------------------------------

    def nominated_node(self, pod: Pod) -> str:
        """The nominator's node, else the one in the status."""
        return self._parts.scheduler.queue.nominator.node_name(pod)

    def pending_pods(self) -> list[PendingPod]:
        """All pods without a node."""
        scheduler = self._parts.scheduler
        return pending_pods(scheduler.queue, scheduler.cache.unassigned.pods(), trio.current_time())

    def pending_pod(self, namespace: str, name: str) -> PendingPod | None:
        """One of them."""
        pod = self._parts.scheduler.cache.unassigned.get(f"{namespace}/{name}")
        return None if pod is None else pending_pods(self._parts.scheduler.queue, [pod], trio.current_time())[0]

    def waiting_pods(self) -> Mapping[str, WaitingPod]:
        """Pods that wait on permit."""
        return self._parts.waiting.by_uid

    def pod_group_state(self, namespace: str, name: str) -> PodGroupState | None:
        """The pods of a group."""
        return self._parts.scheduler.cache.groups.get(f"{namespace}/{name}")

    def pod_group_tree(self, namespace: str, name: str) -> PodGroupTree | Status:
        """The tree that a pod group is in."""
        forest = self._parts.scheduler.forest
        if forest is not None:
            return forest.tree_of(f"{namespace}/{name}")
        group: PodGroup | None = self.object("PodGroup", name, namespace)
        return unresolvable(f"pod group {quote(name)} not found") if group is None else PodGroupTree(group)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods next."""
        pods = list(pods)
        for one in pods:
            if not isinstance(one, Pod):
                raise TypeError(f"handle.activate takes pods, not {type(one).__name__}")
        self._parts.activate(pods)

    def retry_after(self, pod: Pod, seconds: float) -> None:
        """Try this pod again then."""
        check_retry(pod, seconds)
        known = self._parts.scheduler.cache.unassigned.get(pod.key)
        if known is None or known.uid != pod.uid:
            return
        due = trio.current_time() + min(seconds, MAX_PLUGIN_RETRY_SECONDS)
        if self._parts.scheduler.queue.retries.start(pod.uid, pod.key, self.plugin_name, due):
            self._parts.retries_changed()

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Bind through the API server."""
        with time_does_not_count():  # a bind without a response is looked up for as long as that takes
            return await self._parts.bind(pod, node_name)

    def wall_seconds(self) -> float:
        """The time of day."""
        return self._parts.recorder.wall_clock().timestamp()

    def record_event(self, about: Any, type: EventType, reason: str, action: str, note: str) -> None:
        """Have an event sent."""
        check_event(type, reason, action, note)
        self._parts.recorder.record_of_plugin(
            PodEvent(
                pod=about,
                type=type,
                reason=reason,
                action=action,
                note=note,
                reporting_controller=self.profile_name,
                regarding=None if isinstance(about, Pod) else reference_to(about, self._shared.custom_resources),
            ),
        )

    def count(self, metric: str, *labels: str, seconds: float | None = None) -> None:
        """Count, or observe *seconds*."""
        counter, histograms = self._parts.metrics.of_plugins.get(metric, (None, None))
        if histograms is not None and seconds is not None:
            histograms.observe(seconds, *labels)
        elif counter is not None and seconds is None:
            counter[labels] += 1
        else:
            raise LookupError(f"{metric!r} is no metric in which plugins count{'' if seconds is None else ' seconds'}")

    def run_in_background(self, job: Callable[[], Awaitable[None]]) -> None:
        """Run *job* in a task of its own."""
        self._parts.background.submit(self.plugin_name, self.profile_name, job)

    # --- writing ----------------------------------------------------------------------------------------------------

    async def read(self, kind: Watched, name: str, *, namespace: str = "") -> Any:
        """Get an object."""
        return await self._parts.writes.read(kind, name, namespace=namespace)

    async def create(self, kind: Watched, body: Any, *, namespace: str = "") -> Any:
        """Create an object."""
        self._note_write(write_key(kind), "create")
        return await self._parts.writes.create(kind, body, namespace=namespace)

    async def patch(
        self, kind: Watched, name: str, patch: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Any:
        """Merge *patch* into an object."""
        self._note_write(write_key(kind, subresource), "patch")
        return await self._parts.writes.patch(kind, name, patch, namespace=namespace, subresource=subresource)

    async def delete(self, kind: Watched, name: str, *, namespace: str = "", uid: str = "") -> None:
        """Delete an object."""
        self._note_write(write_key(kind), "delete")
        await self._parts.writes.delete(kind, name, namespace=namespace, uid=uid)

    async def evict(self, pod: Pod) -> None:
        """Delete a pod unless a disruption budget protects it."""
        self._note_write("Pod/eviction", "create")
        await self._parts.writes.evict(pod)

    def _note_write(self, written: str, verb: str) -> None:
        if self._shared.is_undeclared(self.plugin_name, written, verb):
            log.warning("plugin %s: %s", self.plugin_name, undeclared_write(written, verb), extra=self._place)

    @property
    def _place(self) -> dict[str, str]:
        return {"plugin": self.plugin_name, "profile": self.profile_name}

    async def changed(self, kind: Watched, name: str = "", *, timeout_seconds: float, namespace: str = "") -> bool:
        """Wait for the next version of an object, or of any of its kind."""
        self._parts.scheduler.object_cache.version(kind)  # raises if it is not watched
        return await self._parts.object_waits.wait(kind, name, namespace, timeout_seconds)

    # --- preemption -------------------------------------------------------------------------------------------------

    def dry_run_preemption(
        self,
        pod: Pod,
        state: CycleState,
        node_names: Sequence[str],
        num_candidates: int,
        *,
        evictable: Evictable | None = None,
    ) -> DryRun:
        """Find victims on copies of the columns."""
        return self._parts.dry_run_preemption(pod, state, node_names, num_candidates, evictable)

    async def process_preemption(self, pod: Pod, candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """Call the extenders that take part in preemption."""
        if self._parts.extenders is None:
            return candidates
        asked = {name: (one.pods, one.pdb_violations) for name, one in candidates.items()}
        with time_does_not_count():
            left = await self._parts.extenders.process_preemption(pod, asked)
        return {name: Victims(tuple(pods), violations) for name, (pods, violations) in left.items()}

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
        """Delete the victims through the API server."""
        self._note_write("Pod", "delete")
        loss = Loss(pdb_violations, group_disruptions)
        with time_does_not_count():
            return await self._parts.preemption_executor.preempt(
                preemptor, victims, node_name, plugin, loss, in_background=in_background
            )

    def is_preempting_for(self, preemptor: Pod | PodGroup | CompositePodGroup) -> bool:
        """Whether victims of this pod or group are not yet terminating."""
        return self._parts.preemption_executor.is_preempting_for(preemptor.metadata.uid)

    def is_preempting_on(self, node_name: str) -> bool:
        """Whether victims on this node are not yet terminating."""
        return self._parts.preemption_executor.is_preempting_on(node_name)


def check_retry(pod: object, seconds: object) -> None:
    """Check the arguments of ``retry_after``.

    Raises:
        TypeError: *pod* is no pod.
        ValueError: *seconds* is no time.
    """
    if not isinstance(pod, Pod):
        raise TypeError(f"handle.retry_after takes a pod, not {type(pod).__name__}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:  # NaN is not
        raise ValueError(f"handle.retry_after takes the seconds from now on, 0 or more, not {seconds!r}")


def check_event(type_: object, reason: object, action: object, note: object) -> None:
    """Check the arguments of ``record_event``.

    Raises:
        ValueError: the API server would refuse the event.
    """
    if type_ not in ("Normal", "Warning"):
        raise ValueError(f"handle.record_event: type must be 'Normal' or 'Warning', not {type_!r}")
    for name, value in (("reason", reason), ("action", action)):
        if not isinstance(value, str) or not 0 < len(value) <= 128:
            raise ValueError(f"handle.record_event: {name} must be a word of up to 128 characters, not {value!r}")
    if not isinstance(note, str):
        raise ValueError(f"handle.record_event: note must be a text, not {note!r}")
