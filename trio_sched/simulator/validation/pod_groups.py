"""Rules of pod groups."""

from typing import Final

from trio_sched.simulator.raw_objects import Json
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    required,
    too_many,
    unsupported,
)

_MODES: Final = ("Pod", "PodGroup")
_PRIORITY: Final = ("priorityClassName", "priority")
_SINCE_1_37: Final = ("parentCompositePodGroupName", "preemptionPolicy")
_GANG: Final = "spec.schedulingPolicy.gang"
_POLICIES: Final = ("Never", "PreemptLowerPriority")


def pod_group_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new pod group."""
    spec = fields["spec"]
    problems = _policy_problems(spec, "minCount")
    if not problems or _has_policy(spec):
        if spec["disruptionMode"] not in _MODES:
            problems.append(unsupported("spec.disruptionMode", spec["disruptionMode"], _MODES))
        problems += _preemption_problems(spec)
    return problems


def composite_pod_group_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new composite pod group; servers do not look at the tree that it is in."""
    spec = fields.get("spec") or {}
    problems = [] if isinstance(spec.get("workloadRef"), dict) else [required("spec.workloadRef")]
    problems += _policy_problems(spec, "minGroupCount")
    mode = spec.get("disruptionMode")
    if isinstance(mode, dict) and len({"single", "all"} & mode.keys()) != 1:
        problems.append(bad_value("spec.disruptionMode", mode, "must specify exactly one of: `all`, `single`"))
    constraints = (spec.get("schedulingConstraints") or {}).get("topology") or ()
    if len(constraints) > 1:
        problems.append(too_many("spec.schedulingConstraints.topology", len(constraints), 1))
    return problems + _preemption_problems(spec)


def composite_pod_group_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a composite pod group."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    names = ("workloadRef", "schedulingPolicy", "schedulingConstraints", "disruptionMode")
    return _changed(before, after, (*names, *_PRIORITY, *_SINCE_1_37))


def _has_policy(spec: Json) -> bool:
    policy = spec.get("schedulingPolicy")
    return isinstance(policy, dict) and bool({"basic", "gang"} & policy.keys())


def _policy_problems(spec: Json, count_name: str) -> list[FieldProblem]:
    if not _has_policy(spec):
        return [required("spec.schedulingPolicy", "must specify one of: `basic`, `gang`")]
    policy, problems = spec["schedulingPolicy"], []
    if {"basic", "gang"} <= policy.keys():
        problems.append(bad_value("spec.schedulingPolicy", policy, "must specify exactly one of: `basic`, `gang`"))
    count, path = (policy.get("gang") or {}).get(count_name) if "gang" in policy else 1, f"{_GANG}.{count_name}"
    if count is None:
        problems.append(required(path))
    elif not isinstance(count, int) or count < 1:
        problems.append(bad_value(path, count, "must be greater than or equal to 1"))
    return problems


def _preemption_problems(spec: Json) -> list[FieldProblem]:
    policy = spec.get("preemptionPolicy")
    return [] if policy in (None, *_POLICIES) else [unsupported("spec.preemptionPolicy", policy, _POLICIES)]


def _changed(before: Json, after: Json, names: tuple[str, ...]) -> list[FieldProblem]:
    return [
        bad_value(f"spec.{name}", after.get(name), "field is immutable")
        for name in names
        if before.get(name) != after.get(name)
    ]


def resizable_pod_group_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a pod group where the size of its gang may change."""
    before, after = (((one.get("spec") or {}).get("schedulingPolicy") or {}).get("gang") for one in (old, new))
    if not isinstance(before, dict) or not isinstance(after, dict):
        return _changes_since_1_37(old, new)
    unchanged = {**new["spec"], "schedulingPolicy": old["spec"]["schedulingPolicy"]}
    return _changes_since_1_37(old, {**new, "spec": unchanged})


def _changes_since_1_37(old: Json, new: Json) -> list[FieldProblem]:
    return [*pod_group_changes(old, new), *_changed(old.get("spec") or {}, new.get("spec") or {}, _SINCE_1_37)]


def pod_group_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a pod group."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    names = ("podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints", "resourceClaims", "disruptionMode")
    return _changed(before, after, (*names, *_PRIORITY))
