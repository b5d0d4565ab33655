"""The tables kubectl prints: which columns each kind has, and what stands in them."""

from datetime import datetime
from typing import Any

from trio_sched.documents.json_values import Json
from trio_sched.simulator.printers.ages import since
from trio_sched.simulator.printers.custom_tables import custom_columns, custom_row
from trio_sched.simulator.printers.plain_tables import PLAIN_TABLES
from trio_sched.simulator.printers.table_cells import WORKLOAD_WIDE, Table, age, columns, joined, name, template_columns
from trio_sched.simulator.storage.clock import parse_timestamp
from trio_sched.simulator.storage.resource_types import ResourceType


def _pod_reason(fields: Json) -> str:
    """The word in a pod's STATUS column."""
    status = fields.get("status") or {}
    reason = str(status.get("reason") or status.get("phase") or "Unknown")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        for stage in ("waiting", "terminated"):
            if (state.get(stage) or {}).get("reason"):
                reason = state[stage]["reason"]
    if "deletionTimestamp" in fields["metadata"]:
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return reason


def _pod_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields["spec"], fields.get("status") or {}
    statuses = status.get("containerStatuses") or []
    gates = spec.get("readinessGates") or []
    holding = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    met = sum(gate.get("conditionType") in holding for gate in gates)
    return [
        name(fields),
        f"{sum(bool(one.get('ready')) for one in statuses)}/{len(spec.get('containers') or ())}",
        _pod_reason(fields),
        str(sum(one.get("restartCount", 0) for one in statuses)),
        age(fields, now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        f"{met}/{len(gates)}" if gates else "<none>",
    ]


def _node_row(fields: Json, now: datetime) -> list[Any]:
    status = fields.get("status") or {}
    info = status.get("nodeInfo") or {}
    state = "Unknown"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            state = "Ready" if condition.get("status") == "True" else "NotReady"
    if (fields.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    marker = "node-role.kubernetes.io/"
    labels = fields["metadata"].get("labels") or {}
    roles = sorted(label.removeprefix(marker) for label in labels if label.startswith(marker))
    addresses = {address.get("type"): address.get("address") for address in status.get("addresses") or ()}
    return [
        name(fields),
        state,
        joined([role for role in roles if role]),
        age(fields, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP") or "<none>",
        addresses.get("ExternalIP") or "<none>",
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _event_row(fields: Json, now: datetime) -> list[Any]:
    involved, series = fields.get("involvedObject") or {}, fields.get("series") or {}
    first = fields.get("firstTimestamp") or fields.get("eventTime")
    last = series.get("lastObservedTime") or fields.get("lastTimestamp") or first
    count = series.get("count") or fields.get("count") or 1
    target = involved.get("kind", "").lower()
    if involved.get("name"):
        target += f"/{involved['name']}"
    seen = since(last, now)
    source = fields.get("source") or {}
    origin = [
        part for part in (source.get("component") or fields.get("reportingComponent"), source.get("host")) if part
    ]
    return [
        f"{seen} (x{count} over {since(first, now)})" if count > 1 else seen,
        fields.get("type", ""),
        fields.get("reason", ""),
        target,
        (fields.get("message") or "").strip(),
        involved.get("fieldPath", ""),
        ", ".join(origin),
        since(first, now),
        count,
        name(fields),
    ]


def _deployment_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    return [
        name(fields),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(fields, now),
        *template_columns(fields),
    ]


def _replica_set_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    counts = [spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name(fields), *counts, age(fields, now), *template_columns(fields)]


def _stateful_set_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"
    return [name(fields), ready, age(fields, now), *template_columns(fields)[:2]]


def _job_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    holding = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    state = next((word for word in ("Complete", "Failed", "Suspended") if word in holding), "Running")
    began, ended = status.get("startTime"), parse_timestamp(status.get("completionTime") or "")
    took = since(began, ended or now) if began else ""
    completions = f"{status.get('succeeded', 0)}/{spec.get('completions', 1)}"
    return [name(fields), state, completions, took, age(fields, now), *template_columns(fields)]


def _claim_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    phase = "Terminating" if "deletionTimestamp" in fields["metadata"] else status.get("phase", "")
    return [
        name(fields),
        phase,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", ""),
        _access_modes(status.get("accessModes") if spec.get("volumeName") else []),
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        age(fields, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _volume_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    claim = spec.get("claimRef") or {}
    return [
        name(fields),
        (spec.get("capacity") or {}).get("storage", ""),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if "deletionTimestamp" in fields["metadata"] else status.get("phase", ""),
        f"{claim['namespace']}/{claim['name']}" if claim.get("name") else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age(fields, now),
        spec.get("volumeMode", "<unset>"),
    ]


_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _access_modes(modes: list[str] | None) -> str:
    present = set(modes or ())
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in present)


def _storage_class_row(fields: Json, now: datetime) -> list[Any]:
    marks = fields["metadata"].get("annotations") or {}
    default = marks.get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        name(fields) + (" (default)" if default else ""),
        fields.get("provisioner", ""),
        fields.get("reclaimPolicy", "Delete"),
        fields.get("volumeBindingMode", "Immediate"),
        "true" if fields.get("allowVolumeExpansion") else "false",
        age(fields, now),
    ]


def _budget_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    return [
        name(fields),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status.get("disruptionsAllowed", 0),
        age(fields, now),
    ]


def _priority_class_row(fields: Json, now: datetime) -> list[Any]:
    value, default = fields.get("value", 0), bool(fields.get("globalDefault"))
    policy = fields.get("preemptionPolicy", "PreemptLowerPriority")
    return [name(fields), value, default, age(fields, now), policy]


def _lease_row(fields: Json, now: datetime) -> list[Any]:
    return [name(fields), (fields.get("spec") or {}).get("holderIdentity") or "", age(fields, now)]


def _namespace_row(fields: Json, now: datetime) -> list[Any]:
    return [name(fields), (fields.get("status") or {}).get("phase", ""), age(fields, now)]


def _plain_row(fields: Json, now: datetime) -> list[Any]:
    return [name(fields), age(fields, now)]


_CONTROLLED = columns("Name", "Desired", "Current", "Ready", "Age", wide=WORKLOAD_WIDE)

_TABLES: dict[str, Table] = {
    **PLAIN_TABLES,
    "pods": (
        columns("Name", "Ready", "Status", "Restarts", "Age", wide=("IP", "Node", "Nominated Node", "Readiness Gates")),
        _pod_row,
    ),
    "nodes": (
        columns(
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        _node_row,
    ),
    "events": (
        [
            *columns("Last Seen", "Type", "Reason", "Object", "Message"),
            *columns(wide=("Subobject", "Source", "First Seen", "Count", "Name")),
        ],
        _event_row,
    ),
    "deployments.apps": (
        columns("Name", "Ready", "Up-to-date", "Available", "Age", wide=WORKLOAD_WIDE),
        _deployment_row,
    ),
    "replicasets.apps": (_CONTROLLED, _replica_set_row),
    "replicationcontrollers": (_CONTROLLED, _replica_set_row),
    "statefulsets.apps": (columns("Name", "Ready", "Age", wide=("Containers", "Images")), _stateful_set_row),
    "jobs.batch": (columns("Name", "Status", "Completions", "Duration", "Age", wide=WORKLOAD_WIDE), _job_row),
    "persistentvolumeclaims": (
        columns(
            "Name",
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
            wide=("VolumeMode",),
        ),
        _claim_row,
    ),
    "persistentvolumes": (
        columns(
            "Name",
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "VolumeAttributesClass",
            "Reason",
            "Age",
            wide=("VolumeMode",),
        ),
        _volume_row,
    ),
    "storageclasses.storage.k8s.io": (
        columns("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        _storage_class_row,
    ),
    "poddisruptionbudgets.policy": (
        columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"),
        _budget_row,
    ),
    "priorityclasses.scheduling.k8s.io": (
        columns("Name", "Value", "Global-Default", "Age", "PreemptionPolicy"),
        _priority_class_row,
    ),
    "leases.coordination.k8s.io": (columns("Name", "Holder", "Age"), _lease_row),
    "namespaces": (columns("Name", "Status", "Age"), _namespace_row),
}

_GENERIC: Table = (columns("Name", "Age"), _plain_row)


def table_columns(resource: ResourceType) -> list[Json]:
    """The ``columnDefinitions`` of a table of *resource*."""
    if resource.printed_columns:
        return custom_columns(resource.printed_columns)
    return _TABLES.get(resource.collection, _GENERIC)[0]


def table_row(resource: ResourceType, fields: Json, now: datetime) -> list[Any]:
    """The cells of one object's row.

    Args:
        resource: what kind of object it is.
        fields: the object as stored.
        now: what ages are counted to.
    """
    if resource.printed_columns:
        return custom_row(resource.printed_columns, fields, now)
    return _TABLES.get(resource.collection, _GENERIC)[1](fields, now)
