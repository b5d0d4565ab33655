"""Simulated eviction by taints: pods leave nodes whose NoExecute taints they do not tolerate, or not for long."""

from typing import Final

import trio
from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.controllers.events import EventRecorder
from trio_sched.simulator.controllers.nodes.node_matching import tolerates
from trio_sched.simulator.endpoints.subresources.pod_subresources import disrupt
from trio_sched.simulator.registry.lifecycle import DeleteOptions, delete
from trio_sched.simulator.storage.object_store import Change, StoredObject

_REACT_SECONDS: Final = 0.1


def taints_that_evict(node: StoredObject | None) -> list[Json]:
    """The NoExecute taints of a node."""
    taints = (node.fields.get("spec") or {}).get("taints") if node is not None else None
    return [taint for taint in taints or () if taint.get("effect") == "NoExecute"]


def tolerated_seconds(tolerations: list[Json], taints: list[Json]) -> float | None:
    """How long a pod may stay; None for ever."""
    seconds = []
    for taint in taints:
        toleration = tolerates(tolerations, taint)
        if toleration is None:
            return 0.0
        if toleration.get("tolerationSeconds") is not None:
            seconds.append(max(float(toleration["tolerationSeconds"]), 0.0))
    return min(seconds, default=None)


@define(eq=False)
class TaintEviction(Controller):
    """Deletes pods in time, unless the taints are gone before."""

    _due: dict[str, tuple[str, float]] = field(factory=dict, init=False)
    """Key of a pod → its uid, and when it is deleted, in trio's time."""
    _events: EventRecorder = field(init=False)

    @_events.default
    def _recorder(self) -> EventRecorder:
        return EventRecorder(self.server, "taint-eviction-controller")

    def start(self) -> None:
        """Look at the nodes with taints; follow nodes and pods."""
        for node in self.server.store.collection("nodes").objects.values():
            if taints_that_evict(node):
                self._steps.plan(self._look_at_node, node.key, _REACT_SECONDS)
        self.listen("nodes", self._on_node)
        self.listen("pods", self._on_pod)

    def _on_node(self, change: Change) -> None:
        if change.type != "DELETED" and taints_that_evict(change.current) != taints_that_evict(change.previous):
            self._steps.plan(self._look_at_node, change.current.key, _REACT_SECONDS)

    def _on_pod(self, change: Change) -> None:
        if change.type == "DELETED":
            self._cancel(change.current)
            return
        spec = change.current.fields["spec"]
        if change.previous is not None and change.previous.fields["spec"] is spec:
            return
        if spec.get("nodeName") and taints_that_evict(self.server.store.get("nodes", spec["nodeName"])):
            self._steps.plan(self._look_at_pod, change.current.key, _REACT_SECONDS)

    def _look_at_node(self, key: str) -> None:
        for pod in list(self.server.store.collection("pods").objects.values()):
            if pod.fields["spec"].get("nodeName") == key:
                self._look_at_pod(pod.key)

    def _look_at_pod(self, key: str) -> None:
        """Find out until when a pod may stay, and delete it if that is over; one that has ended is no exception."""
        pod = self.server.store.get("pods", key)
        if pod is None:
            self._due.pop(key, None)
            return
        spec, uid, now = pod.fields["spec"], pod.fields["metadata"]["uid"], trio.current_time()
        node = self.server.store.get("nodes", spec.get("nodeName") or "")
        noted, due = self._due.get(key, ("", 0.0))
        if node is not None:
            seconds = tolerated_seconds(list(spec.get("tolerations") or ()), taints_that_evict(node))
            if seconds is None:
                self._cancel(pod)
                return
            if noted != uid:  # one that is noted keeps its time when the taints change
                noted, due = self._due[key] = (uid, now + seconds)
            elif not seconds and due > now:
                self._cancel(pod)
                due = now
        if noted == uid and due <= now:
            self._evict(pod)
        elif noted == uid:
            self._steps.plan(self._look_at_pod, key, due - now)

    def _cancel(self, pod: StoredObject) -> None:
        if self._due.pop(pod.key, None) is not None:
            pods = self.server.state.types.core("pods")
            self._events.normal(pods, pod, "TaintManagerEviction", f"Cancelling deletion of Pod {pod.key}")

    def _evict(self, pod: StoredObject) -> None:
        self._due.pop(pod.key, None)
        state, pods = self.server.state, self.server.state.types.core("pods")
        self._events.normal(pods, pod, "TaintManagerEviction", f"Marking for deletion Pod {pod.key}")
        marked = disrupt(state, pods, pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        delete(state, pods, marked, DeleteOptions())
