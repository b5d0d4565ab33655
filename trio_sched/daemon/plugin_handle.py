"""What plugins reach of the daemon: the `Handle` of one profile."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import msgspec
import trio
from attrs import define, field

from trio_sched.daemon.binder import Bind
from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.extenders import Extenders
from trio_sched.daemon.hook_time_limit import time_does_not_count
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.object_cache import ObjectCache
from trio_sched.daemon.preemption_executor import PreemptionExecutor
from trio_sched.daemon.scheduler_events import EventType, PodEvent
from trio_sched.daemon.unassigned_pods import UnassignedPods
from trio_sched.daemon.waiting_pods import WaitingPods
from trio_sched.daemon.watched_kinds import WATCHED_ANYWAY, kind_of
from trio_sched.daemon.work_pool import WorkPool
from trio_sched.engine.scheduler import Scheduler
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import (
    AlreadyExists,
    Conflict,
    ConnectionFailed,
    NotFound,
    ServerError,
    UndecodableObject,
)
from trio_sched.kube_client.kinds import Kind
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_group import PodGroup
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.handle import ObjectGone, OutcomeUnknown, WaitingPod, WriteConflict
from trio_sched.plugin_api.pod_groups import PodGroupState
from trio_sched.plugin_api.preemption import BudgetsByNamespace, DryRun, Victims, budgets_of
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns

log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class PluginHandle:
    """Given to every plugin of the profile; see `trio_sched.plugin_api.Handle` for the contract."""

    profile_name: str
    _scheduler: Scheduler
    _object_cache: ObjectCache
    _unassigned: UnassignedPods
    _waiting: WaitingPods
    _preemption_executor: PreemptionExecutor
    _extenders: Extenders | None
    _client: KubeClient
    _gate: Callable[[str], bool]
    _activate: Callable[[Iterable[Pod]], None]
    _bind: Bind
    _recorder: EventRecorder
    _background: WorkPool
    _metrics: MetricRecorder
    _budgets: tuple[int, BudgetsByNamespace] = field(factory=lambda: (-1, {}), init=False)

    @property
    def nodes(self) -> NodeColumns:
        """All nodes as they are now."""
        return NodeColumns(self._scheduler.cache.table)

    def feature_enabled(self, gate: str) -> bool:
        """Whether the gate is on."""
        return self._gate(gate)

    def now(self) -> float:
        """Seconds of the scheduler's clock."""
        return trio.current_time()

    def objects(self, kind: str) -> Iterable[Any]:
        """All known objects of a kind."""
        return self._object_cache.objects(kind)

    def object(self, kind: str, name: str, namespace: str = "") -> Any | None:
        """One known object."""
        return self._object_cache.get(kind, name, namespace)

    def version(self, kind: str) -> int:
        """The version of the objects of this kind."""
        return self._object_cache.version(kind)

    @property
    def rng(self) -> Random:
        """The scheduler's source of randomness."""
        return self._scheduler.rng

    def nominated_node(self, pod: Pod) -> str:
        """The nominator's node, else the one in the status."""
        known = self._scheduler.queue.nominator.node_of(pod.uid)
        return pod.nominated_node_name if known is None else known

    def pending_pod(self, namespace: str, name: str) -> Pod | None:
        """A pod without a node as the watch shows it."""
        return self._unassigned.get(f"{namespace}/{name}")

    def waiting_pods(self) -> Mapping[str, WaitingPod]:
        """Pods that wait on permit."""
        return self._waiting.by_uid

    def pod_group_state(self, namespace: str, name: str) -> PodGroupState | None:
        """The pods of a group."""
        groups = self._scheduler.cache.groups
        return None if groups is None else groups.get(f"{namespace}/{name}")

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods next."""
        self._activate(pods)

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Bind through the API server."""
        with time_does_not_count():  # a bind without a response is looked up for as long as that takes
            return await self._bind(pod, node_name)

    def wall_seconds(self) -> float:
        """The time of day."""
        return self._recorder.wall_clock().timestamp()

    def record_event(self, pod: Pod, type: EventType, reason: str, action: str, note: str) -> None:
        """Have an event sent."""
        self._recorder.record(
            PodEvent(
                pod=pod, type=type, reason=reason, action=action, note=note, reporting_controller=self.profile_name
            )
        )

    def count(self, metric: str, *labels: str, seconds: float | None = None) -> None:
        """Count, or observe *seconds*."""
        counter, histograms = self._metrics.of_plugins.get(metric, (None, None))
        if histograms is not None and seconds is not None:
            histograms.observe(seconds, *labels)
        elif counter is not None and seconds is None:
            counter[labels] += 1
        else:
            raise LookupError(f"{metric!r} is no metric in which plugins count{'' if seconds is None else ' seconds'}")

    def run_in_background(self, job: Callable[[], Awaitable[None]]) -> None:
        """Run *job* in a task of the pool."""
        self._background.submit(partial(_run_logged, job, self.profile_name))

    # --- writing ----------------------------------------------------------------------------------------------------

    async def read(self, kind: str, name: str, *, namespace: str = "") -> Any:
        """Get an object."""
        _check_name(kind, name)
        with _errors_of_the_api():
            return await verbs.get(self._client, _kind_to_write(kind), name, namespace=namespace)

    async def create(self, kind: str, body: Mapping[str, Any], *, namespace: str = "") -> Any:
        """Create an object."""
        found = _kind_to_write(kind)
        head = {"apiVersion": f"{found.group}/{found.version}".lstrip("/"), "kind": kind}
        with _errors_of_the_api():
            return await verbs.create(self._client, found, msgspec.json.encode({**head, **body}), namespace=namespace)

    async def patch(
        self, kind: str, name: str, patch: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Any:
        """Merge *patch* into an object."""
        _check_name(kind, name)
        found, body = _kind_to_write(kind), msgspec.json.encode(patch)
        with _errors_of_the_api():
            return await verbs.patch(self._client, found, name, body, namespace=namespace, subresource=subresource)

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        """Delete an object."""
        _check_name(kind, name)
        with _errors_of_the_api():
            await verbs.delete(self._client, _kind_to_write(kind), name, namespace=namespace, uid=uid)

    async def changed(self, kind: str, name: str, *, timeout_seconds: float, namespace: str = "") -> bool:
        """Wait for the next version of an object."""
        return await self._object_cache.wait_changed(kind, name, namespace, timeout_seconds)

    # --- preemption -------------------------------------------------------------------------------------------------

    def dry_run_preemption(self, pod: Pod, state: CycleState, node_names: Sequence[str], num_candidates: int) -> DryRun:
        """Find victims on copies of the columns."""
        is_watched = "PodDisruptionBudget" in self._object_cache.kinds
        version = self.version("PodDisruptionBudget") if is_watched else 0
        if is_watched and self._budgets[0] != version:
            self._budgets = (version, budgets_of(self.objects("PodDisruptionBudget")))
        budgets = self._budgets[1]
        return self._scheduler.dry_run_preemption(pod, state, node_names, num_candidates, budgets)

    async def process_preemption(self, pod: Pod, candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """Call the extenders that take part in preemption."""
        if self._extenders is None:
            return candidates
        asked = {name: (one.pods, one.pdb_violations) for name, one in candidates.items()}
        with time_does_not_count():
            left = await self._extenders.process_preemption(pod, asked)
        return {name: Victims(tuple(pods), violations) for name, (pods, violations) in left.items()}

    async def preempt(
        self, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str, *, in_background: bool
    ) -> Status | None:
        """Delete the victims through the API server."""
        with time_does_not_count():
            return await self._preemption_executor.preempt(
                preemptor, victims, node_name, plugin, in_background=in_background
            )

    def is_preempting_for(self, preemptor: Pod | PodGroup) -> bool:
        """Whether victims of this pod or group are not yet terminating."""
        return self._preemption_executor.is_preempting_for(preemptor.metadata.uid)

    def is_preempting_on(self, node_name: str) -> bool:
        """Whether victims on this node are not yet terminating."""
        return self._preemption_executor.is_preempting_on(node_name)


def _kind_to_write(kind: str) -> Kind[Any]:
    found = WATCHED_ANYWAY.get(kind)
    if found is None:
        known = kind_of(kind)
        if known is None:
            raise LookupError(f"{kind!r} is no kind that plugins can read or write")
        found = known[1]
    return found


def _check_name(kind: str, name: str) -> None:
    """Without a name, a request would be about all objects of the namespace."""
    if name in ("", ".", ".."):
        raise LookupError(f"no {kind} can be called {name!r}: give the name of the object")


@contextmanager
def _errors_of_the_api() -> Iterator[None]:
    """Turn errors that plugins act upon into those of the plugin API."""
    try:
        yield
    except (Conflict, AlreadyExists) as error:
        raise WriteConflict(str(error)) from error
    except NotFound as error:
        raise ObjectGone(str(error)) from error
    except ConnectionFailed as error:
        if error.may_have_reached_server:
            raise OutcomeUnknown(str(error)) from error
        raise
    except (ServerError, UndecodableObject) as error:  # a proxy, or a server at its limits, may answer too early
        raise OutcomeUnknown(str(error)) from error


async def _run_logged(job: Callable[[], Awaitable[None]], profile_name: str) -> None:
    try:
        await job()
    except Exception:
        log.exception("a background job of a plugin failed", extra={"profile": profile_name})
