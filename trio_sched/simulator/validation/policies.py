"""Rules of disruption budgets, priority classes, runtime classes and leases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.resources import container_resource_problems, quantity_problems
from trio_sched.simulator.validation.core.taints import toleration_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.conditions import condition_problems
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import immutable, label_problems
from trio_sched.simulator.validation.meta.numbers import amount_problems, negative_problems
from trio_sched.simulator.validation.meta.selectors import label_selector_problems

_SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_HIGHEST: Final = 1_000_000_000


def budget_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new PodDisruptionBudget."""
    spec = fields.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield bad_value("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        if spec.get(field) is not None:
            yield from amount_problems(spec[field], f"spec.{field}")
    yield from label_selector_problems(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        yield unsupported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def budget_status_problems(_old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the status of a PodDisruptionBudget."""
    status = new.get("status") or {}
    yield from condition_problems(status.get("conditions") or [], "status.conditions")
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    yield from negative_problems(status, "status", *counts)


def priority_class_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new PriorityClass."""
    name, value, policy = fields["metadata"].get("name") or "", fields.get("value", 0), fields.get("preemptionPolicy")
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != value or fields.get("globalDefault"):
            detail = "priority class names with 'system-' prefix are reserved for system use only"
            yield forbidden_field("metadata.name", f"{detail}. error: {name} is not a known system priority class")
    elif value > _HIGHEST:
        yield forbidden_field("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    if policy == "":
        yield required("preemptionPolicy")
    elif policy not in (None, "PreemptLowerPriority", "Never"):
        yield unsupported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def priority_class_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a PriorityClass."""
    if old.get("value", 0) != new.get("value", 0):
        yield forbidden_field("value", "may not be changed in an update.")
    yield from immutable(old, new, "preemptionPolicy", path="")


def runtime_class_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new RuntimeClass."""
    handler = fields.get("handler") or ""
    if not handler:
        yield required("handler")
    elif problem := names.dns_label(handler):
        yield bad_value("handler", handler, problem)
    for name, quantity in ((fields.get("overhead") or {}).get("podFixed") or {}).items():
        path = f"overhead.podFixed[{name}]"
        yield from container_resource_problems(name, path)
        yield from quantity_problems(name, quantity, path)
    scheduling = fields.get("scheduling") or {}
    yield from label_problems(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
    tolerations = scheduling.get("tolerations") or []
    yield from toleration_problems(tolerations, "scheduling.tolerations")
    for index, toleration in enumerate(tolerations):
        if toleration in tolerations[:index]:
            yield bad_value(f"scheduling.tolerations[{index}]", toleration, "tolerations must be unique")


def runtime_class_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a RuntimeClass."""
    yield from immutable(old, new, "handler", path="")


def lease_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new Lease."""
    spec = fields.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield bad_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from negative_problems(spec, "spec", "leaseTransitions")
