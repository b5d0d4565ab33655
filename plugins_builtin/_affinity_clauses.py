"""What NodeAffinity says of a pending pod: each entry of its node selector and of its required node affinity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from plugins_builtin._node_inclusion import required_node_selector
from trio_sched.plugin_api import (
    BoolArray,
    Change,
    Clause,
    Node,
    NodeColumns,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    edit_node,
    edit_pod,
    match_labels,
    match_node_selector,
    nearest_name,
    replace_fields,
    some_names,
)

_WELL_KNOWN: Final = ("kubernetes.io", "k8s.io")
"""Domains whose labels say what a node is: nobody sets these to please a pod."""
_MAX_VALUES: Final = 3


def selector_clauses(pod: Pod, nodes: NodeColumns) -> Iterator[Clause]:
    """A clause for each label in ``spec.nodeSelector``."""
    for key, value in (pod.spec.node_selector or {}).items():
        yield _label_clause(pod, nodes, key, value)


def _label_clause(pod: Pod, nodes: NodeColumns, key: str, value: str) -> Clause:
    fails = ~match_labels({key: value}, nodes)
    near, near_key = nearest_value(nodes, key, value), nearest_key(nodes, key, (value,))

    def renamed(one: Pod) -> Pod:
        return _with_selector(_with_selector(one, key, None), near_key or key, near or value)

    def changes(where: BoolArray) -> Iterator[Change]:
        if near is not None or near_key is not None:
            yield Change(
                title=f"node selector {near_key or key}={near or value} instead of {key}={value}",
                edits=(edit_pod(pod, renamed),),
                corrects=True,
            )
        elif value not in values_of(nodes, key):
            yield from _other_values(pod, nodes, where, key, value)
        yield Change(
            title=f"no node selector {key}={value}", edits=(edit_pod(pod, lambda one: _with_selector(one, key, None)),)
        )
        yield from _labelled(nodes, where & fails, key, value)

    return Clause(
        reason="NodeSelectorMismatch",
        title=f"node selector {key}={value}",
        fails=fails,
        cause=lambda _otherwise: label_evidence(nodes, key, (value,)),
        is_given=not fails.all(),  # who chooses among the nodes that there are means it
        changes=changes,
    )


def _other_values(pod: Pod, nodes: NodeColumns, where: BoolArray, key: str, value: str) -> Iterator[Change]:
    """The values that the nodes have instead, the one of most nodes first."""
    counts = Counter(nodes.node(position).labels.get(key) for position in np.flatnonzero(where).tolist())
    for other, _ in counts.most_common(_MAX_VALUES):
        if other is not None:
            title = f"node selector {key}={other} instead of {key}={value}"
            yield Change(title=title, edits=(edit_pod(pod, partial(_with_selector, key=key, value=other)),))


def nearest_value(nodes: NodeColumns, key: str, value: str) -> str | None:
    """The value of label *key* that *value* may have been meant to be."""
    values = values_of(nodes, key)
    return None if value in values else nearest_name(value, values)


def nearest_key(nodes: NodeColumns, key: str, values: Sequence[str]) -> str | None:
    """The label that *key*, which no node has, may have been meant to be: some node has it with one of *values*."""
    if values_of(nodes, key):
        return None
    near = _similar_key(nodes, key)
    return near if near is not None and not values_of(nodes, near).keys().isdisjoint(values) else None


def _similar_key(nodes: NodeColumns, key: str) -> str | None:
    return nearest_name(key, {name for node in nodes for name in node.labels})


def values_of(nodes: NodeColumns, key: str) -> dict[str, int]:
    """The values of label *key*, and how many nodes have each."""
    ids, counts = np.unique(nodes.label_values(key), return_counts=True)
    vocabulary = nodes.label_vocabulary(key)
    return {
        str(vocabulary[number]): count for number, count in zip(ids.tolist(), counts.tolist(), strict=True) if number
    }


def label_evidence(nodes: NodeColumns, key: str, wanted: tuple[str, ...]) -> str:
    """Which nodes have one of the *wanted* values of label *key*, or what they have instead."""
    values = values_of(nodes, key)
    text = f"{key}={wanted[0]}" if len(wanted) == 1 else f"{key} in ({some_names(wanted)})"
    if not values:
        near = _similar_key(nodes, key)
        return f"no node has the label {key}" + ("" if near is None else f"; did you mean {near}?")
    having = sum(values.get(one, 0) for one in wanted)
    if having:
        return f"{having} node(s) have {text}, the others do not"
    near = nearest_name(wanted[0], values)
    if near is not None:
        return f"no node has {text}; {values[near]} have {key}={near}"
    return f"no node has {text}; there are {_values_text(key, values)}"


def _values_text(key: str, values: Mapping[str, int]) -> str:
    """The values that most nodes have."""
    most = sorted(values.items(), key=lambda one: -one[1])[:_MAX_VALUES]
    return ", ".join(f"{key}={one} ({count})" for one, count in most)


def _labelled(nodes: NodeColumns, where: BoolArray, key: str, value: str) -> Iterator[Change]:
    domain = key.partition("/")[0] if "/" in key else ""
    if any(domain == one or domain.endswith(f".{one}") for one in _WELL_KNOWN):
        return
    for position in np.flatnonzero(where).tolist()[:1]:
        name = nodes.name(position)
        given = nodes.node(position).labels.get(key)
        note = "" if given is None else f"{name} has {key}={given} now, which other pods may be there for"
        edit = edit_node(name, lambda one: with_label(one, key, value))
        yield Change(title=f"label {name} {key}={value}", edits=(edit,), note=note)


def with_label(node: Node, key: str, value: str) -> Node:
    labels = {**(node.metadata.labels or {}), key: value}
    return replace_fields(node, metadata=replace_fields(node.metadata, labels=labels))


def _with_selector(pod: Pod, key: str, value: str | None) -> Pod:
    selector = {name: one for name, one in (pod.spec.node_selector or {}).items() if name != key}
    if value is not None:
        selector[key] = value
    return replace_fields(pod, spec=replace_fields(pod.spec, node_selector=selector or None))


# --- required node affinity -----------------------------------------------------------------------------------------


def affinity_clauses(pod: Pod, nodes: NodeColumns) -> Iterator[Clause]:
    """A clause for each requirement of the only required term; of several terms, of which one has to match, one."""
    required = required_node_selector(pod)
    terms = (required.node_selector_terms or ()) if required is not None else ()
    if len(terms) == 1 and _requirements(terms[0]):
        for requirement in terms[0].match_expressions or ():
            yield _requirement_clause(pod, nodes, requirement, is_field=False)
        for requirement in terms[0].match_fields or ():
            yield _requirement_clause(pod, nodes, requirement, is_field=True)
    elif required is not None:
        fails = ~match_node_selector(required, nodes)
        yield Clause(
            reason="NodeAffinityMismatch",
            title=f"node affinity: {_terms_text(terms)}",
            fails=fails,
            cause=_no_term_matches(terms, fails),
            changes=lambda _where: [_without_affinity(pod)],
        )


def added_clause(nodes: NodeColumns, added: NodeSelector) -> Clause:
    """The affinity that the configuration of the profile adds to every pod."""
    fails, terms = ~match_node_selector(added, nodes), added.node_selector_terms or ()

    def changes(where: BoolArray) -> Iterator[Change]:
        for term in terms:
            required = _requirements(term)
            if len(required) == 1 and required[0].operator == "In" and required[0].values:
                yield from _labelled(nodes, where & fails, required[0].key, required[0].values[0])

    return Clause(
        reason="ProfileAffinityMismatch",
        title=f"node affinity of its profile: {_terms_text(terms)}",
        fails=fails,
        cause="the configuration of the scheduler adds it to every pod of the profile",
        is_given=not fails.all(),
        changes=changes,
    )


def _terms_text(terms: Sequence[NodeSelectorTerm]) -> str:
    texts = [" and ".join(map(requirement_text, _requirements(term))) or "an empty term" for term in terms]
    return " or ".join(texts[:_MAX_VALUES]) or "no term"


def _no_term_matches(terms: Sequence[NodeSelectorTerm], fails: BoolArray) -> str:
    if not any(map(_requirements, terms)):
        return "a node affinity term without requirements matches no node" if terms else "it has no term"
    return f"{np.count_nonzero(fails)} node(s) match none of its {len(terms)} terms"


def _requirements(term: NodeSelectorTerm) -> tuple[NodeSelectorRequirement, ...]:
    return (*(term.match_expressions or ()), *(term.match_fields or ()))


def requirement_text(one: NodeSelectorRequirement) -> str:
    """``zone in (a, b)``, ``disk exists``, ``cores > 4``."""
    values = some_names(one.values or ())
    match one.operator:
        case "In" | "NotIn":
            if len(one.values or ()) == 1:
                return f"{one.key}{'=' if one.operator == 'In' else '≠'}{values}"
            return f"{one.key} {'in' if one.operator == 'In' else 'not in'} ({values})"
        case "Exists":
            return f"{one.key} exists"
        case "DoesNotExist":
            return f"{one.key} does not exist"
        case "Gt" | "Lt":
            return f"{one.key} {'>' if one.operator == 'Gt' else '<'} {values}"
    return f"{one.key} {one.operator} {values}"


def _requirement_clause(
    pod: Pod, nodes: NodeColumns, requirement: NodeSelectorRequirement, *, is_field: bool
) -> Clause:
    attribute = "match_fields" if is_field else "match_expressions"
    term = NodeSelectorTerm(**{attribute: (requirement,)})
    fails = ~match_node_selector(NodeSelector(node_selector_terms=(term,)), nodes)
    text = requirement_text(requirement)
    wanted = requirement.values or ()
    near = near_key = None
    if requirement.operator == "In" and not is_field:
        near = nearest_value(nodes, requirement.key, wanted[0]) if len(wanted) == 1 else None
        near_key = nearest_key(nodes, requirement.key, wanted)
    elif requirement.operator in ("Exists", "Gt", "Lt") and not values_of(nodes, requirement.key) and not is_field:
        near_key = _similar_key(nodes, requirement.key)

    def cause(_otherwise: BoolArray) -> str:
        if is_field:
            known = [one for one in wanted if nodes.position(one) is not None]
            missing = [one for one in wanted if one not in known]
            return f"there is no node {some_names(missing)}" if missing else f"it is for node {some_names(known)} only"
        if requirement.operator == "In" and wanted:
            return label_evidence(nodes, requirement.key, wanted)
        values = values_of(nodes, requirement.key)
        if not values:
            return label_evidence(nodes, requirement.key, ("",))
        return (
            f"{np.count_nonzero(fails)} node(s) do not match {text}; there are {_values_text(requirement.key, values)}"
        )

    def changes(where: BoolArray) -> Iterator[Change]:
        if near is not None or near_key is not None:
            values = requirement.values if near is None else (near,)
            renamed = replace_fields(requirement, key=near_key or requirement.key, values=values)
            yield Change(
                title=f"node affinity {requirement_text(renamed)} instead of {text}",
                edits=(edit_pod(pod, lambda one: _with_requirement(one, attribute, requirement, renamed)),),
                corrects=True,
            )
        yield Change(
            title=f"no node affinity {text}",
            edits=(edit_pod(pod, lambda one: _with_requirement(one, attribute, requirement, None)),),
        )
        if requirement.operator == "In" and wanted and not is_field:
            yield from _labelled(nodes, where & fails, requirement.key, wanted[0])

    return Clause(
        reason="NodeAffinityMismatch",
        title=f"node affinity {text}",
        fails=fails,
        cause=cause,
        is_given=not fails.all() or (is_field and requirement.key == "metadata.name"),
        changes=changes,
    )


def _with_requirement(
    pod: Pod, attribute: str, old: NodeSelectorRequirement, new: NodeSelectorRequirement | None
) -> Pod:
    required = required_node_selector(pod)
    assert required is not None
    (term,) = required.node_selector_terms or ()
    kept = [new if one == old else one for one in getattr(term, attribute) or ()]
    changed = replace_fields(term, **{attribute: tuple(one for one in kept if one is not None) or None})
    terms = (changed,) if _requirements(changed) else None
    return _with_required(pod, None if terms is None else NodeSelector(node_selector_terms=terms))


def _without_affinity(pod: Pod) -> Change:
    return Change(title="no required node affinity", edits=(edit_pod(pod, lambda one: _with_required(one, None)),))


def _with_required(pod: Pod, required: NodeSelector | None) -> Pod:
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    node_affinity = replace_fields(affinity.node_affinity, required_during_scheduling_ignored_during_execution=required)
    spec = replace_fields(pod.spec, affinity=replace_fields(affinity, node_affinity=node_affinity))
    return replace_fields(pod, spec=spec)
