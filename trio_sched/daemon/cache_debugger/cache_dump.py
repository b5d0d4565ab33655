"""Logs what is cached and what is queued, in the words of kube-scheduler; on SIGUSR2.

Source: the cache debugger of kube-scheduler 1.36. Where its text would be longer than a log line may be, several lines
follow each other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import trio

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.limits import MAX_LOG_TEXT_CHARACTERS
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_columns import NodeView

log = logging.getLogger(__name__)

_NATIVE = ("cpu", "memory", "ephemeral-storage", "pods")


async def dump(assembly: Assembly) -> None:
    """Log all nodes with their pods, and all pods that wait."""
    for text in _joined(_node_texts(assembly)):
        log.info("Dump of cached NodeInfo", extra={"nodes": text})
        await trio.lowlevel.checkpoint()
    queue = assembly.scheduler.queue
    active = len(queue.active) + len(queue.set_aside)
    summary = f"activeQ:{active}; backoffQ:{len(queue.backing_off)}; unschedulablePods:{len(queue.unschedulable)}"
    for text in _joined(["", *map(_pod_text, _waiting(queue))]):
        log.info("Dump of scheduling queue", extra={"summary": summary, "pods": text})
        await trio.lowlevel.checkpoint()


def _node_texts(assembly: Assembly) -> Iterator[str]:
    """A text for each node, made when it is asked for: meanwhile nodes come and go."""
    table = assembly.scheduler.cache.table
    for name in list(table.names):
        row = table.row_of.get(name)
        if row is not None:
            yield _node_text(assembly, NodeView(table, row))


def _waiting(queue: SchedulingQueue) -> list[Pod]:
    backing_off = (queue.backing_off.pod_backoff_q, queue.backing_off.pod_error_backoff_q)
    return [
        info.pod
        for part in (queue.active, queue.set_aside, *backing_off, queue.unschedulable.values(), queue.pending.values())
        for info in part
    ]


def _node_text(assembly: Assembly, node: NodeView) -> str:
    pods, names = node.pods, _names(node)
    requested = {name: node.requested(name) for name in names}
    allocatable = {name: node.allocatable(name) for name in names}
    lines = [
        f"Node name: {node.name}",
        "Deleted: false",
        f"Requested Resources: {_resources(requested, 0)}",
        f"Allocatable Resources:{_resources(allocatable, node.allocatable('pods'))}",
        f"Scheduled Pods(number: {len(pods)}):",
    ]
    text = "\n".join([*lines, ""]) + "".join(map(_pod_text, pods))
    nominated = assembly.scheduler.nominated_pods(node.name)
    if nominated:
        text += f"Nominated Pods(number: {len(nominated)}):\n" + "".join(map(_pod_text, nominated))
    return text


def _names(node: NodeView) -> list[str]:
    return sorted({*_NATIVE[:3], *(node.node.status.allocatable or {})} - {"pods"})


def _resources(amounts: dict[str, int], pods: int) -> str:
    """As Go prints a ``framework.Resource``."""
    scalars = " ".join(f"{name}:{amount}" for name, amount in amounts.items() if name not in _NATIVE)
    return (
        f"&{{MilliCPU:{amounts['cpu']} Memory:{amounts['memory']} EphemeralStorage:{amounts['ephemeral-storage']} "
        f"AllowedPodNumber:{pods} ScalarResources:map[{scalars}]}}"
    )


def _pod_text(pod: Pod) -> str:
    phase = pod.status.phase or "Pending"
    return (
        f"name: {pod.name}, namespace: {pod.metadata.namespace}, uid: {pod.uid}, phase: {phase}, "
        f"nominated node: {pod.nominated_node_name}\n"
    )


def _joined(texts: Iterable[str]) -> Iterator[str]:
    """*texts*, as many at once as a log line may contain."""
    together: list[str] = []
    length = 0
    for text in texts:
        if together and length + len(text) > MAX_LOG_TEXT_CHARACTERS:
            yield "".join(together)
            together, length = [], 0
        together.append(text)
        length += len(text)
    if together:
        yield "".join(together)
