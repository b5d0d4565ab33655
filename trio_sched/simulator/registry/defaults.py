"""The defaults that the API server gives new objects of each kind; giving them twice changes nothing.

Source: the ``defaults.go`` of each group of Kubernetes.
"""

from __future__ import annotations

from trio_sched.documents.json_values import Json, dicts
from trio_sched.simulator.conversion import event_shapes
from trio_sched.simulator.pods.pod_defaults import fill, fill_pod, fill_spec


def pod_defaults(fields: Json) -> None:
    """A pod."""
    fill_pod(fields.setdefault("spec", {}))


def node_defaults(fields: Json) -> None:
    """A node."""
    fields.setdefault("spec", {})
    status = fields.get("status") or {}
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def volume_defaults(fields: Json) -> None:
    """A volume."""
    fields.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def persistent_volume_defaults(fields: Json) -> None:
    """A persistent volume."""
    volume_defaults(fields)
    fields["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")


def storage_class_defaults(fields: Json) -> None:
    """A storage class."""
    fields.setdefault("reclaimPolicy", "Delete")
    fields.setdefault("volumeBindingMode", "Immediate")


def csi_driver_defaults(fields: Json) -> None:
    """A csi driver."""
    spec = fields.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def pod_template_defaults(fields: Json) -> None:
    """A template on its own."""
    fill_spec(fields.setdefault("template", {}).setdefault("spec", {}))


def template_defaults(fields: Json) -> None:
    """A template."""
    template = fields.setdefault("spec", {}).setdefault("template", {})
    fill_spec(template.setdefault("spec", {}))


def replica_set_defaults(fields: Json) -> None:
    """A replica set."""
    template_defaults(fields)
    fields["spec"].setdefault("replicas", 1)


def replication_controller_defaults(fields: Json) -> None:
    """A replication controller."""
    spec = fields.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template = spec.get("template")
    if template is not None:
        fill_spec(template.setdefault("spec", {}))
        labels = (template.get("metadata") or {}).get("labels")
        if labels and not spec.get("selector"):
            spec["selector"] = dict(labels)


def deployment_defaults(fields: Json) -> None:
    """A deployment."""
    replica_set_defaults(fields)
    spec = fields["spec"]
    strategy = spec.setdefault("strategy", {})
    fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        update = strategy.setdefault("rollingUpdate", {})
        update.setdefault("maxUnavailable", "25%")
        update.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def stateful_set_defaults(fields: Json) -> None:
    """A stateful set."""
    replica_set_defaults(fields)
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
        volume_defaults(claim)
        claim.setdefault("status", {"phase": "Pending"})


def daemon_set_defaults(fields: Json) -> None:
    """A daemon set."""
    template_defaults(fields)
    spec = fields["spec"]
    strategy = spec.setdefault("updateStrategy", {})
    fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        update = strategy.setdefault("rollingUpdate", {})
        update.setdefault("maxUnavailable", 1)
        update.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def job_defaults(fields: Json) -> None:
    """A job."""
    template_defaults(fields)
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


def cron_job_defaults(fields: Json) -> None:
    """A cron job."""
    spec = fields.setdefault("spec", {})
    fill(spec, "concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = spec.setdefault("jobTemplate", {}).setdefault("spec", {}).setdefault("template", {})
    fill_spec(template.setdefault("spec", {}))


def limit_range_defaults(fields: Json) -> None:
    """A limit range."""
    for limit in fields.setdefault("spec", {}).get("limits") or ():
        if limit.get("type") == "Container":
            default = limit.setdefault("default", {})
            for name, quantity in (limit.get("max") or {}).items():
                default.setdefault(name, quantity)
            request = limit.setdefault("defaultRequest", {})
            for name, quantity in (*default.items(), *(limit.get("min") or {}).items()):
                request.setdefault(name, quantity)


def event_defaults(fields: Json) -> None:
    """A event."""
    for name, value in event_shapes.CORE_ALWAYS.items():
        fields.setdefault(name, value)


def priority_class_defaults(fields: Json) -> None:
    """A priority class."""
    fields.setdefault("value", 0)
    fields.setdefault("preemptionPolicy", "PreemptLowerPriority")


def claim_defaults(fields: Json) -> None:
    """A claim of devices."""
    _fill_claim_spec(fields.setdefault("spec", {}))


def claim_template_defaults(fields: Json) -> None:
    """A template of such claims."""
    _fill_claim_spec(fields.setdefault("spec", {}).setdefault("spec", {}))


def _fill_claim_spec(spec: Json) -> None:
    for request in dicts((spec.get("devices") or {}).get("requests")):
        for wanted in (request.get("exactly"), *dicts(request.get("firstAvailable"))):
            if isinstance(wanted, dict):
                fill(wanted, "allocationMode", "ExactCount")
                if wanted["allocationMode"] == "ExactCount" and not wanted.get("count"):
                    wanted["count"] = 1
                for toleration in dicts(wanted.get("tolerations")):
                    fill(toleration, "operator", "Equal")


def pod_group_defaults(fields: Json) -> None:
    """A group of pods."""
    fields.setdefault("spec", {}).setdefault("disruptionMode", "Pod")


def composite_pod_group_defaults(fields: Json) -> None:
    """A group of groups of pods."""
    fields.setdefault("spec", {}).setdefault("disruptionMode", {"single": {}})
