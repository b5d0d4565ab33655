"""Versions whose objects have another shape than those that are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from attrs import frozen

from trio_sched.simulator.conversion import event_shapes
from trio_sched.simulator.raw_objects import Json
from trio_sched.simulator.storage.resource_types import ResourceType


@frozen
class Shape:
    """How the objects of one version are written, in terms of those that are stored; functions change nothing."""

    to_stored: Callable[[Json], Json]
    from_stored: Callable[[Json], Json]


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


_SHAPES: Final[Mapping[str, Shape]] = {
    "events.k8s.io/v1": Shape(event_shapes.to_core, event_shapes.from_core),
    "autoscaling/v1": Shape(_autoscaler_to_stored, _autoscaler_from_stored),
}


def shape_of(resource: ResourceType) -> Shape | None:
    """The shape of the objects of *resource*; None: they are stored as they are."""
    return _SHAPES.get(resource.api_version)


def to_stored(resource: ResourceType, fields: Json) -> Json:
    """*fields* of *resource* as they are stored."""
    shape = shape_of(resource)
    return fields if shape is None else shape.to_stored(fields)


def from_stored(resource: ResourceType, fields: Json) -> Json:
    """Stored *fields* as *resource* has them."""
    shape = shape_of(resource)
    return fields if shape is None else shape.from_stored(fields)
