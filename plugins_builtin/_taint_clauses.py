"""What TaintToleration and NodeUnschedulable say of a pending pod: each taint, its nodes, and cordoned nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from trio_sched.plugin_api import (
    BoolArray,
    Change,
    Clause,
    Node,
    NodeColumns,
    Pod,
    Taint,
    Toleration,
    Tolerations,
    edit_node,
    edit_pod,
    nearest_name,
    per_distinct_value,
    replace_fields,
    some_names,
)

_HARD_EFFECTS: Final = ("NoSchedule", "NoExecute")
_CORDON: Final = "node.kubernetes.io/unschedulable"
_OF_CONTROLLERS: Final = "node.kubernetes.io/"
"""Begins the keys of taints that controllers set and remove with the state of the node."""
_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"


def cordoned(nodes: NodeColumns, fails: BoolArray) -> Clause:
    """Nodes that are cordoned, by their field or by its taint; *fails*, shape (nodes,), says which."""

    def cause(otherwise: BoolArray) -> str:
        where = otherwise & fails if (otherwise & fails).any() else fails
        return f"{np.count_nonzero(where)} node(s) are cordoned: {some_names(_names(nodes, where))}"

    def changes(where: BoolArray) -> Iterator[Change]:
        for name in _names(nodes, where & fails)[:1]:
            yield Change(title=f"uncordon {name}", edits=(edit_node(name, _uncordoned),))

    return Clause(reason="NodeCordoned", title="cordoned", fails=fails, cause=cause, changes=changes)


def _uncordoned(node: Node) -> Node:
    taints = tuple(one for one in node.spec.taints or () if one.key != _CORDON) or None
    return replace_fields(node, spec=replace_fields(node.spec, unschedulable=False, taints=taints))


def taint_clauses(pod: Pod, nodes: NodeColumns, tolerations: Tolerations) -> Iterator[Clause]:
    """A clause for each taint that keeps *pod* off nodes."""
    taints: dict[Taint, None] = {}
    present = set(np.unique(nodes.taint_sets).tolist())
    for number, listed in enumerate(nodes.taint_lists):
        if number in present:
            taints.update(dict.fromkeys(one for one in listed if one.effect in _HARD_EFFECTS))
    for taint in taints:
        if tolerations.tolerate(taint):
            continue
        fails = per_distinct_value(nodes.taint_sets, nodes.taint_lists, _has(taint), np.bool_)
        yield cordoned(nodes, fails) if taint.key == _CORDON else _untolerated(pod, nodes, taint, fails)


def _has(taint: Taint) -> Callable[[tuple[Taint, ...]], bool]:
    return lambda listed: taint in listed


def _untolerated(pod: Pod, nodes: NodeColumns, taint: Taint, fails: BoolArray) -> Clause:
    text = f"{taint.key}={taint.value}" if taint.value else taint.key
    is_of_controllers = taint.key.startswith(_OF_CONTROLLERS)
    meant, nearly = (False, "") if is_of_controllers else _nearly(pod, nodes, taint)

    def cause(otherwise: BoolArray) -> str:
        where = otherwise & fails if (otherwise & fails).any() else fails
        names = _names(nodes, where)
        what = f"the taint {text}:{taint.effect}, which it does not tolerate"
        return f"{len(names)} node(s) have {what}: {some_names(names)}{nearly}"

    def changes(where: BoolArray) -> Iterator[Change]:
        added = Toleration(
            key=taint.key, operator="Equal" if taint.value else "Exists", value=taint.value, effect=taint.effect
        )
        note = "the taint says that the node is not in order" if is_of_controllers else ""
        tolerated = edit_pod(pod, lambda one: _tolerating(one, added))
        yield Change(title=f"tolerate {text}", edits=(tolerated,), note=note, corrects=meant)
        for name in _names(nodes, where & fails)[:1]:
            removed = edit_node(name, lambda node: _without(node, taint))
            if not is_of_controllers:
                yield Change(title=f"take the taint {text} off {name}", edits=(removed,))

    return Clause(
        reason="UntoleratedTaint",
        title=f"taint {text}",
        fails=fails,
        cause=cause,
        is_given=taint.key == _CONTROL_PLANE and not fails.all(),  # pods seldom want to run there
        changes=changes,
    )


def _nearly(pod: Pod, nodes: NodeColumns, taint: Taint) -> tuple[bool, str]:
    """Whether a toleration of *pod* was probably meant for *taint*, and what of the nearest one is different."""
    there = {(one.key, one.value) for taints in nodes.taint_lists for one in taints}
    text, listed = "", pod.spec.tolerations or ()
    for one in listed:
        if one.key != taint.key:
            continue
        if (one.operator == "Exists" or one.value == taint.value) and one.effect and one.effect != taint.effect:
            return True, f"; what it tolerates of {one.key} has the effect {one.effect}"
        text = text or f"; it tolerates {one.key}{f'={one.value}' if one.value else ' without a value'} only"
        is_for_another = (one.key, one.value) in there or one.operator not in ("", "Equal")
        if not is_for_another and (not one.value or not taint.value or nearest_name(one.value, [taint.value])):
            return True, text
    keys = {key for key, _value in there}
    own = (one.key for one in listed if one.key and not one.key.startswith(_OF_CONTROLLERS))
    near = None if text else nearest_name(taint.key, [key for key in own if key not in keys])
    return near is not None, f"; it tolerates {near}, did you mean {taint.key}?" if near is not None else text


def _tolerating(pod: Pod, added: Toleration) -> Pod:
    return replace_fields(pod, spec=replace_fields(pod.spec, tolerations=(*(pod.spec.tolerations or ()), added)))


def _without(node: Node, taint: Taint) -> Node:
    taints = tuple(one for one in node.spec.taints or () if one != taint) or None
    return replace_fields(node, spec=replace_fields(node.spec, taints=taints))


def _names(nodes: NodeColumns, where: BoolArray) -> list[str]:
    return [nodes.name(position) for position in np.flatnonzero(where).tolist()]
