"""Objects of API versions that API servers served once, as the dumps of older clusters have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trio_sched.simulator.raw_objects import Json

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
    "resource.k8s.io/v1": (
        ("resource.k8s.io/v1beta1",),
        ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
    ),
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
    reshape = _RESHAPED.get((fields["apiVersion"], fields["kind"]))
    return {**(reshape(fields) if reshape else fields), "apiVersion": now}


def _budget(fields: Json) -> Json:
    """An empty selector selected no pod; in v1 it selects all of them."""
    spec = fields.get("spec")
    if not isinstance(spec, dict) or spec.get("selector") != {}:
        return fields
    return {**fields, "spec": {name: value for name, value in spec.items() if name != "selector"}}


def _each(change: Callable[[Json], Json], *path: str) -> Callable[[Json], Json]:
    """A function that applies *change* to the mappings in the list at *path*."""

    def reshape(fields: Json) -> Json:
        reshaped: Json = _changed(fields, path, change)
        return reshaped

    return reshape


def _request(request: Json) -> Json:
    """What a request wants of one kind of devices is in ``exactly`` now."""
    if not request.get("deviceClassName"):  # it has firstAvailable
        return {name: value for name, value in request.items() if name != "deviceClassName"}
    return {"name": request.get("name"), "exactly": {name: value for name, value in request.items() if name != "name"}}


def _device(device: Json) -> Json:
    """What a device has is no longer in ``basic``."""
    basic = device.get("basic")
    if not isinstance(basic, dict):
        return device
    return {**{name: value for name, value in device.items() if name != "basic"}, **basic}


def _changed(value: Any, path: tuple[str, ...], change: Callable[[Json], Json]) -> Any:
    """*value* with *change* applied to the mappings in the list at *path*; whatever has another type stays."""
    if not path:
        if not isinstance(value, list):
            return value
        return [change(one) if isinstance(one, dict) else one for one in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {**value, path[0]: _changed(value[path[0]], path[1:], change)}


_RESHAPED: Final[dict[tuple[str, str], Callable[[Json], Json]]] = {
    ("policy/v1beta1", "PodDisruptionBudget"): _budget,
    ("resource.k8s.io/v1beta1", "ResourceClaim"): _each(_request, "spec", "devices", "requests"),
    ("resource.k8s.io/v1beta1", "ResourceClaimTemplate"): _each(_request, "spec", "spec", "devices", "requests"),
    ("resource.k8s.io/v1beta1", "ResourceSlice"): _each(_device, "spec", "devices"),
}
