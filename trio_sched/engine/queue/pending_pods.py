"""Pods without a node as plugins see them."""

from __future__ import annotations

from collections.abc import Iterable

from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.pending_pods import PendingPod, QueueState


def pending_pods(queue: SchedulingQueue, unassigned: Iterable[Pod], now: float) -> list[PendingPod]:
    """The pods *unassigned*, each with what *queue* records about it; *now* stands for what it does not know."""
    return [_seen(pod, *find_queued(queue, pod), now) for pod in unassigned]


def find_queued(queue: SchedulingQueue, pod: Pod) -> tuple[QueuedPodInfo | None, QueueState]:
    """What *queue* records about *pod*, None if that is nothing, and where the pod is."""
    info = queue.active.get(pod.key) or queue.set_aside.get(pod.key)
    if info is not None:
        return info, QueueState.ACTIVE
    info = queue.unschedulable.get(pod.key)
    if info is not None:
        return info, QueueState.GATED if info.gating_plugin else QueueState.UNSCHEDULABLE
    info = queue.backing_off.get(pod.key)
    if info is not None:
        return info, QueueState.BACKOFF
    info = queue.pending.get(pod.key)
    if info is not None:  # it is tried as soon as the attempt of its group is over
        return info, QueueState.ACTIVE
    return queue.popped.get(pod.uid), QueueState.IN_FLIGHT


def _seen(pod: Pod, info: QueuedPodInfo | None, state: QueueState, now: float) -> PendingPod:
    if info is None:
        return PendingPod(pod=pod, state=state, added_at=now)
    return PendingPod(
        pod=pod,
        state=state,
        added_at=info.added_at,
        first_attempt_at=info.initial_attempt_timestamp if info.attempts else None,
        attempts=info.attempts,
        rejected_by=frozenset(info.rejectors | ({info.gating_plugin} if info.gating_plugin else set())),
        backoff_ends_at=info.backoff_expiry if state is QueueState.BACKOFF else None,
    )
