"""Writes the status of pods, however long the API server is down: why one is pending, its nomination, its eviction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

import msgspec
import trio
from attrs import define, field
from msgspec.structs import replace

from trio_sched.daemon.limits import MAX_CONDITION_MESSAGE_BYTES, STATUS_RETRY_JITTER, STATUS_RETRY_SECONDS
from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.daemon.writes.cut_text import cut_text
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import Conflict, ConnectionFailed, KubeClientError, NotFound, ServerError
from trio_sched.kube_client.pods import patch_pod_status
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.objects.pod_groups.pod_group import PodGroupCondition
from trio_sched.objects.timestamps import format_time
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)

POD_SCHEDULED: Final = "PodScheduled"
DISRUPTION_TARGET: Final = "DisruptionTarget"


@define(eq=False)
class _PendingPatch:
    """The patch of one pod that waits to be sent, and an earlier one that is being sent."""

    patch: dict[str, Any] | None
    sent: dict[str, Any] = field(factory=dict)
    """What was sent so far; the watch need not have shown it."""
    is_sending: bool = False
    is_withdrawn: bool = False
    pause: trio.CancelScope | None = None
    """Before the next try; cancelled once it is withdrawn."""
    finished: trio.Event = field(factory=trio.Event)


@define(eq=False, kw_only=True)
class PodStatusWriter:
    """Patches the status of pods, nearly always in the background.

    In the background there is one patch per pod at a time, and one that has not been sent is merged with later ones: an
    old reason must not overtake a newer one, nor the pod's own binding.
    """

    client: KubeClient
    pool: WorkPool
    wall_clock: Callable[[], datetime]
    random: Random
    _pending: dict[str, _PendingPatch] = field(factory=dict)

    def write(self, pod: Pod, *, reason: str, message: str, nominated_node_name: str | None) -> None:
        """Write, in the background, why *pod* was not scheduled; nothing is sent if its status says so already."""
        now = format_time(self.wall_clock())
        patch = status_patch(
            self._expected(pod), reason=reason, message=message, nominated_node_name=nominated_node_name, now=now
        )
        if patch:
            if log.isEnabledFor(V3):
                log_line(log, V3, "Updating pod condition", {"pod": pod.key, "conditionReason": reason})
            self._enqueue(pod, patch)

    def write_nomination(self, pod: Pod, node_name: str) -> None:
        """Nominate *pod* to *node_name*, in the background; to no node if that is empty."""
        if self._expected(pod).nominated_node_name != node_name:
            self._enqueue(pod, {"nominatedNodeName": node_name or None})

    async def nominate(self, pod: Pod, node_name: str) -> None:
        """Nominate *pod* to *node_name*, and wait until that is written; what waited to be written is dropped.

        Raises:
            NotFound: the pod does not exist any more.
            KubeClientError: it could not be written.
        """
        pending = self._pending.get(pod.uid)
        await self.withdraw(pod.uid)
        if pending is not None and pending.sent:
            pod = patched(pod, pending.sent)
        if pod.nominated_node_name != node_name:
            await self._send_until_written(pod, {"nominatedNodeName": node_name})

    async def write_disruption_target(self, pod: Pod, *, reason: str, message: str) -> None:
        """Write into the status of *pod* that it is about to be evicted, and wait until that is done.

        Raises:
            NotFound: the pod does not exist any more.
            KubeClientError: it could not be written.
        """
        condition = PodCondition(type=DISRUPTION_TARGET, status="True", reason=reason, message=message)
        patch = condition_patch(pod, condition, now=format_time(self.wall_clock()))
        if patch:
            await self._send_until_written(pod, patch)

    async def _send_until_written(self, pod: Pod, patch: dict[str, Any]) -> None:
        pauses = self._pauses()
        while True:
            pause = await self._send(pod.namespace, pod.name, patch, pauses)
            if pause is None:
                return
            await trio.sleep(pause)

    async def withdraw(self, uid: str) -> None:
        """Prepare for the binding of the pod *uid*: drop its pending patch, wait for the one that is being sent."""
        pending = self._pending.get(uid)
        if pending is None:
            return
        pending.patch, pending.is_withdrawn = None, True
        if pending.pause is not None:
            pending.pause.cancel()
        if pending.is_sending:
            await pending.finished.wait()
        else:
            del self._pending[uid]

    def _expected(self, pod: Pod) -> Pod:
        """*pod* with the patches that are on their way to the server: what undoes one of them must be sent, too."""
        pending = self._pending.get(pod.uid)
        return pod if pending is None else patched(pod, {**pending.sent, **(pending.patch or {})})

    def _enqueue(self, pod: Pod, patch: dict[str, Any]) -> None:
        pending = self._pending.get(pod.uid)
        if pending is not None and not pending.is_withdrawn:
            pending.patch = {**(pending.patch or {}), **patch}
            return
        pending = self._pending[pod.uid] = _PendingPatch(patch)
        self.pool.submit(partial(self._send_pending, pod.namespace, pod.name, pod.uid, pending))

    async def _send_pending(self, namespace: str, name: str, uid: str, pending: _PendingPatch) -> None:
        pending.is_sending = True
        pauses, began = self._pauses(), trio.current_time()
        try:
            while pending.patch:
                patch, pending.patch = pending.patch, None
                pending.sent = {**pending.sent, **patch}
                try:
                    seconds = await self._send(namespace, name, patch, pauses)
                except ConnectionFailed:  # a pod that waits for events only would stay without a reason
                    wait = partial(self.client.reachability.outlast, began)
                else:
                    if seconds is None:
                        continue
                    wait = partial(trio.sleep, seconds)
                if pending.is_withdrawn:
                    return
                pending.patch = {**patch, **(pending.patch or {})}
                with trio.CancelScope() as pending.pause:
                    await wait()
        except NotFound:
            pass  # a pod that was deleted needs no status
        except KubeClientError as problem:
            log.error("Error updating pod: %s", problem, extra={"pod": f"{namespace}/{name}"})
        finally:
            pending.finished.set()
            if self._pending.get(uid) is pending:
                del self._pending[uid]

    async def _send(self, namespace: str, name: str, patch: dict[str, Any], pauses: Iterator[float]) -> float | None:
        """Try once to patch the status of a pod.

        Returns:
            None if that is done; otherwise how many seconds to wait before the next try, taken from *pauses*.

        Raises:
            KubeClientError: the patch was refused, or *pauses* are used up.
        """
        try:
            await patch_pod_status(self.client, namespace=namespace, name=name, status=patch)
        except (ServerError, Conflict, ConnectionFailed):
            pause = next(pauses, None)
            if pause is None:
                raise
            return pause
        return None

    def _pauses(self) -> Iterator[float]:
        return (seconds * (1 + STATUS_RETRY_JITTER * self.random.random()) for seconds in STATUS_RETRY_SECONDS)


def patched(pod: Pod, patch: dict[str, Any]) -> Pod:
    """*pod* as it will be after a *patch* that `status_patch` made."""
    status = pod.status
    if "nominatedNodeName" in patch:
        status = replace(status, nominated_node_name=patch["nominatedNodeName"] or "")
    for entry in patch.get("conditions", ()):
        condition = msgspec.convert(entry, PodCondition)
        conditions = {known.type: known for known in status.conditions or ()} | {condition.type: condition}
        status = replace(status, conditions=tuple(conditions.values()))
    return replace(pod, status=status)


def status_patch(pod: Pod, *, reason: str, message: str, nominated_node_name: str | None, now: str) -> dict[str, Any]:
    """The strategic merge patch of ``status`` that brings *pod* up to date; empty if it is.

    Args:
        pod: as the watch showed it last, with the patches that are on their way.
        reason: ``Unschedulable`` or ``SchedulerError``.
        message: the text; a very long one is cut.
        nominated_node_name: None leaves the nomination alone, "" clears it.
        now: the time of day in RFC 3339.
    """
    condition = PodCondition(type=POD_SCHEDULED, status="False", reason=reason, message=message)
    patch = condition_patch(pod, condition, now=now)
    if nominated_node_name is not None and nominated_node_name != pod.nominated_node_name:
        patch["nominatedNodeName"] = nominated_node_name or None
    return patch


def condition_patch(pod: Pod, condition: PodCondition, *, now: str) -> dict[str, Any]:
    """The strategic merge patch of ``status`` that sets *condition* in *pod*; empty if it is there already.

    Args:
        pod: as the watch showed it last.
        condition: its type, status, reason and message; generation and times are filled in.
        now: the time of day in RFC 3339; it is the condition's transition time if its status changes.
    """
    conditions = pod.status.conditions or ()
    current = next((c for c in conditions if c.type == condition.type), None)
    wanted = replace(
        condition,
        message=cut_text(condition.message or "", MAX_CONDITION_MESSAGE_BYTES),
        observed_generation=pod.metadata.generation or None,
    )
    if current is not None and _without_times(current) == _without_times(wanted):
        return {}
    patch = merge_condition(conditions, wanted, now=now)
    patch["conditions"][0]["lastProbeTime"] = None
    return patch


def merge_condition(
    conditions: Sequence[PodCondition | PodGroupCondition], wanted: PodCondition | PodGroupCondition, *, now: str
) -> dict[str, Any]:
    """The strategic merge patch of ``status`` that sets the condition *wanted* among *conditions*."""
    current = next((one for one in conditions if one.type == wanted.type), None)
    is_transition = current is None or current.status != wanted.status
    entry: dict[str, Any] = {
        "lastTransitionTime": now if current is None or is_transition else current.last_transition_time,
        "message": wanted.message,
        "reason": wanted.reason,
        "status": wanted.status,
        "type": wanted.type,
    }
    if wanted.observed_generation:
        entry["observedGeneration"] = wanted.observed_generation
    patch: dict[str, Any] = {"conditions": [entry]}
    if conditions:
        order = [one.type for one in conditions]
        if current is None:
            order.append(wanted.type)
        patch["$setElementOrder/conditions"] = [{"type": type_} for type_ in order]
    return patch


def _without_times(condition: PodCondition) -> tuple[object, ...]:
    return condition.status, condition.reason, condition.message, condition.observed_generation
