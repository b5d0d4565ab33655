"""Rules of pod groups."""

from typing import Final

from trio_sched.simulator.raw_objects import Json
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, required, unsupported

_MODES: Final = ("Pod", "PodGroup")


def pod_group_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new pod group."""
    spec = fields["spec"]
    policy = spec.get("schedulingPolicy")
    if not isinstance(policy, dict) or not ({"basic", "gang"} & policy.keys()):
        return [required("spec.schedulingPolicy", "must specify one of: `basic`, `gang`")]
    problems = []
    if {"basic", "gang"} <= policy.keys():
        problems.append(bad_value("spec.schedulingPolicy", policy, "must specify exactly one of: `basic`, `gang`"))
    count = (policy.get("gang") or {}).get("minCount") if "gang" in policy else 1
    if count is None:
        problems.append(required("spec.schedulingPolicy.gang.minCount"))
    elif not isinstance(count, int) or count < 1:
        path = "spec.schedulingPolicy.gang.minCount"
        problems.append(bad_value(path, count, "must be greater than or equal to 1"))
    if spec["disruptionMode"] not in _MODES:
        problems.append(unsupported("spec.disruptionMode", spec["disruptionMode"], _MODES))
    return problems


def resizable_pod_group_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a pod group where the size of its gang may change."""
    before, after = (((one.get("spec") or {}).get("schedulingPolicy") or {}).get("gang") for one in (old, new))
    if not isinstance(before, dict) or not isinstance(after, dict):
        return pod_group_changes(old, new)
    unchanged = {**new["spec"], "schedulingPolicy": old["spec"]["schedulingPolicy"]}
    return pod_group_changes(old, {**new, "spec": unchanged})


def pod_group_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a pod group."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    names = ("podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints", "resourceClaims", "disruptionMode")
    return [
        bad_value(f"spec.{name}", after.get(name), "field is immutable")
        for name in (*names, "priorityClassName", "priority")
        if before.get(name) != after.get(name)
    ]
