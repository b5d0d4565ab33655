"""What is done to an object before it is stored: defaults, admission and validation by its kind.

Each kind that has rules of its own has them here in one ``Rules``; all the others are stored unchanged.
"""

from collections.abc import Callable, Iterable
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
from trio_sched.simulator.pod_defaults import (
    add_default_tolerations,
    admit_service_account,
    fill,
    fill_spec,
    quality_of_service,
)
from trio_sched.simulator.pod_group_rules import (
    admit_pod_group,
    pod_group_changes,
    pod_group_defaults,
    pod_group_problems,
)
from trio_sched.simulator.resource_types import ResourceType
from trio_sched.simulator.status_errors import FieldProblem, bad_value, forbidden
from trio_sched.simulator.validation import configuration, jobs, nodes, policies, quotas, services, storage, workloads
from trio_sched.simulator.validation.definitions import definition_problems
from trio_sched.simulator.validation.pod_changes import update_problems
from trio_sched.simulator.validation.pods import pod_problems
from trio_sched.simulator.validation.volume_claims import claim_problems as volume_claim_problems

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
    problems: Callable[[Json], Iterable[FieldProblem]] = lambda _fields: ()
    change_problems: Callable[[Json, Json], Iterable[FieldProblem]] = lambda _old, _new: ()
    status_problems: Callable[[Json, Json], Iterable[FieldProblem]] = lambda _old, _new: ()
    status_keeps_metadata: bool = False


def _pod_defaults(fields: Json) -> None:
    fill_spec(fields.setdefault("spec", {}))


def _admit_pod(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    spec = fields["spec"]
    _admit_priority(state, resource, fields, spec)
    admit_service_account(spec)
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
    fill(spec, "type", "ClusterIP")
    fill(spec, "sessionAffinity", "None")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["type"] in ("LoadBalancer", "NodePort"):
        fill(spec, "externalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or ():
        fill(port, "protocol", "TCP")
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port.get("port", 0)


def _admit_service(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    spec = fields["spec"]
    if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
        number = state.rng.randrange(1, 1 << 16)
        spec["clusterIP"] = f"10.96.{number >> 8}.{number & 255}"
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    fields["status"] = {"loadBalancer": {}}


def _template_defaults(fields: Json) -> None:
    template = fields.setdefault("spec", {}).setdefault("template", {})
    fill_spec(template.setdefault("spec", {}))


def _replica_set_defaults(fields: Json) -> None:
    _template_defaults(fields)
    fields["spec"].setdefault("replicas", 1)


def _replication_controller_defaults(fields: Json) -> None:
    spec = fields.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template = spec.get("template")
    if template is not None:
        fill_spec(template.setdefault("spec", {}))
        labels = (template.get("metadata") or {}).get("labels")
        if labels and not spec.get("selector"):
            spec["selector"] = dict(labels)


def _deployment_defaults(fields: Json) -> None:
    _replica_set_defaults(fields)
    spec = fields["spec"]
    strategy = spec.setdefault("strategy", {})
    fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        update = strategy.setdefault("rollingUpdate", {})
        update.setdefault("maxUnavailable", "25%")
        update.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def _stateful_set_defaults(fields: Json) -> None:
    _replica_set_defaults(fields)
    spec = fields["spec"]
    fill(spec, "podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    fill(retention, "whenDeleted", "Retain")
    fill(retention, "whenScaled", "Retain")
    spec.setdefault("revisionHistoryLimit", 10)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        _volume_defaults(claim)
        claim.setdefault("status", {"phase": "Pending"})


def _daemon_set_defaults(fields: Json) -> None:
    _template_defaults(fields)
    spec = fields["spec"]
    strategy = spec.setdefault("updateStrategy", {})
    fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        update = strategy.setdefault("rollingUpdate", {})
        update.setdefault("maxUnavailable", 1)
        update.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def _admit_workload(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    fields["status"] = {"replicas": 0}


def _job_defaults(fields: Json) -> None:
    _template_defaults(fields)
    spec = fields["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", (1 << 31) - 1 if "backoffLimitPerIndex" in spec else 6)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels and not (fields.get("metadata") or {}).get("labels"):
        fields.setdefault("metadata", {})["labels"] = dict(labels)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def _cron_job_defaults(fields: Json) -> None:
    spec = fields.setdefault("spec", {})
    fill(spec, "concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = spec.setdefault("jobTemplate", {}).setdefault("spec", {}).setdefault("template", {})
    fill_spec(template.setdefault("spec", {}))


def _limit_range_defaults(fields: Json) -> None:
    for limit in fields.setdefault("spec", {}).get("limits") or ():
        if limit.get("type") == "Container":
            default = limit.setdefault("default", {})
            for name, quantity in (limit.get("max") or {}).items():
                default.setdefault(name, quantity)
            request = limit.setdefault("defaultRequest", {})
            for name, quantity in (*default.items(), *(limit.get("min") or {}).items()):
                request.setdefault(name, quantity)


def _autoscaler_defaults(fields: Json) -> None:
    fields.setdefault("spec", {}).setdefault("minReplicas", 1)


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


def _with(
    problems: Callable[[Json], Iterable[FieldProblem]],
    changes: Callable[[Json, Json], Iterable[FieldProblem]] = lambda _old, _new: (),
) -> Callable[[Json, Json], Iterable[FieldProblem]]:
    """What is wrong with the new object, and with the change."""
    return lambda old, new: (*problems(new), *changes(old, new))


_RULES: dict[str, Rules] = {
    "pods": Rules(defaults=_pod_defaults, admit=_admit_pod, problems=pod_problems, change_problems=_pod_changes),
    "namespaces": Rules(admit=_admit_namespace),
    "nodes": Rules(
        defaults=_node_defaults,
        admit=_admit_node,
        problems=nodes.node_problems,
        change_problems=nodes.node_changes,
        status_problems=nodes.node_status_changes,
    ),
    "persistentvolumes": Rules(
        defaults=_persistent_volume_defaults,
        admit=_admit_volume,
        problems=storage.volume_problems,
        change_problems=storage.volume_changes,
    ),
    "persistentvolumeclaims": Rules(
        defaults=_volume_defaults,
        admit=_admit_volume,
        problems=volume_claim_problems,
        change_problems=storage.claim_changes,
    ),
    "storageclasses.storage.k8s.io": Rules(
        defaults=_storage_class_defaults,
        problems=storage.storage_class_problems,
        change_problems=storage.storage_class_changes,
    ),
    "csidrivers.storage.k8s.io": Rules(defaults=_csi_driver_defaults, problems=storage.csi_driver_problems),
    "csinodes.storage.k8s.io": Rules(problems=storage.csi_node_problems),
    "csistoragecapacities.storage.k8s.io": Rules(problems=storage.capacity_problems),
    "volumeattachments.storage.k8s.io": Rules(problems=storage.attachment_problems),
    "services": Rules(defaults=_service_defaults, admit=_admit_service, problems=services.service_problems),
    "configmaps": Rules(
        problems=configuration.config_map_problems,
        change_problems=_with(configuration.config_map_problems, configuration.frozen_changes),
    ),
    "secrets": Rules(
        problems=configuration.secret_problems,
        change_problems=_with(configuration.secret_problems, configuration.frozen_changes),
    ),
    "resourcequotas": Rules(problems=quotas.quota_problems, change_problems=_with(quotas.quota_problems)),
    "limitranges": Rules(
        defaults=_limit_range_defaults,
        problems=quotas.limit_range_problems,
        change_problems=_with(quotas.limit_range_problems),
    ),
    "customresourcedefinitions.apiextensions.k8s.io": Rules(problems=definition_problems),
    "deployments.apps": Rules(
        defaults=_deployment_defaults,
        admit=_admit_workload,
        problems=workloads.deployment_problems,
        change_problems=_with(workloads.deployment_problems, workloads.selector_changes),
    ),
    "replicasets.apps": Rules(
        defaults=_replica_set_defaults,
        admit=_admit_workload,
        problems=workloads.replica_set_problems,
        change_problems=_with(workloads.replica_set_problems, workloads.selector_changes),
    ),
    "statefulsets.apps": Rules(
        defaults=_stateful_set_defaults,
        admit=_admit_workload,
        problems=workloads.stateful_set_problems,
        change_problems=_with(workloads.stateful_set_problems, workloads.stateful_set_changes),
    ),
    "daemonsets.apps": Rules(
        defaults=_daemon_set_defaults,
        problems=workloads.daemon_set_problems,
        change_problems=_with(workloads.daemon_set_problems, workloads.selector_changes),
    ),
    "replicationcontrollers": Rules(
        defaults=_replication_controller_defaults,
        admit=_admit_workload,
        problems=workloads.replication_controller_problems,
        change_problems=_with(workloads.replication_controller_problems),
    ),
    "jobs.batch": Rules(
        defaults=_job_defaults,
        admit=_admit_job,
        problems=jobs.job_problems,
        change_problems=_with(jobs.job_problems, jobs.job_changes),
    ),
    "cronjobs.batch": Rules(
        defaults=_cron_job_defaults,
        problems=jobs.cron_job_problems,
        change_problems=_with(jobs.cron_job_problems),
    ),
    "horizontalpodautoscalers.autoscaling": Rules(
        defaults=_autoscaler_defaults,
        problems=policies.autoscaler_problems,
        change_problems=_with(policies.autoscaler_problems),
    ),
    "leases.coordination.k8s.io": Rules(
        problems=policies.lease_problems, change_problems=_with(policies.lease_problems)
    ),
    "runtimeclasses.node.k8s.io": Rules(
        problems=policies.runtime_class_problems, change_problems=policies.runtime_class_changes
    ),
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
    "poddisruptionbudgets.policy": Rules(
        defaults=_budget_defaults,
        admit=_admit_budget,
        problems=policies.budget_problems,
        change_problems=_with(policies.budget_problems),
    ),
    "priorityclasses.scheduling.k8s.io": Rules(
        defaults=_priority_class_defaults,
        problems=policies.priority_class_problems,
        change_problems=policies.priority_class_changes,
    ),
}

_NO_RULES = Rules()


def rules_of(resource: ResourceType) -> Rules:
    """How objects of *resource* are treated."""
    return _RULES.get(resource.collection, _NO_RULES)
