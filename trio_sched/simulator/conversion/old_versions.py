"""Objects of API versions that API servers served once, as the dumps of older clusters have them."""

from __future__ import annotations

from typing import Final

from trio_sched.documents.json_values import Json

_MOVED: Final = {
    "apps/v1": (
        ("extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"),
        ("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    ),
    "batch/v1": (("batch/v1beta1", "batch/v2alpha1"), ("CronJob",)),
    "coordination.k8s.io/v1": (("coordination.k8s.io/v1beta1",), ("Lease",)),
    "networking.k8s.io/v1": (("extensions/v1beta1",), ("NetworkPolicy",)),
    "node.k8s.io/v1": (("node.k8s.io/v1beta1",), ("RuntimeClass",)),
    "policy/v1": (("policy/v1beta1",), ("PodDisruptionBudget",)),
    "scheduling.k8s.io/v1": (("scheduling.k8s.io/v1alpha1", "scheduling.k8s.io/v1beta1"), ("PriorityClass",)),
    "storage.k8s.io/v1": (
        ("storage.k8s.io/v1alpha1", "storage.k8s.io/v1beta1"),
        ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"),
    ),
}
_NOW: Final = {(old, kind): new for new, (olds, kinds) in _MOVED.items() for old in olds for kind in kinds}


def in_current_version(fields: Json) -> Json | None:
    """*fields* of an object as the version that is served now has them; None if its kind has none of the same shape.

    What is not of the expected type stays as it is, for the checks that follow.
    """
    now = _NOW.get((fields["apiVersion"], fields["kind"]))
    if now is None:
        return None
    return {**(_budget(fields) if now == "policy/v1" else fields), "apiVersion": now}


def _budget(fields: Json) -> Json:
    """An empty selector selected no pod; in v1 it selects all of them."""
    spec = fields.get("spec")
    if not isinstance(spec, dict) or spec.get("selector") != {}:
        return fields
    return {**fields, "spec": {name: value for name, value in spec.items() if name != "selector"}}
