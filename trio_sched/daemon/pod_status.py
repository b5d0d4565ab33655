"""Writes into a pod's status why it is pending and where a place is promised to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from random import Random
from typing import Any

import trio
from attrs import define, field

from trio_sched.daemon.work_pool import WorkPool
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import Conflict, ConnectionFailed, KubeClientError, NotFound, ServerError
from trio_sched.kube_client.pods import patch_pod_status
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.objects.timestamps import format_time

log = logging.getLogger(__name__)

POD_SCHEDULED = "PodScheduled"
TRIES = 4
FIRST_PAUSE_SECONDS = 0.01
PAUSE_FACTOR = 5.0
PAUSE_JITTER = 0.1


@define(eq=False)
class _Telling:
    """What there is to be said about one pod: a patch that waits, and whether another is on its way."""

    patch: dict[str, Any] | None
    is_sending: bool = False
    is_withdrawn: bool = False
    over: trio.Event = field(factory=trio.Event)


@define(eq=False)
class PodStatusWriter:
    """Patches the status of pods in the background; returns at once.

    One patch per pod at a time, and what has not been sent yet is made one with what comes later: an old reason must
    not overtake a newer one, nor the pod's own binding.
    """

    client: KubeClient
    pool: WorkPool
    wall_clock: Callable[[], datetime]
    random: Random
    _tellings: dict[str, _Telling] = field(factory=dict)

    def write(self, pod: Pod, *, reason: str, message: str, nominated_node_name: str | None) -> None:
        """Say that *pod* was not scheduled, and why; nothing is sent if its status says so already."""
        now = format_time(self.wall_clock())
        patch = status_patch(pod, reason=reason, message=message, nominated_node_name=nominated_node_name, now=now)
        if patch:
            self._tell(pod, patch)

    def write_nomination(self, pod: Pod, node_name: str) -> None:
        """Say that a place on *node_name* is promised to *pod*; on none if it is empty."""
        if pod.nominated_node_name != node_name:
            self._tell(pod, {"nominatedNodeName": node_name or None})

    async def withdraw(self, uid: str) -> None:
        """The pod *uid* will be bound now: what was not sent is obsolete, what is on its way must arrive first."""
        telling = self._tellings.get(uid)
        if telling is None:
            return
        telling.patch, telling.is_withdrawn = None, True
        if telling.is_sending:
            await telling.over.wait()
        else:
            del self._tellings[uid]

    def _tell(self, pod: Pod, patch: dict[str, Any]) -> None:
        telling = self._tellings.get(pod.uid)
        if telling is not None and not telling.is_withdrawn:
            telling.patch = {**(telling.patch or {}), **patch}
            return
        telling = self._tellings[pod.uid] = _Telling(patch)
        self.pool.submit(partial(self._send, pod, telling))

    async def _send(self, pod: Pod, telling: _Telling) -> None:
        telling.is_sending = True
        attempts, pause = 0, FIRST_PAUSE_SECONDS
        try:
            while telling.patch:
                patch, telling.patch = telling.patch, None
                try:
                    await patch_pod_status(self.client, namespace=pod.namespace, name=pod.name, status=patch)
                    continue
                except NotFound:
                    return
                except (ServerError, Conflict, ConnectionFailed) as problem:
                    attempts += 1
                    if attempts == TRIES:
                        log.error("Error updating pod pod=%s: %s", pod.key, problem)
                        return
                except KubeClientError as problem:
                    log.error("Error updating pod pod=%s: %s", pod.key, problem)
                    return
                if telling.is_withdrawn:
                    return
                telling.patch = {**patch, **(telling.patch or {})}
                await trio.sleep(pause * (1 + PAUSE_JITTER * self.random.random()))
                pause *= PAUSE_FACTOR
        finally:
            telling.over.set()
            if self._tellings.get(pod.uid) is telling:
                del self._tellings[pod.uid]


def status_patch(pod: Pod, *, reason: str, message: str, nominated_node_name: str | None, now: str) -> dict[str, Any]:
    """The strategic merge patch of ``status`` that brings *pod* up to date; empty if it is.

    Args:
        pod: as it was last seen.
        reason: ``Unschedulable`` or ``SchedulerError``.
        message: the whole text, however long.
        nominated_node_name: None leaves the nomination alone, "" clears it.
        now: the time of day in RFC 3339.
    """
    patch: dict[str, Any] = {}
    conditions = pod.status.conditions or ()
    current = next((c for c in conditions if c.type == POD_SCHEDULED), None)
    generation = pod.metadata.generation
    wanted = PodCondition(
        type=POD_SCHEDULED, status="False", reason=reason, message=message, observed_generation=generation or None
    )
    if current is None or _said(current) != _said(wanted):
        transition = current.last_transition_time if current is not None and current.status == "False" else now
        condition: dict[str, Any] = {
            "lastProbeTime": None,
            "lastTransitionTime": transition,
            "message": message,
            "reason": reason,
            "status": "False",
            "type": POD_SCHEDULED,
        }
        if generation:
            condition["observedGeneration"] = generation
        patch["conditions"] = [condition]
        if any(c.type != POD_SCHEDULED for c in conditions):
            order = [c.type for c in conditions]
            if current is None:
                order.append(POD_SCHEDULED)
            patch["$setElementOrder/conditions"] = [{"type": type_} for type_ in order]
    if nominated_node_name is not None and nominated_node_name != pod.nominated_node_name:
        patch["nominatedNodeName"] = nominated_node_name or None
    return patch


def _said(condition: PodCondition) -> tuple[object, ...]:
    """All of a condition but its times."""
    return condition.status, condition.reason, condition.message, condition.observed_generation
