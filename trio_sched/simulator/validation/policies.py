"""Rules of disruption budgets, priority classes, runtime classes, autoscalers and leases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.simulator.field_problems import FieldProblem, bad_value, forbidden_field, required, unsupported
from trio_sched.simulator.validation import names
from trio_sched.simulator.validation.metadata import immutable, label_problems
from trio_sched.simulator.validation.numbers import amount_problems, negative_problems
from trio_sched.simulator.validation.pod_scheduling import toleration_problems
from trio_sched.simulator.validation.resources import container_resource_problems, quantity_problems
from trio_sched.simulator.validation.selectors import label_selector_problems
from trio_sched.simulator.validation.shapes import Json

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


def autoscaler_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new HorizontalPodAutoscaler."""
    spec = fields.get("spec") or {}
    least, most, target = spec.get("minReplicas", 1), spec.get("maxReplicas") or 0, spec.get("scaleTargetRef") or {}
    metrics = spec.get("metrics") or []
    can_be_zero = any(metric.get("type") in ("Object", "External") for metric in metrics)
    if least < (0 if can_be_zero else 1):
        yield bad_value("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield bad_value("spec.maxReplicas", most, "must be greater than 0")
    if most < least:
        yield bad_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    for field in ("kind", "name"):
        value = target.get(field) or ""
        if not value:
            yield required(f"spec.scaleTargetRef.{field}")
        elif problem := names.path_segment(value):
            yield bad_value(f"spec.scaleTargetRef.{field}", value, problem)
    version = target.get("apiVersion") or ""
    if version != "v1" and not (version.count("/") == 1 and version.partition("/")[0]):
        yield bad_value("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")
    for index, metric in enumerate(metrics):
        yield from _metric_problems(metric, f"spec.metrics[{index}]")


def _metric_problems(metric: Json, path: str) -> Iterator[FieldProblem]:
    kinds = {"Object": "object", "Pods": "pods", "Resource": "resource", "External": "external"}
    kinds["ContainerResource"] = "containerResource"
    kind = metric.get("type") or ""
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
        return
    if kind not in kinds:
        yield unsupported(f"{path}.type", kind, sorted(kinds))
        return
    source, where = metric.get(kinds[kind]), f"{path}.{kinds[kind]}"
    if source is None:
        yield required(where, "must populate information for the given metric source")
        return
    for other in kinds.values():
        if other != kinds[kind] and metric.get(other) is not None:
            detail = "must populate the given metric source only"
            yield forbidden_field(f"{path}.{other}", detail)
    if kind in ("Resource", "ContainerResource") and not source.get("name"):
        yield required(f"{where}.name", "must specify a resource name")
    if kind == "ContainerResource" and not source.get("container"):
        yield required(f"{where}.container", "must specify a container")
    if kind in ("Pods", "Object", "External") and not (source.get("metric") or {}).get("name"):
        yield required(f"{where}.metric.name", "must specify a metric name")
    target = source.get("target") or {}
    given = [name for name in ("value", "averageValue", "averageUtilization") if target.get(name) is not None]
    if target.get("type") not in ("Utilization", "Value", "AverageValue"):
        choices = ("Utilization", "Value", "AverageValue")
        yield unsupported(f"{where}.target.type", target.get("type") or "", choices)
    if not given:
        yield required(f"{where}.target", "must set either a target raw value or a target utilization")
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        yield bad_value(f"{where}.target.averageUtilization", utilization, "must be greater than 0")


def lease_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new Lease."""
    spec = fields.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield bad_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from negative_problems(spec, "spec", "leaseTransitions")
