"""Validation of pods, at creation and at updates."""

from typing import Any

from trio_sched.objects.quantity import parse_nano
from trio_sched.simulator.status_errors import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    unsupported,
)
from trio_sched.simulator.validation.metadata import dns_label_problem

Json = dict[str, Any]

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OVERCOMMITTABLE = ("cpu", "memory", "ephemeral-storage")

_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_problems(spec: Json) -> list[FieldProblem]:
    """What is wrong with the *spec* of a new pod whose defaults are filled in."""
    problems: list[FieldProblem] = []
    containers = spec.get("containers") or []
    if not containers:
        problems.append(required("spec.containers"))
    names: set[str] = set()
    for field, listed in (("spec.initContainers", spec.get("initContainers") or []), ("spec.containers", containers)):
        for index, container in enumerate(listed):
            problems.extend(_container_problems(container, f"{field}[{index}]", names))
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        problems.append(unsupported("spec.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES))
    if spec["dnsPolicy"] not in _DNS_POLICIES:
        problems.append(unsupported("spec.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        problems.extend(_toleration_problems(toleration, f"spec.tolerations[{index}]"))
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if not gate.get("name"):
            problems.append(required(f"spec.schedulingGates[{index}]"))
    if spec.get("schedulingGates") and spec.get("nodeName"):
        problems.append(forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        problems.extend(_spread_problems(constraint, f"spec.topologySpreadConstraints[{index}]"))
    return problems


def _container_problems(container: Json, field: str, names: set[str]) -> list[FieldProblem]:
    problems = []
    name = container.get("name") or ""
    if not name:
        problems.append(required(f"{field}.name"))
    elif name in names:
        problems.append(duplicate(f"{field}.name", name))
    else:
        problem = dns_label_problem(name)
        if problem:
            problems.append(bad_value(f"{field}.name", name, problem))
    names.add(name)
    if not container.get("image"):
        problems.append(required(f"{field}.image"))
    for index, port in enumerate(container.get("ports") or ()):
        for key in ("containerPort", "hostPort"):
            number = port.get(key) or 0
            if key == "containerPort" and not number:
                problems.append(required(f"{field}.ports[{index}].{key}"))
            elif number and not 0 < number < 65536:
                problems.append(
                    bad_value(f"{field}.ports[{index}].{key}", number, "must be between 1 and 65535, inclusive")
                )
    resources = container.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for kind, quantities in (("limits", limits), ("requests", requests)):
        for resource, quantity in quantities.items():
            if parse_nano(quantity) < 0:
                where = f"{field}.resources.{kind}[{resource}]"
                problems.append(bad_value(where, str(quantity), "must be greater than or equal to 0"))
    for resource, quantity in requests.items():
        limit = limits.get(resource)
        if limit is None:
            continue
        where = f"{field}.resources.requests"
        if resource in _OVERCOMMITTABLE:
            if parse_nano(quantity) > parse_nano(limit):
                detail = f"must be less than or equal to {resource} limit of {limit}"
                problems.append(bad_value(where, str(quantity), detail))
        elif parse_nano(quantity) != parse_nano(limit):
            problems.append(bad_value(where, str(quantity), f"must be equal to {resource} limit of {limit}"))
    return problems


def _toleration_problems(toleration: Json, field: str) -> list[FieldProblem]:
    operator = toleration.get("operator") or "Equal"
    problems = []
    if operator not in ("Equal", "Exists", "Lt", "Gt"):
        problems.append(unsupported(f"{field}.operator", operator, ("Equal", "Exists")))
    if not toleration.get("key") and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        problems.append(bad_value(f"{field}.operator", operator, detail))
    if operator == "Exists" and toleration.get("value"):
        detail = "value must be empty when `operator` is 'Exists'"
        problems.append(bad_value(f"{field}.operator", toleration["value"], detail))
    effect = toleration.get("effect")
    if effect and effect not in _EFFECTS:
        problems.append(unsupported(f"{field}.effect", effect, _EFFECTS))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        problems.append(bad_value(f"{field}.effect", effect or "", detail))
    return problems


def _spread_problems(constraint: Json, field: str) -> list[FieldProblem]:
    problems = []
    skew = constraint.get("maxSkew") or 0
    if skew <= 0:
        problems.append(bad_value(f"{field}.maxSkew", skew, "must be greater than zero"))
    if not constraint.get("topologyKey"):
        problems.append(required(f"{field}.topologyKey", "can not be empty"))
    choices = ("DoNotSchedule", "ScheduleAnyway")
    if constraint.get("whenUnsatisfiable") not in choices:
        problems.append(unsupported(f"{field}.whenUnsatisfiable", constraint.get("whenUnsatisfiable") or "", choices))
    return problems


def update_problems(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with changing a pod's spec from *old* to *new*."""
    if old == new:
        return []
    problems = []
    tolerations = new.get("tolerations") or []
    if any(toleration not in tolerations for toleration in old.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        if not _only_seconds_changed(old.get("tolerations") or [], tolerations):
            problems.append(forbidden_field("spec.tolerations", detail))
    gates_before = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    added = [gate["name"] for gate in new.get("schedulingGates") or () if gate.get("name") not in gates_before]
    if added:
        detail = f"only deletion is allowed, but found new scheduling gate '{added[0]}'"
        problems.append(forbidden_field("spec.schedulingGates", detail))
    if _mutable_parts_removed(old, gated=bool(gates_before)) != _mutable_parts_removed(new, gated=bool(gates_before)):
        problems.append(forbidden_field("spec", _IMMUTABLE))
    return problems


def _only_seconds_changed(old: list[Json], new: list[Json]) -> bool:
    def without_seconds(toleration: Json) -> Json:
        return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}

    kept = [without_seconds(toleration) for toleration in new]
    return all(without_seconds(toleration) in kept for toleration in old)


def _mutable_parts_removed(spec: Json, *, gated: bool) -> Json:
    """*spec* without what may change; a gated pod may also change its node selector and affinity."""
    mutable = {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"}
    if gated:
        mutable |= {"nodeSelector", "affinity"}
    fixed = {name: value for name, value in spec.items() if name not in mutable}
    for name in ("containers", "initContainers"):
        if fixed.get(name):
            fixed[name] = [{**container, "image": ""} for container in fixed[name]]
    return fixed
