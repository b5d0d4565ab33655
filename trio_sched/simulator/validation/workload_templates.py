"""Rules of the workloads of Kubernetes 1.37, which have templates for pod groups, or for trees of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    too_many,
    unsupported,
)
from trio_sched.simulator.validation.pod_groups import (
    MODES,
    composite_problems,
    policy_problems,
    preemption_problems,
)

_PODS: Final = "podGroupTemplates"
_GROUPS: Final = "compositePodGroupTemplates"
_MOST_TEMPLATES: Final = 8
_MAX_LEVELS: Final = 4
"""How many levels of templates there are at most, those of pod groups included."""


def workload_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new workload of 1.37."""
    spec = fields.get("spec") or {}
    choices = [name for name in (_GROUPS, _PODS) if spec.get(name)]
    if not choices:
        return [bad_value("spec", None, f"must specify one of: `{_GROUPS}`, `{_PODS}`")]
    if len(choices) > 1:
        return [bad_value("spec", None, f"must specify exactly one of: `{_GROUPS}`, `{_PODS}`")]
    problems: list[FieldProblem] = []
    for number, template in enumerate(_items(spec, _GROUPS)):
        if _is_too_deep(template, 1):
            text = f"maximum template hierarchy depth is {_MAX_LEVELS}"
            problems.append(bad_value(f"spec.{_GROUPS}[{number}]", _items(template, _GROUPS), text))
    if problems:
        return problems
    problems = [*_list_problems(spec, "spec", set())]
    if len({(one.get("priorityClassName") or "", one.get("priority")) for one in _all(spec)}) > 1:
        text = "all priority and priorityClassName values must be identical, detected multiple values"
        problems.append(
            bad_value("spec", None, text if _GROUPS in choices else "detected multiple priority configurations")
        )
    return problems


def workload_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a workload of 1.37: of what is in it, only the sizes of gangs of pods change."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    problems = [
        bad_value(f"spec.{name}", after.get(name), "field is immutable")
        for name in ("controllerRef", _GROUPS)
        if (before.get(name) or None) != (after.get(name) or None)
    ]
    if [_without_size(one) for one in _items(before, _PODS)] != [_without_size(one) for one in _items(after, _PODS)]:
        problems.append(bad_value(f"spec.{_PODS}", after.get(_PODS), "field is immutable"))
    return problems


def _items(part: Json, name: str) -> Sequence[Any]:
    return part.get(name) or ()


def _is_too_deep(template: Json, level: int) -> bool:
    if level == _MAX_LEVELS:
        return True
    return any(_is_too_deep(one, level + 1) for one in _items(template, _GROUPS))


def _all(part: Json) -> Iterator[Json]:
    """All templates in *part*."""
    yield from _items(part, _PODS)
    for one in _items(part, _GROUPS):
        yield one
        yield from _all(one)


def _list_problems(part: Json, path: str, taken: set[str]) -> Iterator[FieldProblem]:
    """What is wrong with the lists of templates in *part*, with the names that are *taken* by others."""
    for name in (_PODS, _GROUPS):
        templates, own = _items(part, name), set[str]()
        if len(templates) > _MOST_TEMPLATES:
            yield too_many(f"{path}.{name}", len(templates), _MOST_TEMPLATES)
        for number, template in enumerate(templates):
            here = f"{path}.{name}[{number}]"
            yield from _name_problems(template, here, taken | own)
            own.add(template.get("name") or "")
            yield from (_pod_group_problems if name == _PODS else composite_problems)(template, here)
        taken |= own
    for number, template in enumerate(_items(part, _GROUPS)):
        here = f"{path}.{_GROUPS}[{number}]"
        if not _items(template, _PODS) and not _items(template, _GROUPS):
            text = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
            yield bad_value(here, template.get("name"), text)
        yield from _list_problems(template, here, taken)


def _name_problems(template: Json, path: str, taken: set[str]) -> Iterator[FieldProblem]:
    name = template.get("name")
    if not name:
        yield required(f"{path}.name")
    elif problem := names.dns_label(name):
        yield bad_value(f"{path}.name", name, problem)
    elif name in taken:
        yield duplicate(f"{path}.name", name)


def _pod_group_problems(template: Json, path: str) -> list[FieldProblem]:
    problems = policy_problems(template, path, "minCount")
    mode = template.get("disruptionMode")
    if mode not in (None, *MODES):
        problems.append(unsupported(f"{path}.disruptionMode", mode, MODES))
    return problems + preemption_problems(template, path)


def _without_size(template: Json) -> Json:
    policy = template.get("schedulingPolicy") or {}
    if not isinstance(policy.get("gang"), dict):
        return template
    gang = {name: value for name, value in policy["gang"].items() if name != "minCount"}
    return {**template, "schedulingPolicy": {**policy, "gang": gang}}
