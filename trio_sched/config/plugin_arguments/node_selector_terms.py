"""What Kubernetes refuses in the terms of node selectors."""

from collections.abc import Iterator
from typing import Final

from trio_sched.config.errors import Problem
from trio_sched.config.names import label_key_problems, label_value_problems
from trio_sched.config.problems import invalid, unsupported
from trio_sched.objects.selector import NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.snapshot.label_text import parse_int64

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")


def term_problems(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    """What is wrong with *term*, which stands at *path*."""
    for index, requirement in enumerate(term.match_expressions or ()):
        yield from _validate_label_requirement(requirement, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.match_fields or ()):
        place = f"{path}.matchFields[{index}]"
        if requirement.operator not in _FIELD_OPERATORS:
            yield unsupported(f"{place}.operator", requirement.operator, _FIELD_OPERATORS)
        elif len(requirement.values or ()) != 1:
            yield invalid(f"{place}.values", _values_list(requirement), "must have one element")


def _values_list(requirement: NodeSelectorRequirement) -> list[str] | None:
    return None if requirement.values is None else list(requirement.values)


def _validate_label_requirement(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    if requirement.operator not in _OPERATORS:
        yield unsupported(f"{path}.operator", requirement.operator, _OPERATORS)
        return
    if problems := label_key_problems(requirement.key):
        yield invalid(f"{path}.key", requirement.key, "; ".join(problems))
    values = requirement.values or ()
    place = f"{path}.values"
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                detail = "for 'in', 'notin' operators, values set can't be empty"
                yield invalid(place, _values_list(requirement), detail)
        case "Exists" | "DoesNotExist":
            if values:
                detail = "values set must be empty for exists and does not exist"
                yield invalid(place, _values_list(requirement), detail)
        case _:
            if len(values) != 1:
                detail = "for 'Gt', 'Lt' operators, exactly one value is required"
                yield invalid(place, _values_list(requirement), detail)
            for index, value in enumerate(values):
                if parse_int64(value) is None:
                    detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                    yield invalid(f"{place}[{index}]", value, detail)
    for index, value in enumerate(values):
        if problems := label_value_problems(value):
            yield invalid(f"{place}[{index}][{requirement.key}]", value, "; ".join(problems))
