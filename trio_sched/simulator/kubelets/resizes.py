"""Simulated kubelets resize pods in place: the containers get what the pod asks for now when its node has room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import NANO, QuantityError, parse_nano
from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.endpoints.subresources.pod_subresources import with_condition
from trio_sched.simulator.pods.pod_phase import is_finished, phase_of
from trio_sched.simulator.pods.pod_resources import pod_total
from trio_sched.simulator.registry.lifecycle import write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

_PENDING: Final = "PodResizePending"
_CONTAINERS: Final = {"containers": "containerStatuses", "initContainers": "initContainerStatuses"}


@define(eq=False)
class Resizes:
    """What the containers run with, where that differs from what their pods ask for or has done so."""

    server: ApiServer
    plan: Callable[[StoredObject], None]
    """Has `act` called for a pod some time later."""
    _allocated: dict[str, Json] = field(factory=dict, init=False)
    """The uid of a pod that was resized → the spec that its containers run with."""
    _deferred: dict[str, dict[str, None]] = field(factory=dict, init=False)
    """The name of a node → the keys of the pods that wait for room on it."""

    def on_pod(self, change: Change) -> None:
        """Take note of a pod that has changed."""
        pod, fields = change.current, change.current.fields
        node, uid = fields["spec"].get("nodeName"), fields["metadata"]["uid"]
        if not node:
            return
        phase = phase_of(fields)
        if change.type == "DELETED" or is_finished(fields):
            self._allocated.pop(uid, None)
            self._try_deferred(node)
        elif change.previous is not None and phase == "Running":
            before = change.previous.fields["spec"]
            if before is not fields["spec"] and _resources(before) != _resources(fields["spec"]):
                self._allocated.setdefault(uid, before)
                self.plan(pod)

    def on_node(self, change: Change) -> None:
        """A node may have more room now."""
        self._try_deferred(change.current.fields["metadata"]["name"])

    def _try_deferred(self, node: str) -> None:
        for key in self._deferred.pop(node, ()):
            pod = self.server.store.get("pods", key)
            if pod is not None:
                self.plan(pod)

    def act(self, pod: StoredObject) -> None:
        """Resize a pod, or say that it has to wait."""
        fields = pod.fields
        spec, status, uid = fields["spec"], fields.get("status") or {}, fields["metadata"]["uid"]
        allocated = self._allocated.get(uid)
        if allocated is None or status.get("phase") != "Running" or "deletionTimestamp" in fields["metadata"]:
            return
        node, lacks = spec["nodeName"], next(self._lacking(spec, uid), None)
        conditions = [one for one in status.get("conditions") or () if one.get("type") != _PENDING]
        if lacks is None:
            self._allocated[uid] = allocated = spec
            self._deferred.get(node, {}).pop(pod.key, None)
        else:
            self._deferred.setdefault(node, {})[pod.key] = None
            moment = self.server.state.timestamp()
            told = {"reason": "Deferred", "message": lacks}
            conditions = with_condition(status.get("conditions"), moment, type=_PENDING, status="True", **told)
        new = {**status, "conditions": conditions, **_with_resources(status, allocated)}
        if new != status:
            write_fields(self.server.state, self.server.state.types.core("pods"), pod, status=new)
        if lacks is None:
            self._try_deferred(node)

    def _lacking(self, spec: Json, uid: str) -> Iterator[str]:
        """What a node has too little of for a pod with *spec*."""
        node = self.server.store.get("nodes", spec["nodeName"])
        allocatable = {} if node is None else (node.fields.get("status") or {}).get("allocatable") or {}
        wanted = pod_total(spec, "requests")
        used: dict[str, int] = {}
        for other in self.server.store.collection("pods").objects.values():
            theirs, other_uid = other.fields["spec"], other.fields["metadata"]["uid"]
            is_over = is_finished(other.fields)
            if theirs.get("nodeName") == spec["nodeName"] and other_uid != uid and not is_over:
                for name, amount in pod_total(self._allocated.get(other_uid) or theirs, "requests").items():
                    used[name] = used.get(name, 0) + amount
        for name, unit in (("cpu", NANO // 1000), ("memory", NANO)):
            capacity = _amount(allocatable.get(name))
            if wanted.get(name, 0) + used.get(name, 0) > capacity:
                yield (
                    f"Node didn't have enough resource: {name}, requested: {wanted.get(name, 0) // unit}, "
                    f"used: {used.get(name, 0) // unit}, capacity: {capacity // unit}"
                )


def _amount(quantity: Any) -> int:
    try:
        return 0 if quantity is None else parse_nano(quantity)
    except QuantityError:
        return 0


def _resources(spec: Json) -> list[Any]:
    """The resources of the containers, and of the pod as a whole."""
    return [spec.get("resources"), *([one.get("resources") for one in spec.get(kind) or ()] for kind in _CONTAINERS)]


def _with_resources(status: Json, spec: Json) -> Json:
    """The statuses of containers that run with the resources of *spec*."""
    fresh: Json = {}
    for kind, statuses in _CONTAINERS.items():
        held = {one.get("name"): one.get("resources") or {} for one in spec.get(kind) or ()}
        if status.get(statuses):
            fresh[statuses] = [one | _status_of(held.get(one.get("name"), {})) for one in status[statuses]]
    return fresh | (_status_of(spec["resources"]) if spec.get("resources") else {})


def _status_of(resources: Json) -> Json:
    return {"resources": resources, "allocatedResources": resources.get("requests") or {}}
