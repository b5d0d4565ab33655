"""Pods that workloads should have and that could not be created: beyond a quota, or refused at admission."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.controlled_objects import controller_of
from trio_sched.simulator.kubelets.pod_states import condition_of
from trio_sched.simulator.storage.object_store import ObjectStore

_COLLECTIONS: Final = {
    "ReplicationController": "replicationcontrollers",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "DaemonSet": "daemonsets.apps",
    "Job": "jobs.batch",
}
_IDLE: Final = ("Complete", "Failed", "Suspended")
"""Conditions of Jobs that want no pods."""
_REASON: Final = "FailedCreate"
_PREFIX: Final = "Error creating: "


@frozen(kw_only=True)
class MissingPods:
    """The pods that one workload lacks."""

    namespace: str
    kind: str
    workload: str
    pods: int
    message: str
    """Why the last attempt failed."""


def missing_pods(store: ObjectStore) -> list[MissingPods]:
    """What the workloads in *store* lack at the end, by namespace and name."""
    messages: dict[tuple[str, str], str] = {}
    for stored in store.collection("events").in_order():
        event = stored.fields
        about = event.get("involvedObject") or {}
        if event.get("reason") == _REASON and about.get("kind") in _COLLECTIONS:
            key = f"{about.get('namespace') or ''}/{about.get('name') or ''}"
            messages[about["kind"], key] = (event.get("message") or "").removeprefix(_PREFIX)
    found = []
    for (kind, key), message in messages.items():
        workload = store.get(_COLLECTIONS[kind], key)
        lacking = 0 if workload is None else _lacking(kind, workload.fields)
        if workload is None or lacking <= 0:
            continue
        owner = controller_of(workload.fields) or {"kind": kind, "name": workload.fields["metadata"]["name"]}
        found.append(
            MissingPods(
                namespace=workload.fields["metadata"]["namespace"],
                kind=owner["kind"],
                workload=owner["name"],
                pods=lacking,
                message=message,
            )
        )
    return sorted(found, key=lambda one: (one.namespace, one.kind, one.workload))


def _lacking(kind: str, fields: Json) -> int:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    if kind == "DaemonSet":
        return int(status.get("desiredNumberScheduled", 0) - status.get("currentNumberScheduled", 0))
    if kind != "Job":
        return int(spec.get("replicas", 1) - status.get("replicas", 0))
    if any((condition_of(fields, type_) or {}).get("status") == "True" for type_ in _IDLE):
        return 0
    left = spec.get("parallelism", 1)
    if spec.get("completions") is not None:
        left = min(left, spec["completions"] - status.get("succeeded", 0))
    return int(left - status.get("active", 0))
