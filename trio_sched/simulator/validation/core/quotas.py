"""Rules of ResourceQuotas and LimitRanges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import NANO, parse_nano
from trio_sched.simulator.validation.core.resources import (
    container_resource_problems,
    is_huge_page,
    is_native,
    quantity_problems,
    quota_resource_problems,
    resource_name_problems,
)
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
)

_SCOPES: Final = frozenset(
    {"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"}
    | {"VolumeAttributesClass"}
)
_COMPUTE: Final = frozenset(
    {"pods", "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage"}
    | {"limits.cpu", "limits.memory", "limits.ephemeral-storage"}
)
_CONFLICTS: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_LIMIT_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")


def quota_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new ResourceQuota."""
    spec = fields.get("spec") or {}
    hard = spec.get("hard") or {}
    for name, quantity in hard.items():
        yield from quota_resource_problems(name, f"spec.hard[{name}]")
        yield from quantity_problems(name, quantity, f"spec.hard[{name}]")
    scopes = spec.get("scopes") or []
    for scope in scopes:
        yield from _scope_problems(scope, hard, "spec.scopes", scopes)
    if any(pair <= set(scopes) for pair in _CONFLICTS):
        yield bad_value("spec.scopes", scopes, "conflicting scopes")
    selector = spec.get("scopeSelector")
    if selector is None:
        return
    path, requirements = "spec.scopeSelector.matchExpressions", selector.get("matchExpressions") or []
    for requirement in requirements:
        yield from _scope_requirement_problems(requirement, hard, path, selector)
    if any(pair <= {one.get("scopeName") for one in requirements} for pair in _CONFLICTS):
        yield bad_value(path, scopes, "conflicting scopes")


def _scope_problems(scope: str, hard: Json, path: str, shown: Any) -> Iterator[FieldProblem]:
    if scope not in _SCOPES:
        yield bad_value(path, shown, "unsupported scope")
    for name in sorted(hard):
        if "/" in name or _is_valid_for(scope, name):
            continue
        if not list(quota_resource_problems(name, "")):
            yield bad_value(path, shown, "unsupported scope applied to resource")


def _is_valid_for(scope: str, name: str) -> bool:
    match scope:
        case "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity":
            return name in _COMPUTE or is_huge_page(name.removeprefix("requests."))
        case "BestEffort":
            return name == "pods"
        case "VolumeAttributesClass":
            return name in ("persistentvolumeclaims", "requests.storage")
    return True


def _scope_requirement_problems(requirement: Json, hard: Json, path: str, selector: Json) -> Iterator[FieldProblem]:
    scope, operator = requirement.get("scopeName") or "", requirement.get("operator") or ""
    values = requirement.get("values") or []
    if scope not in _SCOPES:
        yield bad_value(f"{path}.scopeName", scope, "unsupported scope")
    else:
        yield from _scope_problems(scope, hard, path, selector)
    if scope in _SCOPES - {"PriorityClass", "VolumeAttributesClass"} and operator != "Exists":
        detail = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
            "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
            "ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        yield bad_value(f"{path}.operator", operator, detail)
    match operator:
        case "In" | "NotIn":
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required(f"{path}.values", detail)
        case "Exists" | "DoesNotExist":
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield bad_value(f"{path}.values", values, detail)
        case _:
            yield bad_value(f"{path}.operator", operator, "not a valid selector operator")


def quota_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a ResourceQuota."""
    before, after = ((fields.get("spec") or {}).get("scopes") or [] for fields in (old, new))
    if set(before) != set(after):
        yield bad_value("spec.scopes", after, "field is immutable")


def quota_status_problems(_old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the status of a ResourceQuota."""
    for part in ("hard", "used"):
        for name, quantity in ((new.get("status") or {}).get(part) or {}).items():
            yield from quota_resource_problems(name, f"status.{part}[{name}]")
            yield from quantity_problems(name, quantity, f"status.{part}[{name}]")


def limit_range_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new LimitRange."""
    seen: set[str] = set()
    for index, limit in enumerate((fields.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit.get("type") or ""
        if problem := names.qualified_name(kind):
            yield bad_value(f"{path}.type", kind, problem)
        elif "/" not in kind and kind not in _LIMIT_TYPES:
            yield bad_value(f"{path}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            yield duplicate(f"{path}.type", kind)
        seen.add(kind)
        yield from _limit_problems(limit, kind, path)


def _limit_problems(limit: Json, kind: str, path: str) -> Iterator[FieldProblem]:
    check = container_resource_problems if kind in ("Pod", "Container") else resource_name_problems
    given: dict[str, dict[str, int]] = {}
    for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        quantities = limit.get(field) or {}
        if kind == "Pod" and field.startswith("default"):
            if quantities:
                yield forbidden_field(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            continue
        for name in quantities:
            yield from check(name, f"{path}.{field}[{name}]")
        given[field] = {name: parse_nano(quantity) for name, quantity in quantities.items()}
    if kind == "PersistentVolumeClaim" and not {"storage"} & {*(limit.get("min") or ()), *(limit.get("max") or ())}:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", detail)
    pairs = (
        ("min", "max", "min", "min value {} is greater than max value {}"),
        ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
        ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "default request value {} is greater than default limit value {}",
        ),
        ("min", "default", "default", "min value {} is greater than default value {}"),
        ("default", "max", "default", "default value {} is greater than max value {}"),
    )
    for less, more, field, text in pairs:
        for name in given.get(less, {}).keys() & given.get(more, {}).keys():
            if given[less][name] > given[more][name]:
                shown = text.format(limit[less][name], limit[more][name])
                yield bad_value(f"{path}.{field}[{name}]", str(limit[field][name]), shown)
    for name, ratio in given["maxLimitRequestRatio"].items():
        where, shown = f"{path}.maxLimitRequestRatio[{name}]", limit["maxLimitRequestRatio"][name]
        if ratio < NANO:
            yield bad_value(where, str(shown), f"ratio {shown} is less than 1")
        low, high = given["min"].get(name), given["max"].get(name)
        if low and high is not None and ratio / NANO > high / low:
            yield bad_value(where, str(shown), f"ratio {shown} is greater than max/min = {high / low:f}")
    for name in given.get("default", {}).keys() & given.get("defaultRequest", {}).keys():
        can_overcommit = is_native(name) and not is_huge_page(name)
        default, request = limit["default"][name], limit["defaultRequest"][name]
        if not can_overcommit and given["default"][name] != given["defaultRequest"][name]:
            detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
            yield bad_value(f"{path}.defaultRequest[{name}]", str(request), detail)
