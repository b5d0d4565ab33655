"""What Kubernetes refuses in the requirements of selectors, in its words.

Source: ``labels.NewRequirement`` and the parsing of node selectors of Kubernetes 1.36.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from trio_sched.go.text import json_text, quote
from trio_sched.objects.names import label_key_problems, label_value_problems
from trio_sched.objects.selector import NodeSelectorTerm
from trio_sched.snapshot.labels.label_text import parse_int64

FieldProblem = tuple[str, str]
"""The path of a field, and what is wrong with its value."""

_MOST: Final = 200
"""How many problems one text names: a pod can have a hundred thousand of them."""
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")


def term_problems(term: NodeSelectorTerm, path: str) -> Iterator[FieldProblem]:
    """What is wrong with *term*, which stands at *path*."""
    prefix = f"{path}." if path else ""
    for index, requirement in enumerate(term.match_expressions or ()):
        place = f"{prefix}matchExpressions[{index}]"
        if requirement.operator not in _OPERATORS:
            yield _unsupported(f"{place}.operator", requirement.operator, _OPERATORS)
        else:
            yield from requirement_problems(requirement.key, requirement.operator, requirement.values, f"{place}.")
    for index, requirement in enumerate(term.match_fields or ()):
        place = f"{prefix}matchFields[{index}]"
        if requirement.operator not in _FIELD_OPERATORS:
            yield _unsupported(f"{place}.operator", requirement.operator, _FIELD_OPERATORS)
        elif len(requirement.values or ()) != 1:
            yield _invalid_list(f"{place}.values", requirement.values, "must have one element")


def requirement_problems(
    key: str, operator: str, values: Sequence[str] | None, prefix: str = ""
) -> Iterator[FieldProblem]:
    """What is wrong with a requirement of labels whose *operator* is known; *prefix* stands before its fields."""
    if problems := label_key_problems(key):
        yield _invalid(f"{prefix}key", key, problems)
    place = f"{prefix}values"
    match operator:
        case "In" | "NotIn":
            if not values:
                yield _invalid_list(place, values, "for 'in', 'notin' operators, values set can't be empty")
        case "Exists" | "DoesNotExist":
            if values:
                yield _invalid_list(place, values, "values set must be empty for exists and does not exist")
        case _:
            if len(values or ()) != 1:
                yield _invalid_list(place, values, "for 'Gt', 'Lt' operators, exactly one value is required")
            for index, value in enumerate(values or ()):
                if parse_int64(value) is None:
                    detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                    yield _invalid(f"{place}[{index}]", value, [detail])
    for index, value in enumerate(values or ()):
        if problems := label_value_problems(value):
            yield _invalid(f"{place}[{index}][{key}]", value, problems)


def in_one_text(problems: Iterator[FieldProblem]) -> str:
    """*problems* as one text: equal ones are said once, and several stand in brackets; empty if there are none."""
    texts = list(dict.fromkeys(f"{path}: {text}" for path, text in islice(problems, _MOST)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _invalid(path: str, value: str, details: list[str]) -> FieldProblem:
    return path, f"Invalid value: {quote(value)}: {'; '.join(details)}"


def _invalid_list(path: str, values: Sequence[str] | None, detail: str) -> FieldProblem:
    return path, f"Invalid value: {json_text(None if values is None else list(values))}: {detail}"


def _unsupported(path: str, value: str, supported: Sequence[str]) -> FieldProblem:
    return path, f"Unsupported value: {json_text(value)}: supported values: {', '.join(map(quote, supported))}"
