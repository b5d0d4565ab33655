"""Pods of nodes that are deleted: they fail, and are removed. Source: the podgc controller of Kubernetes."""

from typing import Final

import trio
from attrs import define, field

from trio_sched.simulator.api_server import ApiServer
from trio_sched.simulator.controllers.pod_states import FINISHED, phase_of
from trio_sched.simulator.controllers.steps import Steps
from trio_sched.simulator.lifecycle import DeleteOptions, delete
from trio_sched.simulator.object_store import Change
from trio_sched.simulator.pod_subresources import disrupt

QUARANTINE_SECONDS: Final = 60.0
"""After the deletion of a node: 40 s of quarantine, and at most one round of the collector, which takes 20 s."""


@define(eq=False)
class PodsOfLostNodes:
    """Removes the pods of nodes whose deletion was seen; a node that comes back keeps its pods."""

    server: ApiServer
    _steps: Steps = field(factory=Steps, init=False)

    @property
    def is_busy(self) -> bool:
        """Whether pods are to be removed."""
        return self._steps.is_busy

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the controller; never returns."""
        stop = self.server.store.collection("nodes").listen(self._on_node)
        task_status.started()
        await self._steps.run(stop)

    def _on_node(self, change: Change) -> None:
        if change.type == "DELETED":
            self._steps.plan(self._remove_pods, change.current.key, QUARANTINE_SECONDS)

    def _remove_pods(self, node: str) -> None:
        if self.server.store.get("nodes", node) is not None:
            return
        state, pods = self.server.state, self.server.state.types.core("pods")
        for pod in list(state.store.collection("pods").objects.values()):
            if pod.fields["spec"].get("nodeName") != node:
                continue
            if phase_of(pod.fields) not in FINISHED:
                why = "PodGC: node no longer exists"
                pod = disrupt(state, pods, pod, "DeletionByPodGC", why, phase="Failed")
            delete(state, pods, pod, DeleteOptions(grace_seconds=0))
