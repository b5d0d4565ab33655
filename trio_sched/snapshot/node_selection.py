"""Node selectors over columns: each requirement is a table over the distinct values of one label.

Source: node selector semantics of Kubernetes 1.36, the terms that do not parse included.
"""

from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np

from trio_sched.objects.pod_requests import is_qualified_name
from trio_sched.objects.selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.distinct_values import per_distinct_value
from trio_sched.snapshot.labels.label_text import is_label_value, parse_int64
from trio_sched.snapshot.labels.selector_problems import in_one_text, term_problems
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.topology_columns import ABSENT

_NAME_FIELD = "metadata.name"


def _parses(requirement: NodeSelectorRequirement) -> bool:
    """Whether *requirement* can be evaluated; what `requirement_problems` says, without its texts."""
    values = requirement.values or ()
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                return False
        case "Exists" | "DoesNotExist":
            if values:
                return False
        case "Gt" | "Lt":
            if len(values) != 1 or parse_int64(values[0]) is None:
                return False
        case _:
            return False
    return is_qualified_name(requirement.key) and all(map(is_label_value, values))


def _field_parses(requirement: NodeSelectorRequirement) -> bool:
    """Whether a ``matchFields`` *requirement* can be evaluated."""
    return requirement.operator in ("In", "NotIn") and len(requirement.values or ()) == 1


def term_problem(term: NodeSelectorTerm, path: str = "") -> str | None:
    """What is wrong with *term*, which stands at *path*, in the words of Kubernetes; None if it can be evaluated."""
    if all(map(_parses, term.match_expressions or ())) and all(map(_field_parses, term.match_fields or ())):
        return None
    return in_one_text(term_problems(term, path))


def terms_problem(terms: Iterable[NodeSelectorTerm | None]) -> str | None:
    """What is wrong with *terms*, in one text; None if they can be evaluated. Those that are None or empty can."""
    numbered = [
        (f"[{index}]", term) for index, term in enumerate(terms) if term is not None and not term_is_empty(term)
    ]
    if not any(term_problem(term) for _path, term in numbered):
        return None
    return in_one_text(chain.from_iterable(term_problems(term, path) for path, term in numbered))


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
    terms = [term for term in selector.node_selector_terms or () if not term_is_empty(term)]
    if any(term_problem(term) is None and _term_matches(term, name, labels) for term in terms):
        return True
    if problem := terms_problem(selector.node_selector_terms or ()):
        raise ValueError(problem)
    return False


def _term_matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node called *name* with *labels* meets every requirement of *term*, which must parse."""
    return all(_label_matches(r, labels.get(r.key)) for r in term.match_expressions or ()) and all(
        (((r.values or ("",))[0] == (name if r.key == _NAME_FIELD else "")) == (r.operator == "In"))
        for r in term.match_fields or ()
    )
