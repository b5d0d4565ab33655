"""Evicts pods to make room for more important ones: their condition, their deletion, and an event that says for whom.

Victims that only exist here so far (they wait for permission, or prepare to be bound) are stopped instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import trio
from attrs import define, field

from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.pod_status import PodStatusWriter
from trio_sched.daemon.pre_binding import PreBindingPods
from trio_sched.daemon.scheduler_events import preempted
from trio_sched.daemon.waiting_pods import WaitingPods
from trio_sched.daemon.wakeup import Bell
from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import first_of
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import Conflict, ConnectionFailed, KubeClientError, NotFound, ServerError
from trio_sched.kube_client.pods import delete_pod, patch_pod_status
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import format_time
from trio_sched.plugin_api.status import Status, failure

log = logging.getLogger(__name__)

DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"
TRIES = 4
FIRST_PAUSE_SECONDS = 0.01
PAUSE_FACTOR = 5.0


@define(eq=False)
class _Eviction:
    """What is going on for one preemptor."""

    node_name: str
    victims: dict[str, Pod]
    """Those that have to leave the API server, by UID."""
    is_told: bool = False
    """Every one of them has been told to go, or the last one is just being told."""


@define(eq=False)
class Evictions:
    """Evicts victims, in the background or while the caller waits."""

    client: KubeClient
    scheduler: Scheduler
    waiting: WaitingPods
    pre_binding: PreBindingPods
    recorder: EventRecorder
    status_writer: PodStatusWriter
    wall_clock: Callable[[], datetime]
    activate: Callable[[Sequence[Pod]], None]
    _going_on: dict[str, _Eviction] = field(factory=dict)
    _todo: list[Callable[[], Any]] = field(factory=list)
    _bell: Bell = field(factory=Bell)
    _unfinished: int = 0
    _idle: trio.Event = field(factory=trio.Event)

    async def run(self) -> None:
        """Evict in the background, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                todo, self._todo = self._todo, []
                for one in todo:
                    nursery.start_soon(one)
                await self._bell.wait()

    async def drained(self) -> None:
        """Wait until everything that was begun is done."""
        while self._unfinished:
            await self._idle.wait()

    def is_evicting_for(self, uid: str) -> bool:
        """Whether the pod *uid* has to wait for an eviction of ours: until all victims are seen to be going."""
        eviction = self._going_on.get(uid)
        return eviction is not None and self._goes_on(eviction)

    def is_evicting_from(self, node_name: str) -> bool:
        """Whether victims on *node_name*, whoever takes their place, have not yet been seen to be going."""
        return any(one.node_name == node_name and self._goes_on(one) for one in self._going_on.values())

    def _goes_on(self, eviction: _Eviction) -> bool:
        return not eviction.is_told or any(map(self._stays, eviction.victims))

    def _stays(self, uid: str) -> bool:
        cached = self.scheduler.cache.get(uid)
        return cached is not None and cached.pod.metadata.deletion_timestamp is None

    async def evict(
        self, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str, *, in_background: bool
    ) -> Status | None:
        """Have *victims* leave; see `trio_sched.plugin_api.Handle.evict`."""
        self._going_on = {uid: one for uid, one in self._going_on.items() if self._goes_on(one)}
        told = {uid for eviction in self._going_on.values() for uid in eviction.victims}
        there = [v for v in victims if v.metadata.deletion_timestamp is None and v.uid not in told]
        if not there:
            if not in_background:
                self._clear_nominations(preemptor, node_name)
            return None
        self._going_on[preemptor.uid] = eviction = _Eviction(node_name, {victim.uid: victim for victim in there})
        if not in_background:
            problem: KubeClientError | None = None
            try:
                await self._evict_all(eviction, preemptor, there, node_name, plugin)
            except* KubeClientError as group:
                problem = first_of(group)
            eviction.is_told = True
            if problem is not None:
                del self._going_on[preemptor.uid]
                return failure(problem)
            self._clear_nominations(preemptor, node_name)
        else:
            self._unfinished += 1
            self._todo.append(lambda: self._in_background(eviction, preemptor, there, node_name, plugin))
            self._bell.ring()
        return None

    async def _in_background(
        self, eviction: _Eviction, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str
    ) -> None:
        problem: KubeClientError | None = None
        try:
            self._clear_nominations(preemptor, node_name)
            *others, last = victims
            await self._evict_all(eviction, preemptor, others, node_name, plugin)
            # Only the last one's departure is to bring the preemptor back: before it there would be no room yet.
            eviction.is_told = True
            await self._evict_one(eviction, preemptor, last, node_name, plugin)
        except* KubeClientError as group:
            problem = first_of(group)
        finally:
            self._unfinished -= 1
            if not self._unfinished:
                self._idle.set()
                self._idle = trio.Event()
        if problem is not None:
            if self._going_on.get(preemptor.uid) is eviction:
                del self._going_on[preemptor.uid]
            log.error("Error evicting pods for %s: %s", preemptor.key, problem, extra={"pod": preemptor.key})
            self.activate([preemptor])

    async def _evict_all(
        self, eviction: _Eviction, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str
    ) -> None:
        """Evict *victims* side by side; the first failure calls the others off."""
        async with trio.open_nursery() as nursery:
            for victim in victims:
                nursery.start_soon(self._evict_one, eviction, preemptor, victim, node_name, plugin)

    async def _evict_one(self, eviction: _Eviction, preemptor: Pod, victim: Pod, node_name: str, plugin: str) -> None:
        waits = self.waiting.by_uid.get(victim.uid)
        if (waits is not None and waits.preempt(plugin, "preempted")) or self.pre_binding.cancel(
            victim.uid, f"preempted by {plugin}"
        ):
            del eviction.victims[victim.uid]
            self.recorder.record(preempted(victim, preemptor, node_name, before_binding=True))
            return
        try:
            await self._mark(preemptor, victim)
            await delete_pod(self.client, namespace=victim.namespace, name=victim.name)
        except NotFound:
            return
        self.recorder.record(preempted(victim, preemptor, node_name))

    async def _mark(self, preemptor: Pod, victim: Pod) -> None:
        """Say in the victim's status why it goes, so that its owner can tell it from a failure."""
        cached = self.scheduler.cache.get(victim.uid)
        now = format_time(self.wall_clock())
        message = f"{preemptor.scheduler_name}: preempting to accommodate a higher priority pod"
        patch = condition_patch(victim if cached is None else cached.pod, message, now)
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, TRIES + 1):
            if not patch:
                return
            try:
                await patch_pod_status(self.client, namespace=victim.namespace, name=victim.name, status=patch)
                return
            except (ServerError, Conflict, ConnectionFailed):
                if attempt == TRIES:
                    raise
            await trio.sleep(pause)
            pause *= PAUSE_FACTOR

    def _clear_nominations(self, preemptor: Pod, node_name: str) -> None:
        """Less important pods to which the node was promised must look for another."""
        for promised in self.scheduler.nominated_pods(node_name):
            if promised.priority < preemptor.priority:
                self.status_writer.write_nomination(promised, "")


def condition_patch(victim: Pod, message: str, now: str) -> dict[str, Any]:
    """The strategic merge patch of *victim*'s status that says why it goes; empty if it says so already."""
    conditions = victim.status.conditions or ()
    current = next((c for c in conditions if c.type == DISRUPTION_TARGET), None)
    generation = victim.metadata.generation
    if current is not None and (current.status, current.reason, current.message, current.observed_generation) == (
        "True",
        BY_SCHEDULER,
        message,
        generation or None,
    ):
        return {}
    condition: dict[str, Any] = {
        "lastProbeTime": None,
        "lastTransitionTime": (
            current.last_transition_time if current is not None and current.status == "True" else now
        ),
        "message": message,
        "reason": BY_SCHEDULER,
        "status": "True",
        "type": DISRUPTION_TARGET,
    }
    if generation:
        condition["observedGeneration"] = generation
    patch: dict[str, Any] = {"conditions": [condition]}
    if conditions:
        order = [c.type for c in conditions]
        if current is None:
            order.append(DISRUPTION_TARGET)
        patch["$setElementOrder/conditions"] = [{"type": type_} for type_ in order]
    return patch
