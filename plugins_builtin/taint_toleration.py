"""TaintToleration: filters and scores nodes by the taints that the pod does not tolerate."""

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from plugins_builtin._node_inclusion import match_tolerated, tolerates_all
from plugins_builtin._taint_clauses import taint_clauses
from trio_sched.plugin_api import (
    Action,
    Clause,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Int64Array,
    Node,
    NodeColumns,
    Pod,
    Resource,
    Taint,
    Tolerations,
    Verdicts,
    default_normalize_score,
    hookimpl,
    on,
    per_distinct_value,
    unresolvable,
)
from trio_sched.plugin_api.behaviour import Behaviour
from trio_sched.plugin_api.features import Features

REASON = "node(s) had untolerated taint(s)"
_SOFT_EFFECT = "PreferNoSchedule"


class TaintToleration:
    """Filters by NoSchedule and NoExecute taints, scores by PreferNoSchedule ones.

    Nodes have few distinct lists of taints, so each list is evaluated once per pod.
    """

    name: ClassVar[str] = "TaintToleration"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(self, args: None, handle: Handle) -> None:
        self._numeric = Features.of(handle.feature_enabled).taint_toleration_comparison_operators
        self._own_pod = Behaviour.of(handle).own_pod

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes with an untolerated NoSchedule or NoExecute taint fail."""
        return Verdicts.where(match_tolerated(pod, nodes, numeric=self._numeric), unresolvable(REASON))

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each taint that the pod does not tolerate."""
        return list(taint_clauses(pod, nodes, self._tolerations(pod)))

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> None:
        """Never Skip: kube-scheduler scores with this plugin for every pod."""

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """The number of untolerated PreferNoSchedule taints; normalize_score reverses it."""
        tolerations = self._tolerations(pod)

        def untolerated(taints: tuple[Taint, ...]) -> int:
            return sum(1 for taint in taints if taint.effect == _SOFT_EFFECT and not tolerations.tolerate(taint))

        return per_distinct_value(nodes.taint_sets, nodes.taint_lists, untolerated, np.int64)

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """Map 0 to 100 and the highest number of taints to 0."""
        return default_normalize_score(scores, reverse=True)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The tolerations."""
        return pod.spec.tolerations or ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A node is added or its taints change, or the pod's tolerations change."""
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._node_became_tolerable),
            on(self._own_pod, Action.UPDATE_POD_TOLERATION, _tolerations_of_this_pod_changed),
        ]

    def _node_became_tolerable(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        tolerations = self._tolerations(pod)
        was_untolerated = old is None or not tolerates_all(tolerations, old.spec.taints or ())
        is_tolerated = tolerates_all(tolerations, new.spec.taints or ())
        return Hint.QUEUE if was_untolerated and is_tolerated else Hint.SKIP

    def _tolerations(self, pod: Pod) -> Tolerations:
        return Tolerations(pod.spec.tolerations or (), numeric=self._numeric)


def _tolerations_of_this_pod_changed(pod: Pod, old: Pod, new: Pod) -> Hint:
    return Hint.QUEUE if new.uid == pod.uid else Hint.SKIP
