"""What is done to an object before it is stored: defaults, admission and validation by its kind.

Each kind that has rules of its own has them here in one ``Rules``; all the others are stored unchanged.
"""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from trio_sched.simulator import event_shapes
from trio_sched.simulator.cluster_state import ClusterState
from trio_sched.simulator.device_rules import (
    admit_slice,
    claim_changes,
    claim_defaults,
    claim_problems,
    claim_status_changes,
    claim_template_defaults,
    slice_changes,
    slice_problems,
    template_problems,
)
from trio_sched.simulator.pod_defaults import add_default_tolerations, fill_spec, quality_of_service
from trio_sched.simulator.pod_group_rules import (
    admit_pod_group,
    pod_group_changes,
    pod_group_defaults,
    pod_group_problems,
)
from trio_sched.simulator.pod_validation import pod_problems, update_problems
from trio_sched.simulator.resource_types import ResourceType
from trio_sched.simulator.status_errors import FieldProblem, bad_value, forbidden, required
from trio_sched.simulator.validation.definitions import definition_problems

Json = dict[str, Any]


@frozen(kw_only=True)
class Rules:
    """How one kind is treated; what is left out is a no-op.

    Attributes:
        defaults: fills in the defaults of a new object's fields, in place; doing it twice changes nothing.
        admit: what admission plugins and the server itself set in a new object, in place.
        problems: what is wrong with a new object.
        change_problems: what is wrong with (old fields → new fields).
        status_problems: what is wrong with a new status (old fields → new fields).
        status_keeps_metadata: whether a change of the status changes no labels, annotations, owners or finalizers.
    """

    defaults: Callable[[Json], None] = lambda _fields: None
    admit: Callable[[ClusterState, ResourceType, Json], None] = lambda _state, _resource, _fields: None
    problems: Callable[[Json], list[FieldProblem]] = lambda _fields: []
    change_problems: Callable[[Json, Json], list[FieldProblem]] = lambda _old, _new: []
    status_problems: Callable[[Json, Json], list[FieldProblem]] = lambda _old, _new: []
    status_keeps_metadata: bool = False


def _pod_defaults(fields: Json) -> None:
    fill_spec(fields.setdefault("spec", {}))


def _admit_pod(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    spec = fields["spec"]
    _admit_priority(state, resource, fields, spec)
    add_default_tolerations(spec)
    status: Json = {"phase": "Pending"}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "reason": "SchedulingGated",
                "status": "False",
                "type": "PodScheduled",
            }
        ]
    status["qosClass"] = quality_of_service(spec)
    fields["status"] = status


def _admit_priority(state: ClusterState, resource: ResourceType, fields: Json, spec: Json) -> None:
    """Turn ``priorityClassName`` into ``priority`` and ``preemptionPolicy``, as the admission plugin does."""
    classes = state.store.collection("priorityclasses.scheduling.k8s.io").objects
    name, value, policy = spec.get("priorityClassName") or "", 0, "PreemptLowerPriority"
    if name:
        found = classes.get(name)
        if found is None:
            who = fields["metadata"].get("name") or ""
            raise forbidden(resource, who, f"no PriorityClass with name {name} was found")
        chosen: Json | None = found.fields
    else:
        defaults = [stored.fields for stored in classes.values() if stored.fields.get("globalDefault")]
        chosen = min(defaults, key=lambda candidate: candidate["value"], default=None)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    if chosen is not None:
        value, policy = chosen["value"], chosen.get("preemptionPolicy") or policy
    if spec.get("priority") not in (None, value):
        raise forbidden(
            resource,
            fields["metadata"].get("name") or "",
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name",
        )
    spec["priority"] = value
    if spec.get("preemptionPolicy") not in (None, policy):
        raise forbidden(
            resource,
            fields["metadata"].get("name") or "",
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy


def _admit_namespace(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    metadata = fields["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata.get("name")}
    fields["spec"] = {"finalizers": ["kubernetes"]}
    fields["status"] = {"phase": "Active"}


def _node_defaults(fields: Json) -> None:
    fields.setdefault("spec", {})
    status = fields.get("status") or {}
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _admit_node(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    for taint in fields["spec"].get("taints") or ():
        if taint.get("effect") == "NoExecute":
            taint.setdefault("timeAdded", state.timestamp())


def _volume_defaults(fields: Json) -> None:
    fields.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _persistent_volume_defaults(fields: Json) -> None:
    _volume_defaults(fields)
    fields["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")


def _admit_volume(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    spec = fields["spec"]
    if resource.kind == "PersistentVolumeClaim" and "storageClassName" not in spec:
        classes = state.store.collection("storageclasses.storage.k8s.io").in_order()
        for stored in classes:
            marks = stored.fields["metadata"].get("annotations") or {}
            if marks.get("storageclass.kubernetes.io/is-default-class") == "true":
                spec["storageClassName"] = stored.fields["metadata"]["name"]
    fields["status"] = {"phase": "Pending"}


def _storage_class_defaults(fields: Json) -> None:
    fields.setdefault("reclaimPolicy", "Delete")
    fields.setdefault("volumeBindingMode", "Immediate")


def _csi_driver_defaults(fields: Json) -> None:
    spec = fields.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def _service_defaults(fields: Json) -> None:
    spec = fields.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port", 0))


def _admit_service(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    spec = fields["spec"]
    if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
        number = state.rng.randrange(1, 1 << 16)
        spec["clusterIP"] = f"10.96.{number >> 8}.{number & 255}"
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    fields["status"] = {"loadBalancer": {}}


def _template_defaults(fields: Json) -> None:
    template = fields.setdefault("spec", {}).get("template")
    if template is not None:
        fill_spec(template.setdefault("spec", {}))


def _workload_defaults(fields: Json) -> None:
    _template_defaults(fields)
    fields["spec"].setdefault("replicas", 1)


def _admit_workload(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    fields["status"] = {"replicas": 0}


def _job_defaults(fields: Json) -> None:
    spec = fields.setdefault("spec", {})
    for name, value in (("parallelism", 1), ("completions", 1), ("backoffLimit", 6), ("suspend", False)):
        spec.setdefault(name, value)
    _template_defaults(fields)


def _admit_job(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    fields["status"] = {}


def _event_defaults(fields: Json) -> None:
    for name, value in event_shapes.complete_core({}).items():
        fields.setdefault(name, value)


def _priority_class_defaults(fields: Json) -> None:
    fields.setdefault("value", 0)
    fields.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _budget_defaults(fields: Json) -> None:
    spec = fields.setdefault("spec", {})
    if "minAvailable" not in spec and "maxUnavailable" not in spec:
        spec["minAvailable"] = 1


def _admit_budget(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    fields["status"] = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def _priority_class_problems(fields: Json) -> list[FieldProblem]:
    name, value = fields["metadata"].get("name") or "", fields.get("value")
    problems = []
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        detail = "priority class names with 'system-' prefix are reserved for system use only"
        problems.append(bad_value("metadata.name", name, detail))
    elif isinstance(value, int) and value > 1_000_000_000 and not name.startswith("system-"):
        detail = "maximum allowed value of a user defined priority is 1000000000"
        problems.append(bad_value("value", value, detail))
    return problems


def _priority_class_changes(old: Json, new: Json) -> list[FieldProblem]:
    if old.get("value", 0) != new.get("value", 0):
        return [bad_value("value", new.get("value", 0), "field is immutable")]
    return []


def _pod_problems(fields: Json) -> list[FieldProblem]:
    return pod_problems(fields["spec"])


def _pod_changes(old: Json, new: Json) -> list[FieldProblem]:
    return update_problems(old["spec"], new.get("spec") or {})


def _event_problems(fields: Json) -> list[FieldProblem]:
    involved = fields.get("involvedObject") or {}
    permitted = (involved["namespace"],) if involved.get("namespace") else ("default", "kube-system")
    if fields["metadata"].get("namespace") not in permitted:
        return [
            bad_value("involvedObject.namespace", involved.get("namespace") or "", "does not match event.namespace")
        ]
    return []


def _workload_problems(fields: Json) -> list[FieldProblem]:
    spec = fields["spec"]
    problems = []
    if not spec.get("selector"):
        problems.append(required("spec.selector"))
    if not isinstance((spec.get("template") or {}).get("spec"), dict):
        problems.append(required("spec.template.spec.containers"))
    replicas = spec.get("replicas")
    if isinstance(replicas, int) and replicas < 0:
        problems.append(bad_value("spec.replicas", replicas, "must be greater than or equal to 0"))
    return problems


_WORKLOAD = Rules(defaults=_workload_defaults, admit=_admit_workload, problems=_workload_problems)

_RULES: dict[str, Rules] = {
    "pods": Rules(defaults=_pod_defaults, admit=_admit_pod, problems=_pod_problems, change_problems=_pod_changes),
    "namespaces": Rules(admit=_admit_namespace),
    "nodes": Rules(defaults=_node_defaults, admit=_admit_node),
    "persistentvolumes": Rules(defaults=_persistent_volume_defaults, admit=_admit_volume),
    "persistentvolumeclaims": Rules(defaults=_volume_defaults, admit=_admit_volume),
    "storageclasses.storage.k8s.io": Rules(defaults=_storage_class_defaults),
    "csidrivers.storage.k8s.io": Rules(defaults=_csi_driver_defaults),
    "services": Rules(defaults=_service_defaults, admit=_admit_service),
    "customresourcedefinitions.apiextensions.k8s.io": Rules(problems=definition_problems),
    "deployments.apps": _WORKLOAD,
    "replicasets.apps": _WORKLOAD,
    "statefulsets.apps": _WORKLOAD,
    "daemonsets.apps": Rules(defaults=_template_defaults, problems=_workload_problems),
    "replicationcontrollers": Rules(defaults=_workload_defaults, admit=_admit_workload),
    "jobs.batch": Rules(defaults=_job_defaults, admit=_admit_job),
    "events": Rules(defaults=_event_defaults, problems=_event_problems),
    "podgroups.scheduling.k8s.io": Rules(
        defaults=pod_group_defaults,
        admit=admit_pod_group,
        problems=pod_group_problems,
        change_problems=pod_group_changes,
    ),
    "resourceclaims.resource.k8s.io": Rules(
        defaults=claim_defaults,
        problems=claim_problems,
        change_problems=claim_changes,
        status_problems=claim_status_changes,
        status_keeps_metadata=True,
    ),
    "resourceclaimtemplates.resource.k8s.io": Rules(
        defaults=claim_template_defaults, problems=template_problems, change_problems=claim_changes
    ),
    "resourceslices.resource.k8s.io": Rules(admit=admit_slice, problems=slice_problems, change_problems=slice_changes),
    "poddisruptionbudgets.policy": Rules(defaults=_budget_defaults, admit=_admit_budget),
    "priorityclasses.scheduling.k8s.io": Rules(
        defaults=_priority_class_defaults,
        problems=_priority_class_problems,
        change_problems=_priority_class_changes,
    ),
}

_NO_RULES = Rules()


def rules_of(resource: ResourceType) -> Rules:
    """How objects of *resource* are treated."""
    return _RULES.get(resource.collection, _NO_RULES)
