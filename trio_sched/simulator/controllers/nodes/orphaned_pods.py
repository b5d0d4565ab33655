"""Pods that no kubelet removes, of nodes that are deleted or out of service, or of no node: they fail, and are removed.

Source: the podgc controller of Kubernetes.
"""

from typing import Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.endpoints.subresources.pod_subresources import disrupt
from trio_sched.simulator.kubelets.pod_states import is_ready, is_terminating
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.registry.lifecycle import DeleteOptions, delete, write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

ROUND_SECONDS: Final = 20.0
"""The collector looks at all pods so often; a pod waits for at most one round."""
QUARANTINE_SECONDS: Final = 40.0 + ROUND_SECONDS
"""So long the pods of a deleted node stay."""
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""The key of a taint that says of a node which is not ready that none of its pods runs any more."""


def is_out_of_service(node: Json) -> bool:
    """Whether the pods that are being deleted on a node may go without its kubelet."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(one.get("key") == OUT_OF_SERVICE for one in taints) and not is_ready(node)


@define(eq=False)
class OrphanedPods(Controller):
    """Removes the pods of nodes whose deletion was seen, and those being deleted on nodes out of service or on none.

    A node that comes back keeps its pods.
    """

    _out_of_service: set[str] = field(factory=set, init=False)

    def start(self) -> None:
        """Note the nodes out of service; follow nodes and pods."""
        for node in self.server.store.collection("nodes").objects.values():
            self._note(node)
        self.listen("nodes", self._on_node)
        self.listen("pods", self._on_pod)

    def _on_node(self, change: Change) -> None:
        if change.type == "DELETED":
            self._out_of_service.discard(change.current.key)
            self._steps.plan(self._remove_pods, change.current.key, QUARANTINE_SECONDS)
        else:
            self._note(change.current)

    def _note(self, node: StoredObject) -> None:
        if not is_out_of_service(node.fields):
            self._out_of_service.discard(node.key)
        elif node.key not in self._out_of_service:
            self._out_of_service.add(node.key)
            self._steps.plan(self._remove_terminating_pods, node.key, ROUND_SECONDS)

    def _on_pod(self, change: Change) -> None:
        if change.type == "DELETED" or not is_terminating(change.current.fields):
            return
        node = change.current.fields["spec"].get("nodeName") or ""
        if not self._is_without_kubelet(node):
            return
        if change.previous is None or not is_terminating(change.previous.fields):
            self._steps.plan(self._remove_terminating_pods, node, ROUND_SECONDS)

    def _is_without_kubelet(self, node: str) -> bool:
        return not node or node in self._out_of_service

    def _remove_pods(self, node: str) -> None:
        if self.server.store.get("nodes", node) is not None:
            return
        state, pods = self.server.state, self.server.state.types.core("pods")
        for pod in self._pods_of(node):
            if not is_finished(pod.fields):
                why = "PodGC: node no longer exists"
                pod = disrupt(state, pods, pod, "DeletionByPodGC", why, phase="Failed")
            delete(state, pods, pod, DeleteOptions(grace_seconds=0))

    def _remove_terminating_pods(self, node: str) -> None:
        if not self._is_without_kubelet(node):
            return
        state, pods = self.server.state, self.server.state.types.core("pods")
        for pod in self._pods_of(node):
            if not is_terminating(pod.fields):
                continue
            if not is_finished(pod.fields):
                status = {**(pod.fields.get("status") or {}), "phase": "Failed"}
                pod = write_fields(state, pods, pod, status=status)
            delete(state, pods, pod, DeleteOptions(grace_seconds=0))

    def _pods_of(self, node: str) -> list[StoredObject]:
        found = self.server.store.collection("pods").objects.values()
        return [pod for pod in found if (pod.fields["spec"].get("nodeName") or "") == node]
