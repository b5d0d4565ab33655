"""What admission plugins and the API server itself set in a new object."""

from __future__ import annotations

from typing import Final

from trio_sched.documents.json_values import Json, dicts
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.admission import pod_security
from trio_sched.simulator.admission.annotations import number_in
from trio_sched.simulator.admission.limit_ranges import apply_defaults, check_limits
from trio_sched.simulator.admission.runtime_classes import admit_runtime_class
from trio_sched.simulator.admission.workload_references import drop_reference
from trio_sched.simulator.errors.status_errors import forbidden
from trio_sched.simulator.pods.label_keys import merge_label_keys
from trio_sched.simulator.pods.pod_defaults import (
    DEFAULT_ACCOUNT,
    add_default_tolerations,
    admit_service_account,
    quality_of_service,
)
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.validation.batch.jobs import JOB_NAME_LABELS, JOB_UID_LABELS
from trio_sched.simulator.validation.core.annotations import APP_ARMOR, app_armor_profile

POD_GROUP_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
_NO_EXPANSION: Final = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
_TOPOLOGY: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_PREEMPTS: Final = "PreemptLowerPriority"
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def admit_pod(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new pod."""
    spec = fields["spec"]
    if annotations := fields["metadata"].get("annotations"):
        _set_app_armor_profiles(annotations, spec)
    _admit_priority(state, resource, fields, spec)
    admit_service_account(spec)
    if spec["serviceAccountName"] != DEFAULT_ACCOUNT:
        _check_account(state, resource, fields["metadata"], spec["serviceAccountName"])
    add_default_tolerations(spec)
    apply_defaults(state, fields)
    if spec.get("runtimeClassName") or spec.get("overhead"):
        admit_runtime_class(state, resource, fields)
    merge_label_keys(fields, state.types.minor)
    drop_reference(fields, state.types.minor)
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
    _label_with_topology(state, fields)


def topology_labels(state: ClusterState, node_name: str) -> Json:
    """The labels of a node that its pods get when they are bound; none if there is no such node."""
    node = state.store.get("nodes", node_name)
    labels = {} if node is None else node.fields["metadata"].get("labels") or {}
    return {key: labels[key] for key in _TOPOLOGY if key in labels}


def _label_with_topology(state: ClusterState, fields: Json) -> None:
    if (node := fields["spec"].get("nodeName")) and (labels := topology_labels(state, node)):
        metadata = fields["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}


def _set_app_armor_profiles(annotations: Json, spec: Json) -> None:
    """Set the profiles that containers have by annotations only, as clients from before 1.30 write them."""
    if (spec.get("os") or {}).get("name") == "windows":
        return
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for kind in ("initContainers", "containers"):
        containers = list(spec.get(kind) or ())
        for index, container in enumerate(containers):
            profile = app_armor_profile(annotations.get(f"{APP_ARMOR}{container.get('name')}", ""))
            own = container.get("securityContext") or {}
            if profile is not None and "appArmorProfile" not in own and profile != of_pod:
                # A copy: containers of a file are shared by equal pods.
                containers[index] = {**container, "securityContext": {**own, "appArmorProfile": profile}}
                spec[kind] = containers


def check_pod(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """Refuse a new pod that the limits or the security level of its namespace do not take.

    Raises:
        ApiError: 403.
    """
    check_limits(state, resource, fields)
    pod_security.check_pod(state, resource, fields)


def _check_account(state: ClusterState, resource: ResourceType, metadata: Json, name: str) -> None:
    """Refuse a pod whose service account is not there, if its namespace is; the default one is always to come."""
    namespace = metadata.get("namespace") or ""
    found = state.store.get("serviceaccounts", f"{namespace}/{name}")
    if found is None and state.store.get("namespaces", namespace) is not None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(resource, metadata.get("name") or "", why)


def admit_pod_change(state: ClusterState, old: Json, new: Json) -> None:
    """A changed pod: it keeps its priority, and what an update leaves out of its tolerations is added again."""
    _label_with_topology(state, new)
    before, after = old["spec"], new["spec"]
    add_default_tolerations(after)
    for field in ("priority", "preemptionPolicy"):
        if after.get(field) is None and field in before:
            after[field] = before[field]


def admit_daemon_set(_state: ClusterState, _resource: ResourceType, fields: Json) -> None:
    """A new DaemonSet: the generation of its pod template, by which it knows the pods that it adopts."""
    given = (fields["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION)
    _set_template_generation(fields, max(number_in(given) or 0, 1))


def admit_daemon_set_change(_state: ClusterState, old: Json, new: Json) -> None:
    """A changed DaemonSet: another pod template is one more generation."""
    before = number_in((old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION)) or 0
    _set_template_generation(new, before + (old["spec"].get("template") != new["spec"].get("template")))


def _set_template_generation(fields: Json, number: int) -> None:
    metadata = fields["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), TEMPLATE_GENERATION: str(number)}


def _admit_priority(state: ClusterState, resource: ResourceType, fields: Json, spec: Json) -> None:
    """Turn ``priorityClassName`` into ``priority`` and ``preemptionPolicy``, as the admission plugin does."""
    classes = state.store.collection("priorityclasses.scheduling.k8s.io").objects
    name, value, policy = spec.get("priorityClassName") or "", 0, _PREEMPTS
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


def admit_namespace(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new namespace."""
    _label_with_name(fields["metadata"])
    fields["spec"] = {"finalizers": ["kubernetes"]}
    fields["status"] = {"phase": "Active"}


def admit_namespace_change(state: ClusterState, old: Json, new: Json) -> None:
    """A changed namespace: its finalizers and the label with its name are the API server's."""
    _label_with_name(new["metadata"])
    new["spec"] = old["spec"]


def _label_with_name(metadata: Json) -> None:
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata.get("name") or ""}


def admit_node(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new node."""
    for taint in fields["spec"].get("taints") or ():
        if taint.get("effect") == "NoExecute":
            taint.setdefault("timeAdded", state.timestamp())


def admit_volume(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new volume."""
    spec = fields["spec"]
    if resource.kind == "PersistentVolumeClaim" and "storageClassName" not in spec:
        classes = state.store.collection("storageclasses.storage.k8s.io").in_order()
        for stored in classes:
            marks = stored.fields["metadata"].get("annotations") or {}
            if marks.get("storageclass.kubernetes.io/is-default-class") == "true":
                spec["storageClassName"] = stored.fields["metadata"]["name"]
    fields["status"] = {"phase": "Pending"}


def check_claim_change(state: ClusterState, old: Json, new: Json) -> None:
    """Refuse that a claim grows whose class does not expand volumes.

    Raises:
        ApiError: 403.
    """
    had, has = (((one["spec"].get("resources") or {}).get("requests") or {}).get("storage", 0) for one in (old, new))
    if parse_nano(has) <= parse_nano(had):
        return
    claims, name = state.types.core("persistentvolumeclaims"), new["metadata"]["name"]
    if (old.get("status") or {}).get("phase") != "Bound":
        raise forbidden(claims, name, "Only bound persistent volume claims can be expanded")
    class_name = new["spec"].get("storageClassName") or ""
    found = state.store.get("storageclasses.storage.k8s.io", class_name)
    is_same = class_name == (old["spec"].get("storageClassName") or "")
    if found is None or not is_same or not found.fields.get("allowVolumeExpansion"):
        raise forbidden(claims, name, _NO_EXPANSION)


def admit_workload(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new workload."""
    fields["status"] = {"replicas": 0}


def admit_job(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new job: its pods are told apart by its uid, unless it has a selector of its own."""
    fields["status"] = {}
    if not fields["spec"].get("manualSelector"):
        select_by_uid(fields)


def select_by_uid(fields: Json) -> None:
    """Let a job select the pods that have its uid as a label, and give its template that label."""
    spec, metadata = fields["spec"], fields["metadata"]
    template = spec.setdefault("template", {})
    own = {name: metadata.get("name") or "" for name in JOB_NAME_LABELS}
    own |= {name: metadata["uid"] for name in JOB_UID_LABELS}
    given = template.get("metadata") or {}
    template["metadata"] = {**given, "labels": own | (given.get("labels") or {})}
    selector = spec.get("selector") or {}
    spec["selector"] = {
        **selector,
        "matchLabels": {JOB_UID_LABELS[0]: own[JOB_UID_LABELS[0]]} | (selector.get("matchLabels") or {}),
    }


def admit_budget(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new budget."""
    fields["status"] = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def admit_slice(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new resource slice."""
    _date_taints(state, fields)


def admit_slice_change(state: ClusterState, old: Json, new: Json) -> None:
    """A changed resource slice: taints keep the time that they were sent with, and others begin now."""
    _date_taints(state, new)


def _date_taints(state: ClusterState, fields: Json) -> None:
    for device in dicts((fields.get("spec") or {}).get("devices")):
        for taint in dicts(device.get("taints")):
            taint.setdefault("timeAdded", state.timestamp())


def admit_pod_group(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new pod group: the protecting finalizer, and the priority of its class."""
    metadata = fields["metadata"]
    finalizers = metadata.get("finalizers") or []
    if POD_GROUP_FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, POD_GROUP_FINALIZER]
    _admit_group_priority(state, resource, fields)


def admit_pod_group_with_policy(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """The same from 1.37 on, with the gate PodGroupPreemptionPolicy: the preemption policy of its class, too."""
    admit_pod_group(state, resource, fields)
    _admit_group_policy(state, resource, fields)


def admit_composite_pod_group(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """A new composite pod group: the priority and the preemption policy of its class."""
    _admit_group_priority(state, resource, fields)
    _admit_group_policy(state, resource, fields)


def _admit_group_priority(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    spec = fields["spec"]
    name = spec.get("priorityClassName")
    if name:
        found = state.store.get("priorityclasses.scheduling.k8s.io", name)
        if found is None:
            who = fields["metadata"].get("name") or ""
            raise forbidden(resource, who, f"no PriorityClass with name {name} was found")
        spec["priority"] = found.fields["value"]


def _admit_group_policy(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    spec = fields["spec"]
    given, name = spec.get("preemptionPolicy"), spec.get("priorityClassName")
    found = state.store.get("priorityclasses.scheduling.k8s.io", name) if name else None
    policy = (given if found is None else found.fields.get("preemptionPolicy")) or _PREEMPTS
    if given not in (None, policy):
        who = fields["metadata"].get("name") or ""
        raise forbidden(
            resource,
            who,
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod group spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy
