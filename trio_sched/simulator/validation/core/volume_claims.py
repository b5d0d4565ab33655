"""Rules of PersistentVolumeClaims and of templates of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.validation.core.resources import is_native, quantity_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import immutable
from trio_sched.simulator.validation.meta.selectors import label_selector_problems

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_RESIZE_STATUSES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
VOLUME_MODES: Final = ("Block", "Filesystem")


def claim_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new claim."""
    yield from claim_spec_problems(_without_dropped_sources(fields.get("spec") or {}), "spec")


def _without_dropped_sources(spec: Json) -> Json:
    """*spec* without the data sources that the API server drops from claims, though not from templates of claims."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace"):
        reference = None  # the feature gate of sources in other namespaces is off by default
    if source is not None and reference is None:
        kind = (source.get("apiGroup") or "", source.get("kind"))
        if kind not in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")):
            source = None
    return {**spec, "dataSource": source, "dataSourceRef": reference}


def claim_spec_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the spec of a claim or of a template of one."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from access_mode_problems(modes, f"{path}.accessModes")
    yield from label_selector_problems(spec.get("selector"), f"{path}.selector")
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield required(f"{path}.resources[storage]")
    else:
        yield from positive_problems(size, f"{path}.resources[storage]")
    for field in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(field) and (problem := names.subdomain(spec[field])):
            yield bad_value(f"{path}.{field}", spec[field], problem)
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in VOLUME_MODES:
        yield unsupported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for field, one in (("dataSource", source), ("dataSourceRef", reference)):
        if one is not None:
            yield from _source_problems(one, f"{path}.{field}")
    if source is not None and reference is not None:
        if reference.get("namespace"):
            detail = "may not be specified when dataSourceRef.namespace is specified"
            yield bad_value(path, f"{path}.dataSource", detail)
        elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
            yield bad_value(path, f"{path}.dataSource", "must match dataSourceRef")


def _source_problems(source: Json, path: str) -> Iterator[FieldProblem]:
    for field in ("name", "kind"):
        if not source.get(field):
            yield required(f"{path}.{field}")
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        yield bad_value(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if group and (problem := names.subdomain(group)):
        yield bad_value(f"{path}.apiGroup", group, problem)
    if source.get("namespace") and (problem := names.dns_label(source["namespace"])):
        yield bad_value(f"{path}.namespace", source["namespace"], problem)


def claim_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a PersistentVolumeClaim."""
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    yield from immutable(before, after, "volumeMode")
    had, has = ((spec.get("resources") or {}).get("requests", {}).get("storage", 0) for spec in (before, after))
    is_bound = (old.get("status") or {}).get("phase") == "Bound"
    if is_bound and parse_nano(has) < parse_nano(had):
        yield forbidden_field("spec.resources.requests.storage", "field can not be less than status.capacity")
    for spec in (before, after):
        if is_bound:
            spec.pop("resources", None)
        spec.pop("volumeAttributesClassName", None)
    if not before.get("volumeName"):
        before["volumeName"] = after.get("volumeName")
    if before.get("storageClassName") is None:
        before["storageClassName"] = after.get("storageClassName")
    if {k: v for k, v in before.items() if v is not None} != {k: v for k, v in after.items() if v is not None}:
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden_field("spec", detail)


def claim_status_problems(_old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the status of a PersistentVolumeClaim."""
    status = new.get("status") or {}
    for name, quantity in (status.get("capacity") or {}).items():
        if parse_nano(quantity) < 0:
            yield bad_value(f"status.capacity[{name}]", quantity, "must be a valid resource quantity")
    path = "status.allocatedResourceStatuses"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        yield from _claimed_resource_problems(name, path)
        if state not in _RESIZE_STATUSES:
            yield unsupported(path, name, _RESIZE_STATUSES)
    path = "status.allocatedResources"
    for name, quantity in (status.get("allocatedResources") or {}).items():
        wrong = list(_claimed_resource_problems(name, path))
        yield from wrong or quantity_problems("storage", quantity, f"{path}[{name}]")


def _claimed_resource_problems(name: str, path: str) -> Iterator[FieldProblem]:
    if problem := names.qualified_name(name):
        yield bad_value(path, name, problem)
    elif is_native(name) and name != "storage":
        yield unsupported(path, name, ("storage",))


def access_mode_problems(modes: list[str], path: str) -> Iterator[FieldProblem]:
    """What is wrong with access modes."""
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield unsupported(path, mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and {*modes} & {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"}:
        yield forbidden_field(path, "may not use ReadWriteOncePod with other access modes")


def positive_problems(quantity: Any, path: str) -> Iterator[FieldProblem]:
    """Whether *quantity* is no more than zero."""
    if parse_nano(quantity) <= 0:
        yield bad_value(path, str(quantity), "must be greater than zero")
