"""Rules of HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from trio_sched.objects.quantity import parse_nano
from trio_sched.simulator.validation.core.resources import container_resource_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.shapes import Json

_SOURCES: Final[Mapping[str, str]] = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""Types of metrics, and the field that describes one; in the order in which the API server looks at them."""
_SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
_MAX_WINDOW_SECONDS: Final = 3600
_MAX_PERIOD_SECONDS: Final = 1800


def autoscaler_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a HorizontalPodAutoscaler."""
    spec = fields.get("spec") or {}
    least, most, metrics = spec.get("minReplicas", 1), spec.get("maxReplicas") or 0, spec.get("metrics") or []
    if least < 1:  # the feature gate of scaling to zero is off by default
        yield bad_value("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield bad_value("spec.maxReplicas", most, "must be greater than 0")
    if most < least:
        yield bad_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    yield from _reference_problems(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    for index, metric in enumerate(metrics):
        yield from _metric_problems(metric, f"spec.metrics[{index}]")
    for direction in ("scaleUp", "scaleDown"):
        if rules := (spec.get("behavior") or {}).get(direction):
            yield from _behavior_problems(rules, f"spec.behavior.{direction}")


def _reference_problems(reference: Json, path: str, *, needs_group: bool = True) -> Iterator[FieldProblem]:
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        if not value:
            yield required(f"{path}.{field}")
        elif problem := names.path_segment(value):
            yield bad_value(f"{path}.{field}", value, problem)
    version = reference.get("apiVersion") or ""
    if version.count("/") > 1:
        yield bad_value(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif needs_group and reference.get("kind") != "ReplicationController" and not version.rpartition("/")[0]:
        yield bad_value(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _metric_problems(metric: Json, path: str) -> Iterator[FieldProblem]:
    kind = metric.get("type") or ""
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    if kind not in _SOURCES:
        yield unsupported(f"{path}.type", kind, sorted(_SOURCES))
    given = [field for field in _SOURCES.values() if metric.get(field) is not None]
    if given:  # the first one only is looked at
        yield from _SOURCE_CHECKS[given[0]](metric[given[0]], f"{path}.{given[0]}")
    wanted = _SOURCES.get(kind)
    if wanted and wanted not in given:
        yield required(f"{path}.{wanted}", "must populate information for the given metric source")
    if len(given) > 1:
        for field in given:
            if field != wanted:
                yield forbidden_field(f"{path}.{field}", "must populate the given metric source only")


def _object_problems(source: Json, path: str) -> Iterator[FieldProblem]:
    yield from _reference_problems(source.get("describedObject") or {}, f"{path}.describedObject", needs_group=False)
    yield from _name_problems(source, path)
    yield from _target_problems(source, path, "value", "averageValue")


def _external_problems(source: Json, path: str) -> Iterator[FieldProblem]:
    yield from _name_problems(source, path)
    yield from _target_problems(source, path, "value", "averageValue")
    target = source.get("target") or {}
    if target.get("value") is not None and target.get("averageValue") is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        yield forbidden_field(f"{path}.target.value", detail)


def _pods_problems(source: Json, path: str) -> Iterator[FieldProblem]:
    yield from _name_problems(source, path)
    yield from _target_problems(source, path, "averageValue")


def _resource_problems(source: Json, path: str) -> Iterator[FieldProblem]:
    if not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    yield from _target_problems(source, path, "averageUtilization", "averageValue")
    target = source.get("target") or {}
    if target.get("averageUtilization") is not None and target.get("averageValue") is not None:
        detail = "may not set both a target raw value and a target utilization"
        yield forbidden_field(f"{path}.target.averageValue", detail)


def _container_problems(source: Json, path: str) -> Iterator[FieldProblem]:
    yield from _resource_problems(source, path)
    if source.get("name"):
        yield from container_resource_problems(source["name"], f"{path}.name")
    container = source.get("container")
    if not container:
        yield required(f"{path}.container", "must specify a container")
    elif problem := names.dns_label(container):
        yield bad_value(f"{path}.container", container, problem)


_SOURCE_CHECKS: Final[Mapping[str, Callable[[Json, str], Iterator[FieldProblem]]]] = {
    "object": _object_problems,
    "external": _external_problems,
    "pods": _pods_problems,
    "resource": _resource_problems,
    "containerResource": _container_problems,
}


def _name_problems(source: Json, path: str) -> Iterator[FieldProblem]:
    name = (source.get("metric") or {}).get("name")
    if not name:
        yield required(f"{path}.metric.name", "must specify a metric name")
    elif problem := names.path_segment(name):
        yield bad_value(f"{path}.metric.name", name, problem)


def _target_problems(source: Json, path: str, *one_of: str) -> Iterator[FieldProblem]:
    target, where = source.get("target") or {}, f"{path}.target"
    kind = target.get("type") or ""
    if not kind:
        yield required(f"{where}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        yield bad_value(f"{where}.type", kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if target.get(field) is not None and parse_nano(target[field]) <= 0:
            yield bad_value(f"{where}.{field}", str(target[field]), "must be positive")
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        yield bad_value(f"{where}.averageUtilization", utilization, "must be greater than 0")
    if all(target.get(field) is None for field in one_of):
        yield required(f"{where}.{one_of[0]}", f"must set {' or '.join(one_of)}")


def _behavior_problems(rules: Json, path: str) -> Iterator[FieldProblem]:
    window, select, tolerance = (
        rules.get(field) for field in ("stabilizationWindowSeconds", "selectPolicy", "tolerance")
    )
    if window is not None and not 0 <= window <= _MAX_WINDOW_SECONDS:
        detail = (
            f"must be less than or equal to {_MAX_WINDOW_SECONDS}"
            if window > 0
            else "must be greater than or equal to zero"
        )
        yield bad_value(f"{path}.stabilizationWindowSeconds", window, detail)
    if select is not None and select not in _SELECT_POLICIES:
        yield unsupported(f"{path}.selectPolicy", select, _SELECT_POLICIES)
    policies = rules.get("policies")
    if policies == []:  # what is left out has a default
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(policies or ()):
        where, period = f"{path}.policies[{index}]", policy.get("periodSeconds") or 0
        if policy.get("type") not in ("Pods", "Percent"):
            yield unsupported(f"{where}.type", policy.get("type") or "", ("Percent", "Pods"))
        for field in ("value", "periodSeconds"):
            if (policy.get(field) or 0) <= 0:
                yield bad_value(f"{where}.{field}", policy.get(field) or 0, "must be greater than zero")
        if period > _MAX_PERIOD_SECONDS:
            yield bad_value(f"{where}.periodSeconds", period, f"must be less than or equal to {_MAX_PERIOD_SECONDS}")
    if tolerance is not None and parse_nano(tolerance) < 0:
        yield bad_value(f"{path}.tolerance", str(tolerance), "must be greater than or equal to 0")
