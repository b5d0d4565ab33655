"""Versions whose objects have another shape than those that are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.conversion import device_shapes, event_shapes, pod_group_shapes
from trio_sched.simulator.storage.resource_types import ResourceType


@frozen
class Shape:
    """How the objects of one version are written, in terms of those that are stored; functions change nothing.

    Attributes:
        is_checked_as_stored: `to_stored` takes objects of any form, and what it returns is checked.
    """

    to_stored: Callable[[Json], Json]
    from_stored: Callable[[Json], Json]
    is_checked_as_stored: bool = False


def _autoscaler_to_stored(fields: Json) -> Json:
    spec = dict(fields.get("spec") or {})
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return {**fields, "spec": spec}


def _autoscaler_from_stored(fields: Json) -> Json:
    spec = dict(fields.get("spec") or {})
    for metric in spec.pop("metrics", None) or ():
        resource = metric.get("resource") or {}
        if resource.get("name") == "cpu" and "averageUtilization" in (resource.get("target") or {}):
            spec["targetCPUUtilizationPercentage"] = resource["target"]["averageUtilization"]
    return {**fields, "spec": spec}


_POD_GROUP: Final = Shape(pod_group_shapes.group_to_stored, pod_group_shapes.group_from_stored, True)
_WORKLOAD: Final = Shape(pod_group_shapes.workload_to_stored, pod_group_shapes.workload_from_stored, True)
_CLAIM: Final = Shape(device_shapes.claim_to_stored, device_shapes.claim_from_stored, True)
_TEMPLATE: Final = Shape(device_shapes.template_to_stored, device_shapes.template_from_stored, True)
_SHAPES: Final[Mapping[tuple[str, str], Shape]] = {
    ("events.k8s.io/v1", "Event"): Shape(event_shapes.to_core, event_shapes.from_core),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): Shape(_autoscaler_to_stored, _autoscaler_from_stored),
    ("resource.k8s.io/v1alpha3", "ResourceClaim"): _CLAIM,
    ("resource.k8s.io/v1alpha3", "ResourceClaimTemplate"): _TEMPLATE,
    ("resource.k8s.io/v1alpha3", "ResourceSlice"): Shape(
        device_shapes.slice_of_amounts_to_stored, device_shapes.slice_of_amounts_from_stored, True
    ),
    ("resource.k8s.io/v1beta1", "ResourceClaim"): _CLAIM,
    ("resource.k8s.io/v1beta1", "ResourceClaimTemplate"): _TEMPLATE,
    ("resource.k8s.io/v1beta1", "ResourceSlice"): Shape(
        device_shapes.slice_to_stored, device_shapes.slice_from_stored, True
    ),
    ("scheduling.k8s.io/v1alpha3", "PodGroup"): _POD_GROUP,
    ("scheduling.k8s.io/v1beta1", "PodGroup"): _POD_GROUP,
    ("scheduling.k8s.io/v1alpha3", "Workload"): _WORKLOAD,
    ("scheduling.k8s.io/v1beta1", "Workload"): _WORKLOAD,
}


def shape_of(resource: ResourceType) -> Shape | None:
    """The shape of the objects of *resource*; None: they are stored as they are."""
    return _SHAPES.get((resource.api_version, resource.kind))


def as_checked(resource: ResourceType, fields: Json) -> Json:
    """*fields* of *resource*, which may have any form, as `ResourceType.message` describes them."""
    shape = shape_of(resource)
    return shape.to_stored(fields) if shape is not None and shape.is_checked_as_stored else fields


def as_stored(resource: ResourceType, checked: Json) -> Json:
    """The fields that `as_checked` has returned, and that were found right, as they are stored."""
    shape = shape_of(resource)
    return checked if shape is None or shape.is_checked_as_stored else shape.to_stored(checked)


def reshaped(resource: ResourceType, other: ResourceType, fields: Json) -> Json:
    """*fields* of *resource* as *other*, another version of it, has them."""
    if resource is other:
        return fields
    shown = from_stored(other, as_stored(resource, as_checked(resource, fields)))
    return {**shown, "apiVersion": other.api_version} if "apiVersion" in fields else shown


def from_stored(resource: ResourceType, fields: Json) -> Json:
    """Stored *fields* as *resource* has them."""
    shape = shape_of(resource)
    return fields if shape is None else shape.from_stored(fields)
