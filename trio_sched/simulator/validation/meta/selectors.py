"""Rules of selectors of labels, nodes and topologies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
)
from trio_sched.simulator.validation.meta.metadata import label_problems


def label_selector_problems(selector: Json | None, path: str) -> Iterator[FieldProblem]:
    """What is wrong with a ``metav1.LabelSelector``."""
    if not selector:
        return
    if labels := selector.get("matchLabels"):
        yield from label_problems(labels, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        yield from _label_requirement_problems(requirement, f"{path}.matchExpressions[{index}]")


def _label_requirement_problems(requirement: Json, path: str) -> Iterator[FieldProblem]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    match operator:
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden_field(f"{path}.values", detail)
        case _:
            yield bad_value(f"{path}.operator", operator, "not a valid selector operator")
    yield from key_problems(requirement.get("key"), f"{path}.key")
    for index, value in enumerate(values):
        if problem := names.label_value(value):
            yield bad_value(f"{path}.values[{index}]", value, problem)


def key_problems(key: Any, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the key of a label."""
    if problem := names.qualified_name(key or ""):
        yield bad_value(path, key or "", problem)


def node_selector_problems(selector: Json, path: str, *, values: bool = True) -> Iterator[FieldProblem]:
    """What is wrong with a ``v1.NodeSelector``.

    Args:
        selector: the selector.
        path: where it is.
        values: whether values must be those of labels.
    """
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from node_selector_term_problems(term, f"{path}.nodeSelectorTerms[{index}]", values=values)


def node_selector_term_problems(term: Json, path: str, *, values: bool = True) -> Iterator[FieldProblem]:
    """What is wrong with one term of a node selector."""
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from _node_requirement_problems(requirement, f"{path}.matchExpressions[{index}]", values=values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        yield from _node_field_problems(requirement, f"{path}.matchFields[{index}]")


def _node_requirement_problems(requirement: Json, path: str, *, values: bool) -> Iterator[FieldProblem]:
    operator, given = requirement.get("operator") or "", requirement.get("values") or []
    match operator:
        case "In" | "NotIn":
            if not given:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if given:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden_field(f"{path}.values", detail)
        case "Gt" | "Lt":
            if len(given) != 1:
                yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case _:
            yield bad_value(f"{path}.operator", operator, "not a valid selector operator")
    yield from key_problems(requirement.get("key"), f"{path}.key")
    for index, value in enumerate(given if values else ()):
        if problem := names.label_value(value):
            yield bad_value(f"{path}.values[{index}]", value, problem)


def _node_field_problems(requirement: Json, path: str) -> Iterator[FieldProblem]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        yield bad_value(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if requirement.get("key") != "metadata.name":
        yield bad_value(f"{path}.key", requirement.get("key") or "", "not a valid field selector key")
        return
    for index, value in enumerate(values):
        if problem := names.subdomain(value):
            yield bad_value(f"{path}.values[{index}]", value, problem)


def topology_term_problems(terms: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with the ``allowedTopologies`` of a storage class."""
    seen: list[dict[str, set[str]]] = []
    for number, term in enumerate(terms):
        keys: dict[str, set[str]] = {}
        for index, requirement in enumerate(term.get("matchLabelExpressions") or ()):
            where = f"{path}[{number}].matchLabelExpressions[{index}]"
            key, values = requirement.get("key") or "", requirement.get("values") or []
            if not values:
                yield required(f"{where}.values")
            known: set[str] = set()
            for place, value in enumerate(values):
                if value in known:
                    yield duplicate(f"{where}.values[{place}]", value)
                known.add(value)
            yield from key_problems(key, f"{where}.key")
            if key in keys:
                yield duplicate(f"{where}.key", key)
            keys[key] = known
        if keys in seen or not keys:  # the API server compares with as many empty terms as there are terms
            yield duplicate(f"{path}[{number}].matchLabelExpressions", "")
        seen.append(keys)
