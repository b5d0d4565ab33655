"""Pod groups: defaults, admission and validation of the API server."""

from typing import Any

from trio_sched.simulator.cluster_state import ClusterState
from trio_sched.simulator.resource_types import ResourceType
from trio_sched.simulator.status_errors import FieldProblem, bad_value, forbidden, required, unsupported

Json = dict[str, Any]

FINALIZER = "scheduling.k8s.io/podgroup-protection"

_MODES = ("Pod", "PodGroup")


def pod_group_defaults(fields: Json) -> None:
    """How it may be disrupted."""
    fields.setdefault("spec", {}).setdefault("disruptionMode", "Pod")


def admit_pod_group(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """The protecting finalizer, and the priority of the class."""
    metadata, spec = fields["metadata"], fields["spec"]
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, FINALIZER]
    name = spec.get("priorityClassName")
    if name:
        found = state.store.get("priorityclasses.scheduling.k8s.io", name)
        if found is None:
            who = metadata.get("name") or ""
            raise forbidden(resource, who, f"no PriorityClass with name {name} was found")
        spec["priority"] = found.fields["value"]


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


def pod_group_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a pod group."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    names = ("podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints", "resourceClaims", "disruptionMode")
    return [
        bad_value(f"spec.{name}", after.get(name), "field is immutable")
        for name in (*names, "priorityClassName", "priority")
        if before.get(name) != after.get(name)
    ]
