"""Carries out preemptions: the condition of the victims, their deletion, and an event that names the preemptor.

Victims that are not bound yet (they wait on permit, or are in pre_bind) are rejected instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.limits import MAX_PARALLEL_PREEMPTORS
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.pod_status import PodStatusWriter
from trio_sched.daemon.pods_in_pre_bind import PodsInPreBind
from trio_sched.daemon.scheduler_events import preempted
from trio_sched.daemon.waiting_pods import WaitingPods
from trio_sched.daemon.work_pool import WorkPool
from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import first_leaf
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import KubeClientError, NotFound
from trio_sched.kube_client.pods import delete_pod
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, failure
from trio_sched.verbosity import V2

log = logging.getLogger(__name__)

PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"


@define(eq=False)
class _Preemption:
    """A preemption under way: its node, its victims, and the pods that rely on it."""

    node_name: str
    victims: dict[str, Pod]
    """Those that have to be deleted from the API server, by UID."""
    all_requested: bool = False
    """The deletion of every victim has been requested, or that of the last one is being requested."""
    preemptors: dict[str, Pod] = field(factory=dict)
    """The pods that need one of these victims gone, by UID: the one it is done for, and later ones."""


@define(eq=False, kw_only=True)
class PreemptionExecutor:
    """Deletes victims, in the background or while the caller waits."""

    client: KubeClient
    scheduler: Scheduler
    waiting: WaitingPods
    pods_in_pre_bind: PodsInPreBind
    recorder: EventRecorder
    status_writer: PodStatusWriter
    activate: Callable[[Sequence[Pod]], None]
    parallelism: int
    """How many victims of one preemptor are deleted at once."""
    metrics: MetricRecorder = field(factory=MetricRecorder)
    pool: WorkPool = field(factory=lambda: WorkPool(MAX_PARALLEL_PREEMPTORS))
    """Deletes victims in the background: a job for each preemptor."""
    _by_preemptor: dict[str, _Preemption] = field(factory=dict)

    def is_preempting_for(self, uid: str) -> bool:
        """Whether the preemptor *uid* has to wait: some of its victims are, as the watch shows, not being deleted."""
        preemption = self._by_preemptor.get(uid)
        return preemption is not None and self._is_ongoing(preemption)

    def is_preempting_on(self, node_name: str) -> bool:
        """Whether there are victims on *node_name*, of any preemptor, that the watch does not show as being deleted."""
        return any(one.node_name == node_name and self._is_ongoing(one) for one in self._by_preemptor.values())

    def _is_ongoing(self, preemption: _Preemption) -> bool:
        if not preemption.all_requested:
            return True
        on_node = (self._on_node(uid, preemption.node_name) for uid in preemption.victims)
        return any(victim is not None and victim.metadata.deletion_timestamp is None for victim in on_node)

    def _on_node(self, uid: str, node_name: str) -> Pod | None:
        """A victim as the watch shows it; None if it has left: one whose bind failed may be on another node."""
        cached = self.scheduler.cache.get(uid)
        return cached.pod if cached is not None and cached.node_name == node_name else None

    async def preempt(
        self, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str, *, in_background: bool
    ) -> Status | None:
        """Delete *victims*; see `trio_sched.plugin_api.Handle.preempt`."""
        self.metrics.victims.observe(len(victims))
        self._by_preemptor = {uid: one for uid, one in self._by_preemptor.items() if self._is_ongoing(one)}
        requested = {uid: preemption for preemption in self._by_preemptor.values() for uid in preemption.victims}
        for victim in victims:
            if victim.uid in requested:
                requested[victim.uid].preemptors[preemptor.uid] = preemptor
        remaining = [v for v in victims if v.metadata.deletion_timestamp is None and v.uid not in requested]
        if not remaining:
            if not in_background:
                self._clear_nominations(preemptor, node_name)
            return None
        preemption = _Preemption(
            node_name, {victim.uid: victim for victim in remaining}, preemptors={preemptor.uid: preemptor}
        )
        self._by_preemptor[preemptor.uid] = preemption
        fields = {"preemptor": preemptor.key, "node": node_name}
        log.log(V2, "the target node for the preemption is determined", extra=fields)
        if in_background:
            log.log(V2, "Start the preemption asynchronously", extra=fields | {"numVictims": len(remaining)})
            self._clear_nominations(preemptor, node_name)
            self.pool.submit(partial(self._preempt_in_background, preemption, preemptor, remaining, plugin))
            return None
        problem: KubeClientError | None = None
        try:
            await self._delete_victims(preemption, preemptor, remaining, plugin)
        except* KubeClientError as group:
            problem = first_leaf(group)
        preemption.all_requested = True
        if problem is not None:
            del self._by_preemptor[preemptor.uid]
            self.activate([one for uid, one in preemption.preemptors.items() if uid != preemptor.uid])
            return failure(problem)
        self._clear_nominations(preemptor, node_name)
        return None

    async def _preempt_in_background(
        self, preemption: _Preemption, preemptor: Pod, victims: Sequence[Pod], plugin: str
    ) -> None:
        problem: KubeClientError | None = None
        began = trio.current_time()
        try:
            *others, last = victims
            await self._delete_victims(preemption, preemptor, others, plugin)
            # Only the deletion of the last one may bring the preemptor back: before it there is not enough room.
            preemption.all_requested = True
            await self._delete_victim(preemption, preemptor, last, plugin)
        except* KubeClientError as group:
            problem = first_leaf(group)
        result = "success" if problem is None else "error"
        self.metrics.preemptions.observe(trio.current_time() - began, result)
        if problem is not None:
            if self._by_preemptor.get(preemptor.uid) is preemption:
                del self._by_preemptor[preemptor.uid]
            log.error("Error occurred during async preemption: %s", problem, extra={"pod": preemptor.key})
        else:
            fields = {"preemptor": preemptor.key, "node": preemption.node_name, "result": "success"}
            log.log(V2, "Async Preemption finished completely", extra=fields)
        if problem is not None or all(self._on_node(uid, preemption.node_name) is None for uid in preemption.victims):
            # No event about a victim will move them any more: the gate was closed when the last one left.
            self.activate(list(preemption.preemptors.values()))

    async def _delete_victims(
        self, preemption: _Preemption, preemptor: Pod, victims: Sequence[Pod], plugin: str
    ) -> None:
        """Delete *victims*, some at once; the first failure cancels the others."""
        limiter = trio.CapacityLimiter(self.parallelism)

        async def delete(victim: Pod) -> None:
            async with limiter:
                await self._delete_victim(preemption, preemptor, victim, plugin)

        async with trio.open_nursery() as nursery:
            for victim in victims:
                nursery.start_soon(delete, victim)

    async def _delete_victim(self, preemption: _Preemption, preemptor: Pod, victim: Pod, plugin: str) -> None:
        waiting = self.waiting.by_uid.get(victim.uid)
        is_rejected = waiting is not None and waiting.is_rejected
        if is_rejected or self._on_node(victim.uid, preemption.node_name) is None:
            del preemption.victims[victim.uid]  # it has left the node already, or is about to
            return
        if (waiting is not None and waiting.preempt(plugin, "preempted")) or self.pods_in_pre_bind.cancel(
            victim.uid, f"preempted by {plugin}"
        ):
            del preemption.victims[victim.uid]
            self._log_victim("Preemptor preempted a waiting pod", preemption, preemptor, victim)
            self.recorder.record(preempted(victim, preemptor, preemption.node_name, before_binding=True))
            return
        try:
            await self._write_condition(preemptor, victim)
            await delete_pod(self.client, namespace=victim.namespace, name=victim.name)
        except NotFound:
            del preemption.victims[victim.uid]  # if the watch goes on showing it, nobody is to wait for its deletion
            return
        self._log_victim("Preemptor Pod preempted victim Pod", preemption, preemptor, victim)
        self.recorder.record(preempted(victim, preemptor, preemption.node_name))

    def _log_victim(self, message: str, preemption: _Preemption, preemptor: Pod, victim: Pod) -> None:
        fields = {"preemptor": preemptor.key, "victim": victim.key, "node": preemption.node_name}
        log.log(V2, message, extra=fields)

    async def _write_condition(self, preemptor: Pod, victim: Pod) -> None:
        """Say in the victim's status why it is deleted, so that its owner can tell this from a failure."""
        cached = self.scheduler.cache.get(victim.uid)
        await self.status_writer.write_disruption_target(
            victim if cached is None else cached.pod,
            reason=PREEMPTION_BY_SCHEDULER,
            message=f"{preemptor.scheduler_name}: preempting to accommodate a higher priority pod",
        )

    def _clear_nominations(self, preemptor: Pod, node_name: str) -> None:
        """Clear the nominations of pods with a lower priority to this node: they have to find another one."""
        for nominated in self.scheduler.nominated_pods(node_name):
            if nominated.priority < preemptor.priority:
                self.status_writer.write_nomination(nominated, "")
