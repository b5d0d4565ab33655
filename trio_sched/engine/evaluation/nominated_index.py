"""The nominated pods by node, with their resources: for any priority those that are at least as important.

Every attempt asks for them, and hundreds are nominated while their victims leave; so what was returned before is kept,
and only the nodes are looked at again whose nominations have changed.
"""

from __future__ import annotations

from attrs import define, field

from trio_sched.engine.evaluation.filtering import NominatedPods
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import DEFAULT_OPTIONS, ResourceOptions, pod_resources
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo

_MAX_PRIORITIES = 16


@define(eq=False)
class NominatedIndex:
    """The nominated pods of a queue, on the nodes of a table."""

    queue: SchedulingQueue
    table: NodeTable
    options: ResourceOptions = DEFAULT_OPTIONS
    _by_node: dict[str, tuple[PodInfo, ...]] = field(factory=dict, init=False)
    _at_least: dict[int, dict[str, tuple[PodInfo, ...]]] = field(factory=dict, init=False)
    """Lowest priority → node name → pods, on nodes that exist; as long as nothing changes the same objects."""
    _membership: int = field(default=-1, init=False)

    def for_pod(self, pod: Pod) -> NominatedPods:
        """The nominated pods whose priority is equal to or higher than that of *pod*, without itself; read-only."""
        nominator = self.queue.nominator
        if not nominator and not self._by_node:
            return {}
        self.catch_up()
        priority = pod.priority
        found = self._at_least.get(priority)
        if found is None:
            if len(self._at_least) >= _MAX_PRIORITIES:
                self._at_least.clear()
            found = self._at_least[priority] = {}
            for node_name in self._by_node:
                self._put(node_name, priority, found)
        own_node = nominator.node_of(pod.uid)
        if own_node is None or own_node not in found:
            return found
        others = tuple([pod_info for pod_info in found[own_node] if pod_info.pod.uid != pod.uid])
        found = found.copy()
        if others:
            found[own_node] = others
        else:
            del found[own_node]
        return found

    def on_node(self, node_name: str) -> list[Pod]:
        """The pods that are nominated to *node_name*."""
        return [
            queued.pod if isinstance(queued, QueuedPodInfo) else queued
            for queued in self.queue.nominated_pods(node_name)
        ]

    def catch_up(self) -> None:
        """Let go of what is nominated no longer."""
        changed = self.queue.nominator.take_changed()
        if self._membership != self.table.membership_generation:
            self._membership = self.table.membership_generation
            changed |= self._by_node.keys() | self.queue.nominator.nodes.keys()
        for node_name in changed:
            pods = self.on_node(node_name) if node_name in self.table.row_of else []
            if pods:
                self._by_node[node_name] = tuple([PodInfo(pod, pod_resources(pod, self.options)) for pod in pods])
            else:
                self._by_node.pop(node_name, None)
            for priority, found in self._at_least.items():
                self._put(node_name, priority, found)

    def _put(self, node_name: str, priority: int, found: dict[str, tuple[PodInfo, ...]]) -> None:
        pods = self._by_node.get(node_name, ())
        kept = tuple([pod_info for pod_info in pods if pod_info.pod.priority >= priority])
        if kept:
            found[node_name] = kept
        else:
            found.pop(node_name, None)
