"""Rules of pod groups, and of the workloads of 1.35, which contain them."""

from collections.abc import Iterator
from typing import Any, Final

from trio_sched.simulator.raw_objects import Json
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    too_many,
    unsupported,
)

_MODES: Final = ("Pod", "PodGroup")
_MOST_IN_WORKLOAD: Final = 8
_IMMUTABLE: Final = ("priorityClassName", "priority", "preemptionPolicy")
_POLICIES: Final = ("Never", "PreemptLowerPriority")


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
    preempts = spec.get("preemptionPolicy")
    if preempts is not None and preempts not in _POLICIES:
        problems.append(unsupported("spec.preemptionPolicy", preempts, _POLICIES))
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
        for name in (*names, *_IMMUTABLE)
        if before.get(name) != after.get(name)
    ]


def workload_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new workload of 1.35."""
    groups = (fields.get("spec") or {}).get("podGroups")
    if not groups:
        return [required("spec.podGroups", "must have at least one item")]
    if len(groups) > _MOST_IN_WORKLOAD:
        return [too_many("spec.podGroups", len(groups), _MOST_IN_WORKLOAD)]
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for number, group in enumerate(groups):
        path, name = f"spec.podGroups[{number}]", group.get("name") or ""
        if problem := names.dns_label(name):
            problems.append(bad_value(f"{path}.name", name, problem))
        if name in seen:
            problems.append(duplicate(f"{path}.name", name))
        seen.add(name)
        problems += _policy_problems(group.get("policy") or {}, f"{path}.policy")
    return problems


def _policy_problems(policy: Any, path: str) -> Iterator[FieldProblem]:
    chosen = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if not chosen:
        yield required(path, "exactly one of `basic`, `gang` is required")
    elif len(chosen) > 1:
        detail = "exactly one of `basic`, `gang` is required, but multiple fields are set"
        yield bad_value(path, "{`basic`, `gang`}", detail)
    elif chosen == ["gang"] and (count := policy["gang"].get("minCount") or 0) < 1:
        yield bad_value(f"{path}.gang.minCount", count, "must be greater than zero")


def workload_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a workload of 1.35."""
    before, after = ((one.get("spec") or {}).get("podGroups") for one in (old, new))
    return [] if before == after else [bad_value("spec.podGroups", after, "field is immutable")]
