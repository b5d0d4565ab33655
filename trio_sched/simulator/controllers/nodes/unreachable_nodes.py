"""Pods of nodes that become unreachable: they count as not ready. Source: the node lifecycle controller of Kubernetes.

That controller finds out by itself that a kubelet has stopped; here the condition of the node is the first to say so.
Where a kubelet says that its node is not ready, it goes on to say which of the pods are.
"""

from typing import Any, Final

import trio
from attrs import define, field

from trio_sched.simulator.controllers.events import EventRecorder
from trio_sched.simulator.controllers.nodes.eviction_rates import readiness
from trio_sched.simulator.controllers.work_queue import WorkQueue
from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.kubelets.pod_states import condition_of, is_ready, is_unreachable
from trio_sched.simulator.registry.lifecycle import write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

Json = dict[str, Any]

_REACT_SECONDS: Final = 0.1


@define(eq=False)
class UnreachableNodes:
    """Marks the pods of nodes that were ready and are unreachable now."""

    server: ApiServer
    _steps: WorkQueue = field(factory=WorkQueue, init=False)
    _events: EventRecorder = field(init=False)

    @_events.default
    def _recorder(self) -> EventRecorder:
        return EventRecorder(self.server, "node-controller")

    @property
    def is_busy(self) -> bool:
        """Whether pods are to be marked."""
        return self._steps.is_busy

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the controller; never returns."""
        stop = self.server.store.collection("nodes").listen(self._on_node)
        task_status.started()
        await self._steps.run(stop)

    def _on_node(self, change: Change) -> None:
        before = change.previous
        if before is not None and readiness(before.fields) == "True" and is_unreachable(change.current.fields):
            self._steps.plan(self._mark_pods, change.current.key, _REACT_SECONDS)

    def _mark_pods(self, key: str) -> None:
        node: StoredObject | None = self.server.store.get("nodes", key)
        if node is None or not is_unreachable(node.fields):
            return
        types = self.server.state.types
        self._events.normal(types.core("nodes"), node, "NodeNotReady", f"Node {key} status is now: NodeNotReady")
        for pod in list(self.server.store.collection("pods").objects.values()):
            if pod.fields["spec"].get("nodeName") == key and is_ready(pod.fields):
                self._mark(pod)

    def _mark(self, pod: StoredObject) -> None:
        status, ready = pod.fields["status"], condition_of(pod.fields, "Ready")
        assert ready is not None, "the pod is ready"
        no = {**ready, "status": "False", "lastTransitionTime": self.server.state.timestamp()}
        conditions = [no if one is ready else one for one in status["conditions"]]
        pods = self.server.state.types.core("pods")
        marked = write_fields(self.server.state, pods, pod, status={**status, "conditions": conditions})
        self._events.warning(pods, marked, "NodeNotReady", "Node is not ready")
