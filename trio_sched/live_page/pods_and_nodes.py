"""One node in detail, and pods that are looked for."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from typing import Any, Final

from attrs import define, field

from trio_sched.engine.queue.pending_pods import find_queued
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.amounts.amount_text import amount_text
from trio_sched.objects.pod import Pod
from trio_sched.objects.taint import Taint
from trio_sched.objects.timestamps import parse_time
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo

MOST_PODS_OF_NODE: Final = 500
MOST_FOUND: Final = 1000
_TOGETHER: Final = 1000
"""Pods that are looked at without a pause."""


def node_details(table: NodeTable, name: str) -> dict[str, Any] | None:
    """The node called *name* with its pods, those of highest priority first; None if there is none."""
    row = table.row_of.get(name)
    if row is None:
        return None
    node, on_node = table.nodes[row], table.pods[row].values()
    shown = nsmallest(MOST_PODS_OF_NODE, on_node, key=lambda one: (-one.pod.priority, one.pod.key))
    return {
        "name": node.name,
        "labels": node.labels,
        "taints": [_taint_text(taint) for taint in node.spec.taints or ()],
        "allocatable": _amounts(table, table.views.allocatable[:, row].tolist(), int(table.views.allowed_pods[row])),
        "requested": _amounts(table, table.views.requested[:, row].tolist(), int(table.views.pod_count[row])),
        "pods": [_pod_on_node(one) for one in shown],
        "more": len(on_node) - len(shown),
    }


def _amounts(table: NodeTable, amounts: list[int], pods: int) -> dict[str, str]:
    names = table.resources.values
    found = {name: amount_text(name, amount) for name, amount in zip(names, amounts, strict=True) if name and amount}
    return {**found, "pods": str(pods)}


def _taint_text(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _pod_on_node(pod_info: PodInfo) -> dict[str, Any]:
    pod, requested = pod_info.pod, pod_info.resources.requested
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "priority": pod.priority,
        "cpu": amount_text("cpu", requested.cpu_milli),
        "memory": amount_text("memory", requested.memory_bytes),
        "since": parse_time(pod.status.start_time or pod.metadata.creation_timestamp or ""),
        "phase": pod.status.phase,
    }


@define(eq=False)
class PodSearch:
    """Pods whose names or labels have all words of a text in them."""

    scheduler: Scheduler
    text: str
    limit: int
    found: list[dict[str, Any]] = field(init=False, factory=list)
    """The first of them, those without a node before the others."""
    more: int = field(init=False, default=0)
    """How many more there are."""

    def run(self) -> Iterator[None]:
        """Look at all pods; yields where others may run."""
        words = self.text.split()
        for number, (pod, node) in enumerate(self._pods(), start=1):
            if number % _TOGETHER == 0:
                yield
            if not all(_matches(pod, word) for word in words):
                continue
            if len(self.found) >= self.limit:
                self.more += 1
                continue
            queue = "" if node else find_queued(self.scheduler.queue, pod)[1].value
            self.found.append(
                {"namespace": pod.namespace, "name": pod.name, "node": node, "queue": queue, "priority": pod.priority}
            )

    def _pods(self) -> Iterator[tuple[Pod, str]]:
        """Each pod with its node, if it has one."""
        cache = self.scheduler.cache
        without_node, on_nodes = cache.unassigned.pods(), list(cache)
        for pod in without_node:
            cached = cache.get(pod.uid)
            yield pod, "" if cached is None else cached.node_name
        for cached in on_nodes:
            if not cached.assumed:
                yield cached.pod, cached.node_name


def _matches(pod: Pod, word: str) -> bool:
    if word in pod.key:
        return True
    label, equals, value = word.partition("=")
    return bool(equals) and pod.labels.get(label) == value
