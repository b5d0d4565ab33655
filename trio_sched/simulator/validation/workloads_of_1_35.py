"""Rules of the workloads of Kubernetes 1.35, which contain pod groups."""

from collections.abc import Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, duplicate, required, too_many

_MOST_GROUPS: Final = 8


def workload_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new workload of 1.35."""
    groups = (fields.get("spec") or {}).get("podGroups")
    if not groups:
        return [required("spec.podGroups", "must have at least one item")]
    if len(groups) > _MOST_GROUPS:
        return [too_many("spec.podGroups", len(groups), _MOST_GROUPS)]
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
