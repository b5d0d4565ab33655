"""The tables of kinds that are seldom looked at: their cells stand in the objects, hardly changed.

Source: the printers of kube-apiserver.
"""

from datetime import datetime
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.printers.ages import since
from trio_sched.simulator.printers.table_cells import WORKLOAD_WIDE, Table, age, columns, joined, name, template_columns


def _daemon_set_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    selector = ((spec.get("template") or {}).get("spec") or {}).get("nodeSelector") or {}
    return [
        name(fields),
        *(status.get(count, 0) for count in (*counts, "numberAvailable")),
        joined(f"{key}={value}" for key, value in sorted(selector.items())),
        age(fields, now),
        *template_columns(fields),
    ]


def _cron_job_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
    last = status.get("lastScheduleTime")
    return [
        name(fields),
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        since(last, now) if last else "<none>",
        age(fields, now),
        *template_columns({}, template.get("spec") or {}),
    ]


def _quota_row(fields: Json, now: datetime) -> list[Any]:
    status = fields.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    parts = {one: f"{one}: {used.get(one, 0)}/{limit}" for one, limit in sorted(hard.items())}
    requests = ", ".join(text for one, text in parts.items() if not one.startswith("limits."))
    limits = ", ".join(text for one, text in parts.items() if one.startswith("limits."))
    return [name(fields), requests, limits, age(fields, now)]


def _claim_row(fields: Json, now: datetime) -> list[Any]:
    status, leaving = fields.get("status") or {}, "deletionTimestamp" in fields["metadata"]
    states = ["deleted"] if leaving else []
    if status.get("allocation"):
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not leaving:
        states.append("pending")
    return [name(fields), ",".join(states), age(fields, now)]


def _slice_row(fields: Json, now: datetime) -> list[Any]:
    spec = fields.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    return [name(fields), spec.get("nodeName", ""), spec.get("driver", ""), pool, age(fields, now)]


def _taint_rule_row(fields: Json, now: datetime) -> list[Any]:
    taint = (fields.get("spec") or {}).get("taint") or {}
    added = taint.get("timeAdded")
    shown = [taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")]
    return [name(fields), *shown, since(added, now) if added else "", age(fields, now)]


def _pod_group_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    state = "Pending"
    if (scheduled := conditions.get("PodGroupScheduled")) is not None:
        state = "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    if (target := conditions.get("DisruptionTarget")) is not None:
        state = target.get("reason", "")
    policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") is not None else "Basic"
    workload = ((spec.get("podGroupTemplateRef") or {}).get("workload") or {}).get("workloadName") or "<none>"
    return [name(fields), policy, workload, state, age(fields, now)]


def _driver_row(fields: Json, now: datetime) -> list[Any]:
    spec = fields.get("spec") or {}
    flags = (("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False))
    requests = spec.get("tokenRequests")
    return [
        name(fields),
        *(spec.get(flag, default) for flag, default in flags),
        "<unset>" if requests is None else ",".join(one.get("audience", "") for one in requests),
        spec.get("requiresRepublish", False),
        joined(spec.get("volumeLifecycleModes") or ()),
        age(fields, now),
    ]


def _csi_node_row(fields: Json, now: datetime) -> list[Any]:
    return [name(fields), len((fields.get("spec") or {}).get("drivers") or ()), age(fields, now)]


def _capacity_row(fields: Json, now: datetime) -> list[Any]:
    return [name(fields), fields.get("storageClassName", ""), str(fields.get("capacity", "<unset>"))]


def _attachment_row(fields: Json, now: datetime) -> list[Any]:
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    volume = (spec.get("source") or {}).get("persistentVolumeName", "")
    places = [spec.get("attacher", ""), volume, spec.get("nodeName", "")]
    return [name(fields), *places, bool(status.get("attached")), age(fields, now)]


def _created_row(fields: Json, now: datetime) -> list[Any]:
    return [name(fields), fields["metadata"].get("creationTimestamp", "")]


def _revision_row(fields: Json, now: datetime) -> list[Any]:
    owner = next((one for one in fields["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    shown = "<none>"
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = owner.get("kind", "").lower()
        shown = f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return [name(fields), shown, fields.get("revision", 0), age(fields, now)]


def _runtime_class_row(fields: Json, now: datetime) -> list[Any]:
    return [name(fields), fields.get("handler", ""), age(fields, now)]


_CREATED: Final[Table] = (columns("Name", "Created At"), _created_row)
_DAEMON_COLUMNS: Final = ("Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age")
_CRON_COLUMNS: Final = ("Name", "Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Age")
_DRIVER_COLUMNS: Final = (
    *("Name", "AttachRequired", "PodInfoOnMount", "StorageCapacity", "TokenRequests", "RequiresRepublish"),
    *("Modes", "Age"),
)

PLAIN_TABLES: Final[dict[str, Table]] = {
    "daemonsets.apps": (columns(*_DAEMON_COLUMNS, wide=WORKLOAD_WIDE), _daemon_set_row),
    "cronjobs.batch": (columns(*_CRON_COLUMNS, wide=WORKLOAD_WIDE), _cron_job_row),
    "resourcequotas": (columns("Name", "Request", "Limit", "Age"), _quota_row),
    "limitranges": _CREATED,
    "customresourcedefinitions.apiextensions.k8s.io": _CREATED,
    "resourceclaims.resource.k8s.io": (columns("Name", "State", "Age"), _claim_row),
    "resourceslices.resource.k8s.io": (columns("Name", "Node", "Driver", "Pool", "Age"), _slice_row),
    "devicetaintrules.resource.k8s.io": (
        columns("Name", "Key", "Value", "Effect", "TimeAdded", "Age"),
        _taint_rule_row,
    ),
    "podgroups.scheduling.k8s.io": (columns("Name", "Policy", "Workload", "Status", "Age"), _pod_group_row),
    "csidrivers.storage.k8s.io": (columns(*_DRIVER_COLUMNS), _driver_row),
    "csinodes.storage.k8s.io": (columns("Name", "Drivers", "Age"), _csi_node_row),
    "csistoragecapacities.storage.k8s.io": (columns("Name", "StorageClassName", "Capacity"), _capacity_row),
    "volumeattachments.storage.k8s.io": (
        columns("Name", "Attacher", "PV", "Node", "Attached", "Age"),
        _attachment_row,
    ),
    "controllerrevisions.apps": (columns("Name", "Controller", "Revision", "Age"), _revision_row),
    "runtimeclasses.node.k8s.io": (columns("Name", "Handler", "Age"), _runtime_class_row),
}
