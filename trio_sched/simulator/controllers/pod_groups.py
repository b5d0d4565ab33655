"""A simulated pod group protection controller: a pod group that is deleted goes once no pod of it is left to run."""

from attrs import define, field

from trio_sched.simulator.admission.admission import POD_GROUP_FINALIZER
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.registry.lifecycle import write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

GROUPS = "podgroups.scheduling.k8s.io"

_REACT_SECONDS = 0.1


@define(eq=False)
class PodGroupController(Controller):
    """Removes the finalizer of pod groups that are being deleted."""

    _pods_of_group: dict[str, dict[str, None]] = field(factory=dict, init=False)
    """Key of a pod group → its pods that are not done."""

    def start(self) -> None:
        """Note the pods of groups; follow pods and groups."""
        for pod in self.server.store.collection("pods").objects.values():
            self._note(pod, gone=False)
        for group in self.server.store.collection(GROUPS).objects.values():
            self._plan(group)
        self.listen("pods", lambda change: self._note(change.current, gone=change.type == "DELETED"))
        self.listen(GROUPS, self._on_group)

    def _note(self, pod: StoredObject, *, gone: bool) -> None:
        name = (pod.fields["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if not name:
            return
        key = f"{pod.fields['metadata']['namespace']}/{name}"
        members = self._pods_of_group.setdefault(key, {})
        if not gone and not is_finished(pod.fields):
            members[pod.key] = None
            return
        members.pop(pod.key, None)
        if not members:
            del self._pods_of_group[key]
            self._steps.plan(self._sync, key, _REACT_SECONDS)

    def _on_group(self, change: Change) -> None:
        if change.type != "DELETED":
            self._plan(change.current)

    def _plan(self, group: StoredObject) -> None:
        if "deletionTimestamp" in group.fields["metadata"]:
            self._steps.plan(self._sync, group.key, _REACT_SECONDS)

    def _sync(self, key: str) -> None:
        group = self.server.store.get(GROUPS, key)
        if group is None or "deletionTimestamp" not in group.fields["metadata"] or self._pods_of_group.get(key):
            return
        metadata = dict(group.fields["metadata"])
        left = [one for one in metadata.get("finalizers") or () if one != POD_GROUP_FINALIZER]
        if left == metadata.get("finalizers"):
            return
        metadata["finalizers"] = left
        resource = self.server.state.types.of_kind("scheduling.k8s.io/v1alpha2", "PodGroup")
        assert resource is not None  # a built-in type
        group = write_fields(self.server.state, resource, group, metadata=metadata)
        if not left:
            self.server.store.delete(GROUPS, group)
