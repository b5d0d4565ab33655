"""Rules of pod groups."""

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    required,
    too_many,
    unsupported,
)

MODES: Final = ("Pod", "PodGroup")
"""How the pods of a pod group can be disrupted, as it is stored."""
_PRIORITY: Final = ("priorityClassName", "priority")
_SINCE_1_37: Final = ("parentCompositePodGroupName", "preemptionPolicy")
_POLICIES: Final = ("Never", "PreemptLowerPriority")


def pod_group_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new pod group."""
    spec = fields["spec"]
    problems = policy_problems(spec, "spec", "minCount")
    if not problems or _has_policy(spec):
        if spec["disruptionMode"] not in MODES:
            problems.append(unsupported("spec.disruptionMode", spec["disruptionMode"], MODES))
        problems += preemption_problems(spec, "spec")
    return problems


def composite_pod_group_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new composite pod group; servers do not look at the tree that it is in."""
    spec = fields.get("spec") or {}
    problems = [] if isinstance(spec.get("workloadRef"), dict) else [required("spec.workloadRef")]
    return problems + composite_problems(spec, "spec")


def composite_problems(part: Json, path: str) -> list[FieldProblem]:
    """What is wrong with the fields at *path* that a composite pod group and a template for one have in common."""
    problems = policy_problems(part, path, "minGroupCount")
    mode = part.get("disruptionMode")
    if isinstance(mode, dict) and len({"single", "all"} & mode.keys()) != 1:
        problems.append(bad_value(f"{path}.disruptionMode", mode, "must specify exactly one of: `all`, `single`"))
    constraints = (part.get("schedulingConstraints") or {}).get("topology") or ()
    if len(constraints) > 1:
        problems.append(too_many(f"{path}.schedulingConstraints.topology", len(constraints), 1))
    return problems + preemption_problems(part, path)


def composite_pod_group_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a composite pod group."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    names = ("workloadRef", "schedulingPolicy", "schedulingConstraints", "disruptionMode")
    return _changed(before, after, (*names, *_PRIORITY, *_SINCE_1_37))


def _has_policy(spec: Json) -> bool:
    policy = spec.get("schedulingPolicy")
    return isinstance(policy, dict) and bool({"basic", "gang"} & policy.keys())


def policy_problems(part: Json, path: str, count_name: str) -> list[FieldProblem]:
    """What is wrong with the scheduling policy of *part*, a group or a template for one at *path*."""
    path = f"{path}.schedulingPolicy"
    if not _has_policy(part):
        return [required(path, "must specify one of: `basic`, `gang`")]
    policy, problems = part["schedulingPolicy"], []
    if {"basic", "gang"} <= policy.keys():
        problems.append(bad_value(path, policy, "must specify exactly one of: `basic`, `gang`"))
    count, path = (policy.get("gang") or {}).get(count_name) if "gang" in policy else 1, f"{path}.gang.{count_name}"
    if count is None:
        problems.append(required(path))
    elif not isinstance(count, int) or count < 1:
        problems.append(bad_value(path, count, "must be greater than or equal to 1"))
    return problems


def preemption_problems(part: Json, path: str) -> list[FieldProblem]:
    """What is wrong with the preemption policy of *part*, a group or a template for one at *path*."""
    policy = part.get("preemptionPolicy")
    return [] if policy in (None, *_POLICIES) else [unsupported(f"{path}.preemptionPolicy", policy, _POLICIES)]


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
