"""Node selectors over columns: each requirement is a table over the distinct values of one label.

Source: node selector semantics of Kubernetes 1.36, the terms that do not parse included.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from trio_sched.objects.pod_requests import is_qualified_name
from trio_sched.objects.selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.distinct_values import per_distinct_value
from trio_sched.snapshot.label_text import is_label_value, parse_int64
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.topology_columns import ABSENT

_NAME_FIELD = "metadata.name"

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def _requirement_problem(requirement: NodeSelectorRequirement) -> str | None:
    """What makes *requirement* one that cannot be evaluated, or None if it is fine."""
    values = requirement.values or ()
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                return "for 'in', 'notin' operators, values set can't be empty"
        case "Exists" | "DoesNotExist":
            if values:
                return "values set must be empty for exists and does not exist"
        case "Gt" | "Lt":
            if len(values) != 1:
                return "for 'Gt', 'Lt' operators, exactly one value is required"
            if parse_int64(values[0]) is None:
                return "for 'Gt', 'Lt' operators, the value must be an integer"
        case operator:
            return f"{operator!r} is not a valid node selector operator; one of {', '.join(_OPERATORS)} is"
    if not is_qualified_name(requirement.key):
        return f"{requirement.key!r} is not a valid label key"
    for value in values:
        if not is_label_value(value):
            return f"{value!r} is not a valid label value"
    return None


def _field_problem(requirement: NodeSelectorRequirement) -> str | None:
    """What makes a ``matchFields`` *requirement* one that cannot be evaluated, or None if it is fine."""
    if requirement.operator not in ("In", "NotIn"):
        return f"{requirement.operator!r} is not a valid node field selector operator; In and NotIn are"
    if len(requirement.values or ()) != 1:
        count = len(requirement.values or ())
        return f"unexpected number of values ({count}) for field {requirement.key!r}; one is allowed"
    return None


def term_problem(term: NodeSelectorTerm) -> str | None:
    """The first problem of *term*, or None."""
    for requirement in term.match_expressions or ():
        if problem := _requirement_problem(requirement):
            return problem
    for requirement in term.match_fields or ():
        if problem := _field_problem(requirement):
            return problem
    return None


def term_is_empty(term: NodeSelectorTerm) -> bool:
    """Whether *term* has no requirements; such a term matches no node."""
    return not term.match_expressions and not term.match_fields


def match_node_selector(selector: NodeSelector, nodes: NodeColumns) -> BoolArray:
    """Shape (nodes,): which nodes match one of the terms; terms that are empty or do not parse match none."""
    matched = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.node_selector_terms or ():
        if not term_is_empty(term) and term_problem(term) is None:
            matched |= match_term(term, nodes)
    return matched


def match_term(term: NodeSelectorTerm, nodes: NodeColumns) -> BoolArray:
    """Shape (nodes,): which nodes meet every requirement of *term*, which must parse."""
    matched = np.ones(len(nodes), dtype=np.bool_)
    for requirement in term.match_expressions or ():
        matched &= _match_requirement(requirement, nodes)
    for requirement in term.match_fields or ():
        matched &= _match_field(requirement, nodes)
    return matched


def match_labels(labels: Mapping[str, str], nodes: NodeColumns) -> BoolArray:
    """Shape (nodes,): which nodes have all of *labels*."""
    matched = np.ones(len(nodes), dtype=np.bool_)
    for key, value in labels.items():
        matched &= match_label_values(key, (value,), nodes)
    return matched


def _match_requirement(requirement: NodeSelectorRequirement, nodes: NodeColumns) -> BoolArray:
    match requirement.operator:
        case "In":
            return match_label_values(requirement.key, requirement.values or (), nodes)
        case "NotIn":
            return ~match_label_values(requirement.key, requirement.values or (), nodes)
        case "Exists":
            return _has_label(requirement.key, nodes)
        case "DoesNotExist":
            return ~_has_label(requirement.key, nodes)
    column = nodes.label_values(requirement.key)
    vocabulary = nodes.label_vocabulary(requirement.key)
    return per_distinct_value(column, vocabulary, lambda value: _label_matches(requirement, value), np.bool_)


def _has_label(key: str, nodes: NodeColumns) -> BoolArray:
    present: BoolArray = nodes.label_values(key) != ABSENT
    return present


def match_label_values(key: str, values: Iterable[str], nodes: NodeColumns) -> BoolArray:
    """Shape (nodes,): which nodes have one of *values* in label *key*."""
    column = nodes.label_values(key)
    matched = np.zeros(len(nodes), dtype=np.bool_)
    for value in values:
        value_id = nodes.label_value_id(key, value)
        if value_id is not None:
            matched |= column == value_id
    return matched


def _label_matches(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    """Whether a label with *value* (None: absent) meets *requirement*, which must parse."""
    values = requirement.values or ()
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None:
        return False
    found, bound = parse_int64(value), parse_int64(values[0])
    if found is None or bound is None:
        return False
    return found > bound if requirement.operator == "Gt" else found < bound


def _match_field(requirement: NodeSelectorRequirement, nodes: NodeColumns) -> BoolArray:
    wanted = (requirement.values or ("",))[0]
    if requirement.key == _NAME_FIELD:
        equal = np.zeros(len(nodes), dtype=np.bool_)
        position = nodes.position(wanted)
        if position is not None:
            equal[position] = True
    else:
        equal = np.full(len(nodes), not wanted, dtype=np.bool_)  # a field that nodes do not have reads as ""
    return equal if requirement.operator == "In" else ~equal


def node_selector_matches(selector: NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a single node, called *name* with *labels*, matches one of the terms of *selector*.

    Raises:
        ValueError: no term matches, and at least one does not parse.
    """
    first_problem: str | None = None
    for term in selector.node_selector_terms or ():
        if term_is_empty(term):
            continue
        if problem := term_problem(term):
            first_problem = first_problem or problem
        elif _term_matches(term, name, labels):
            return True
    if first_problem:
        raise ValueError(first_problem)
    return False


def _term_matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node called *name* with *labels* meets every requirement of *term*, which must parse."""
    return all(_label_matches(r, labels.get(r.key)) for r in term.match_expressions or ()) and all(
        (((r.values or ("",))[0] == (name if r.key == _NAME_FIELD else "")) == (r.operator == "In"))
        for r in term.match_fields or ()
    )
