"""What Kubernetes refuses in selectors, tolerations and taints, which plugin arguments may contain.

Source: ``ValidateLabelSelector`` of apimachinery; ``ValidateTolerations``, ``ValidateNodeSelector`` of core validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from trio_sched.config.errors import Problem
from trio_sched.config.plugin_arguments.node_selector_terms import term_problems
from trio_sched.config.problems import forbidden, invalid, required, unsupported
from trio_sched.objects.names import label_key_problems, label_value_problems
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from trio_sched.objects.taint import Taint, Toleration, canonical_int64

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")


def _selector_problems(selector: LabelSelector, path: str) -> Iterator[Problem]:
    for key, value in (selector.match_labels or {}).items():
        yield from _key_problems(f"{path}.matchLabels", key)
        for problem in label_value_problems(value):
            yield invalid(f"{path}.matchLabels[{key}]", value, problem)


def _requirement_problems(requirement: LabelSelectorRequirement, path: str) -> Iterator[Problem]:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if requirement.values:
                yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case _:
            yield invalid(f"{path}.operator", requirement.operator, "not a valid selector operator")
    yield from _key_problems(f"{path}.key", requirement.key)
    for index, value in enumerate(requirement.values):
        for problem in label_value_problems(value):
            yield invalid(f"{path}.values[{index}]", value, problem)


def _key_problems(path: str, key: str) -> Iterator[Problem]:
    for problem in label_key_problems(key):
        yield invalid(path, key, problem)


def _node_selector_problems(selector: NodeSelector, path: str) -> Iterator[Problem]:
    if not selector.node_selector_terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")


def _toleration_problems(toleration: Toleration, path: str) -> Iterator[Problem]:
    if toleration.key:
        yield from _key_problems(f"{path}.key", toleration.key)
    elif toleration.operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", toleration.operator, detail)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield invalid(f"{path}.effect", toleration.effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    match toleration.operator:
        case "" | "Equal":
            for problem in label_value_problems(toleration.value):
                yield invalid(f"{path}.value", toleration.value, problem)
        case "Exists":
            if toleration.value:
                yield invalid(f"{path}.value", toleration.value, "value must be empty when `operator` is 'Exists'")
        case "Lt" | "Gt":
            if canonical_int64(toleration.value) is None:
                yield invalid(f"{path}.value", toleration.value, "value must be a valid integer for numeric operators")
        case _:
            yield unsupported(f"{path}.operator", toleration.operator, _TOLERATION_OPERATORS)
    if toleration.effect:
        yield from _effect_problems(toleration.effect, path)


def _taint_problems(taint: Taint, path: str) -> Iterator[Problem]:
    yield from _key_problems(f"{path}.key", taint.key)
    for problem in label_value_problems(taint.value):
        yield invalid(f"{path}.value", taint.value, problem)
    yield from _effect_problems(taint.effect, path)


def _effect_problems(effect: str, path: str) -> Iterator[Problem]:
    if effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)


OBJECT_CHECKS: Final[Mapping[type[Any], Callable[[Any, str], Iterator[Problem]]]] = {
    LabelSelector: _selector_problems,
    LabelSelectorRequirement: _requirement_problems,
    NodeSelector: _node_selector_problems,
    NodeSelectorTerm: term_problems,
    Taint: _taint_problems,
    Toleration: _toleration_problems,
}
"""What is wrong with an object of a class that stands at a path."""
