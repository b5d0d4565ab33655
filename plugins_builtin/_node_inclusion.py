"""Which nodes match the node affinity and the tolerations of a pod.

Topology spread constraints count pods on these nodes only, by nodeAffinityPolicy and nodeTaintsPolicy.
"""

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from trio_sched.plugin_api import (
    BoolArray,
    NodeColumns,
    NodeSelector,
    Pod,
    Taint,
    Tolerations,
    match_labels,
    match_node_selector,
    node_selector_matches,
    per_distinct_value,
)

_HARD_EFFECTS = ("NoSchedule", "NoExecute")


def required_node_selector(pod: Pod) -> NodeSelector | None:
    """The required part of the pod's node affinity."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def affinity_key(pod: Pod) -> Hashable:
    """Equal for pods with the same node selector and required affinity."""
    selector = pod.spec.node_selector
    return tuple(selector.items()) if selector else (), required_node_selector(pod)


def affinity_texts(pod: Pod) -> int:
    """How many keys and values `affinity_key` has: its size in a `SizedCache`."""
    required = required_node_selector(pod)
    terms = () if required is None else required.node_selector_terms or ()
    requirements = [one for term in terms for one in (*(term.match_expressions or ()), *(term.match_fields or ()))]
    return 2 * len(pod.spec.node_selector or {}) + len(terms) + sum(1 + len(one.values or ()) for one in requirements)


def match_required(pod: Pod, nodes: NodeColumns) -> BoolArray:
    """Shape (nodes,): which nodes match the pod's node selector and required affinity."""
    matched = match_labels(pod.spec.node_selector or {}, nodes)
    required = required_node_selector(pod)
    if required is not None:
        matched &= match_node_selector(required, nodes)
    return matched


def required_matches(pod: Pod, name: str, labels: Mapping[str, str]) -> bool:
    """Whether the node *name* with *labels* matches the pod's node selector and required affinity.

    Raises:
        ValueError: it matches no term, and at least one does not parse.
    """
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    required = required_node_selector(pod)
    return required is None or node_selector_matches(required, name, labels)


def tolerates_all(tolerations: Tolerations, taints: Iterable[Taint]) -> bool:
    """Whether *tolerations* tolerate every NoSchedule and NoExecute taint of *taints*."""
    return all(tolerations.tolerate(taint) for taint in taints if taint.effect in _HARD_EFFECTS)


def match_tolerated(pod: Pod, nodes: NodeColumns, *, numeric: bool) -> BoolArray:
    """Shape (nodes,): which nodes have no NoSchedule or NoExecute taint that the pod does not tolerate.

    Nodes have few distinct lists of taints, so each list is evaluated once.
    """
    tolerations = Tolerations(pod.spec.tolerations or (), numeric=numeric)
    return per_distinct_value(
        nodes.taint_sets,
        nodes.taint_lists,
        lambda taints: tolerates_all(tolerations, taints),
        np.bool_,
    )
