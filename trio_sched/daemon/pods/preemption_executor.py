"""Carries out preemptions: the condition of the victims, their deletion, and an event that names the preemptor.

Victims that are not bound yet (they wait on permit, or are in pre_bind) are rejected instead.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import ClassVar, Final

import trio
from attrs import define, field, frozen

from trio_sched.daemon.limits import MAX_PARALLEL_PREEMPTORS
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.pods.pod_status import DISRUPTION_TARGET, PodStatusWriter
from trio_sched.daemon.pods.pods_in_pre_bind import PodsInPreBind
from trio_sched.daemon.pods.waiting_pods import WaitingPods
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.scheduler_events import PodEvent, preempted
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.engine.group_forest import AnyGroup
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


GROUP: Final = "podgroup"
CLUSTER: Final = "cluster"
"""Stands for the node of victims that are on different nodes."""


@frozen(eq=False)
class Preemptor:
    """A pod, or a pod group, for which pods are evicted."""

    uid: str
    key: str
    priority: int
    scheduler_name: str
    kind: str
    """``pod`` or ``podgroup``, for texts."""
    pods: tuple[Pod, ...]

    @classmethod
    def of_pod(cls, pod: Pod) -> Preemptor:
        """A single pod."""
        return cls(pod.uid, pod.key, pod.priority, pod.scheduler_name, "pod", (pod,))

    @classmethod
    def of_group(cls, group: AnyGroup, pods: tuple[Pod, ...]) -> Preemptor:
        """A group, with the pods of it that are being scheduled."""
        key = f"{group.namespace}/{group.name}"
        return cls(group.metadata.uid, key, group.spec.priority or 0, pods[0].scheduler_name, GROUP, pods)


@frozen
class Loss:
    """What evictions cost besides pods, for metrics; see `trio_sched.plugin_api.Handle.preempt`."""

    pdb_violations: int = 0
    group_disruptions: int = 0


HeldPreemption = Callable[[], Awaitable[Status | None]]
"""A preemption that a plugin has asked for and that is carried out, or not, once its group has an outcome."""


@define(eq=False)
class _Preemption:
    """A preemption under way: its node, its victims, and the pods that rely on it."""

    node_name: str
    """Where room is made; `CLUSTER` if on different nodes."""
    victims: dict[str, Pod]
    """Those that have to be deleted from the API server, by UID; on *node_name* unless their spec names another."""
    all_requested: bool = False
    """The deletion of every victim has been requested, or that of the last one is being requested."""
    preemptors: dict[str, Preemptor] = field(factory=dict)
    """Those that need one of these victims gone, by UID: the one it is done for, and later ones."""

    @property
    def other_node_names(self) -> set[str]:
        """The other nodes with victims: with the pod in the way, all of its group leave."""
        return {self._where(one) for one in self.victims.values()} - {self.node_name}

    def is_on(self, victim: Pod, node_name: str) -> bool:
        """Whether *victim* was found on the node called *node_name*."""
        return self._where(victim) in (node_name, CLUSTER)

    def _where(self, victim: Pod) -> str:
        return CLUSTER if self.node_name == CLUSTER else victim.node_name or self.node_name

    def waiting_pods(self) -> list[Pod]:
        """The pods that need one of these victims gone."""
        return [pod for preemptor in self.preemptors.values() for pod in preemptor.pods]


@define(eq=False, kw_only=True)
class PreemptionExecutor:
    """Deletes victims, in the background or while the caller waits."""

    reserves_for_groups: ClassVar[bool] = False
    """Whether the places of a group are reserved before anybody is evicted for it."""
    client: KubeClient
    scheduler: Scheduler
    waiting: WaitingPods
    pods_in_pre_bind: PodsInPreBind
    recorder: EventRecorder
    status_writer: PodStatusWriter
    activate: Callable[[Sequence[Pod]], None]
    parallelism: int
    """How many victims of one preemptor are deleted at once."""
    metrics: MetricRecorder
    pool: WorkPool = field(factory=lambda: WorkPool(MAX_PARALLEL_PREEMPTORS))
    """Deletes victims in the background: a job for each preemptor."""
    _by_preemptor: dict[str, _Preemption] = field(factory=dict)
    _held_for: frozenset[str] = frozenset()
    _held: list[HeldPreemption] = field(factory=list)

    @contextmanager
    def holding(self, uids: Iterable[str]) -> Iterator[list[HeldPreemption]]:
        """Do not carry out the preemptions for the pods *uids* that are asked for in the block, but yield them."""
        self._held_for, self._held = frozenset(uids), []
        try:
            yield self._held
        finally:
            self._held_for = frozenset()

    def is_preempting_for(self, uid: str) -> bool:
        """Whether the preemptor *uid* has to wait: some of its victims are, as the watch shows, not being deleted."""
        preemption = self._by_preemptor.get(uid)
        return preemption is not None and self._is_ongoing(preemption)

    def is_preempting_on(self, node_name: str) -> bool:
        """Whether there are victims on *node_name*, of any preemptor, that the watch does not show as being deleted."""
        return any(
            (one.node_name == node_name or node_name in one.other_node_names) and self._is_ongoing(one)
            for one in self._by_preemptor.values()
        )

    def forget_ended(self) -> None:
        """Forget the preemptions whose victims are being deleted, or gone, and the pods that they hold."""
        self._by_preemptor = {uid: one for uid, one in self._by_preemptor.items() if self._is_ongoing(one)}

    def count_as_requested(self) -> None:
        """The deletion of all victims counts as requested: in a replay, where nothing is deleted."""
        for preemption in self._by_preemptor.values():
            preemption.all_requested = True

    def _is_ongoing(self, preemption: _Preemption) -> bool:
        if not preemption.all_requested:
            return True
        on_node = (self._on_node(victim, preemption) for victim in preemption.victims.values())
        return any(victim is not None and victim.metadata.deletion_timestamp is None for victim in on_node)

    def _on_node(self, victim: Pod, preemption: _Preemption) -> Pod | None:
        """A victim as the watch shows it; None if it has left: one whose bind failed may be on another node."""
        cached = self.scheduler.cache.get(victim.uid)
        return cached.pod if cached is not None and preemption.is_on(victim, cached.node_name) else None

    async def preempt(
        self, pod: Pod, victims: Sequence[Pod], node_name: str, plugin: str, loss: Loss, *, in_background: bool
    ) -> Status | None:
        """Delete *victims* to make room for *pod*; see `trio_sched.plugin_api.Handle.preempt`."""
        preemptor = Preemptor.of_pod(pod)
        preempt = partial(self._preempt, preemptor, victims, node_name, plugin, loss, in_background=in_background)
        if pod.uid in self._held_for:
            self._held.append(preempt)
            return None
        return await preempt()

    async def preempt_for_group(
        self,
        group: AnyGroup,
        pods: tuple[Pod, ...],
        victims: Sequence[Pod],
        plugin: str,
        loss: Loss,
        *,
        places: Mapping[str, str],
        in_background: bool,
    ) -> Status | None:
        """Delete *victims*, on any nodes, to make room for *pods* of *group*; they will fit on *places*, by UID."""
        preemptor = Preemptor.of_group(group, pods)
        return await self._preempt(preemptor, victims, CLUSTER, plugin, loss, in_background=in_background)

    async def _preempt(
        self,
        preemptor: Preemptor,
        victims: Sequence[Pod],
        node_name: str,
        plugin: str,
        loss: Loss,
        *,
        in_background: bool,
    ) -> Status | None:
        of_group = preemptor.kind == GROUP and self.scheduler.behaviour.groups_preempt_as_one
        (self.metrics.workload_victims if of_group else self.metrics.victims).observe(len(victims))
        if loss.pdb_violations:
            self.metrics.pdb_violations[preemptor.kind,] += loss.pdb_violations
        if loss.group_disruptions:
            self.metrics.group_disruptions.observe(loss.group_disruptions, preemptor.kind)
        self.forget_ended()
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
        began = trio.current_time()
        try:
            await self._delete_victims(preemption, preemptor, remaining, plugin)
        except* KubeClientError as group:
            problem = first_leaf(group)
        self._observe_execution(preemptor, began, problem)
        preemption.all_requested = True
        if problem is not None:
            del self._by_preemptor[preemptor.uid]
            del preemption.preemptors[preemptor.uid]
            self.activate(preemption.waiting_pods())
            return failure(problem)
        self._clear_nominations(preemptor, node_name)
        return None

    async def _preempt_in_background(
        self, preemption: _Preemption, preemptor: Preemptor, victims: Sequence[Pod], plugin: str
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
        self.metrics.preemptions.observe(trio.current_time() - began, "success" if problem is None else "error")
        self._observe_execution(preemptor, began, problem)
        if problem is not None:
            if self._by_preemptor.get(preemptor.uid) is preemption:
                del self._by_preemptor[preemptor.uid]
            log.error("Error occurred during async preemption: %s", problem, extra={"pod": preemptor.key})
        else:
            fields = {"preemptor": preemptor.key, "node": preemption.node_name, "result": "success"}
            log.log(V2, "Async Preemption finished completely", extra=fields)
        if problem is not None or all(
            self._on_node(victim, preemption) is None for victim in preemption.victims.values()
        ):
            # No event about a victim will move them any more: the gate was closed when the last one left.
            self.activate(preemption.waiting_pods())

    def _observe_execution(self, preemptor: Preemptor, began: float, problem: KubeClientError | None) -> None:
        result = "success" if problem is None else "error"
        self.metrics.executions.observe(trio.current_time() - began, preemptor.kind, result)

    async def _delete_victims(
        self, preemption: _Preemption, preemptor: Preemptor, victims: Sequence[Pod], plugin: str
    ) -> None:
        """Delete *victims*, some at once; the first failure cancels the others."""
        limiter = trio.CapacityLimiter(self.parallelism)

        async def delete(victim: Pod) -> None:
            async with limiter:
                await self._delete_victim(preemption, preemptor, victim, plugin)

        async with trio.open_nursery() as nursery:
            for victim in victims:
                nursery.start_soon(delete, victim)

    async def _delete_victim(self, preemption: _Preemption, preemptor: Preemptor, victim: Pod, plugin: str) -> None:
        waiting = self.waiting.by_uid.get(victim.uid)
        is_rejected = waiting is not None and waiting.is_rejected
        if is_rejected or self._on_node(victim, preemption) is None:
            del preemption.victims[victim.uid]  # it has left the node already, or is about to
            return
        if (waiting is not None and waiting.preempt(plugin, "preempted")) or self.pods_in_pre_bind.cancel(
            victim.uid, f"preempted by {plugin}"
        ):
            del preemption.victims[victim.uid]
            self._log_victim("Preemptor preempted a waiting pod", preemption, preemptor, victim)
            self.recorder.record(_event(victim, preemptor, preemption, before_binding=True))
            return
        if not await self._evict(preemptor, victim):
            del preemption.victims[victim.uid]  # if the watch goes on showing it, nobody is to wait for its deletion
            return
        self._log_victim("Preemptor Pod preempted victim Pod", preemption, preemptor, victim)
        self.recorder.record(_event(victim, preemptor, preemption))

    async def _evict(self, preemptor: Preemptor, victim: Pod) -> bool:
        """Have *victim* deleted; False if that is not possible any more.

        Raises:
            KubeClientError: it could not be requested.
        """
        try:
            await self._write_condition(preemptor, victim)
            await delete_pod(self.client, namespace=victim.namespace, name=victim.name)
        except NotFound:
            return False
        return True

    def _log_victim(self, message: str, preemption: _Preemption, preemptor: Preemptor, victim: Pod) -> None:
        fields = {"preemptor": preemptor.key, "victim": victim.key, "node": preemption.node_name}
        log.log(V2, message, extra=fields)

    async def _write_condition(self, preemptor: Preemptor, victim: Pod) -> None:
        """Say in the victim's status why it is deleted, so that its owner can tell this from a failure."""
        cached = self.scheduler.cache.get(victim.uid)
        await self.status_writer.write_disruption_target(
            victim if cached is None else cached.pod,
            reason=PREEMPTION_BY_SCHEDULER,
            message=disruption_message(preemptor),
        )

    def _clear_nominations(self, preemptor: Preemptor, node_name: str) -> None:
        """Clear the nominations of pods with a lower priority to this node: they have to find another one."""
        if node_name == CLUSTER:
            return
        for nominated in self.scheduler.nominated_pods(node_name):
            if nominated.priority < preemptor.priority:
                self.status_writer.write_nomination(nominated, "")


def is_preempted(pod: Pod) -> bool:
    """Whether the status of *pod* says that it makes way for another."""
    for condition in pod.status.conditions or ():
        if condition.type == DISRUPTION_TARGET and condition.reason == PREEMPTION_BY_SCHEDULER:
            return condition.status == "True"
    return False


def disruption_message(preemptor: Preemptor) -> str:
    """Why a pod is evicted, for its condition."""
    return f"{preemptor.scheduler_name}: preempting to accommodate a higher priority {preemptor.kind}"


def _event(victim: Pod, preemptor: Preemptor, preemption: _Preemption, *, before_binding: bool = False) -> PodEvent:
    return preempted(
        victim,
        preemption.node_name,
        kind=preemptor.kind,
        uid=preemptor.uid,
        profile=preemptor.scheduler_name,
        before_binding=before_binding,
    )
