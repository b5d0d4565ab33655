"""What a kubelet writes about its node: nodes that were given without it get it."""

from typing import Final

from attrs import define

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.registry.lifecycle import write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

_REACT_SECONDS: Final = 0.1
_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


@define(eq=False)
class NodeRegistration(Controller):
    """Gives nodes their default labels, and conditions if they have none."""

    def start(self) -> None:
        """Complete the nodes that there are, then those that are created."""
        for key in list(self.server.store.collection("nodes").objects):
            self._complete(key)
        self.listen("nodes", self._on_node)

    def _on_node(self, change: Change) -> None:
        if change.type == "ADDED":
            self._steps.plan(self._complete, change.current.key, _REACT_SECONDS)

    def _complete(self, key: str) -> None:
        node: StoredObject | None = self.server.store.get("nodes", key)
        if node is None:
            return
        metadata, status = node.fields["metadata"], node.fields.get("status") or {}
        labels = {**_default_labels(metadata["name"]), **(metadata.get("labels") or {})}
        if not status.get("conditions"):
            moment = self.server.state.timestamp()
            made = [
                {
                    "type": kind,
                    "status": holds,
                    "lastHeartbeatTime": moment,
                    "lastTransitionTime": moment,
                    "reason": reason,
                    "message": message,
                }
                for kind, holds, reason, message in _CONDITIONS
            ]
            status = {**status, "conditions": made}
        if labels != metadata.get("labels") or status != node.fields.get("status"):
            written: Json = {**metadata, "labels": labels}
            resource = self.server.state.types.core("nodes")
            write_fields(self.server.state, resource, node, metadata=written, status=status)


def _default_labels(name: str) -> Json:
    return {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
