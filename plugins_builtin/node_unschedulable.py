"""NodeUnschedulable: filters out cordoned nodes for pods that do not tolerate the taint of these."""

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from plugins_builtin._taint_clauses import cordoned
from trio_sched.plugin_api import (
    Action,
    Clause,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Node,
    NodeColumns,
    Pod,
    Resource,
    Taint,
    Tolerations,
    Verdicts,
    hookimpl,
    on,
    unresolvable,
)
from trio_sched.plugin_api.behaviour import Behaviour
from trio_sched.plugin_api.features import Features

REASON = "node(s) were unschedulable"
_UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    """Filters out nodes with ``spec.unschedulable``."""

    name: ClassVar[str] = "NodeUnschedulable"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(self, args: None, handle: Handle) -> None:
        self._numeric = Features.of(handle.feature_enabled).taint_toleration_comparison_operators
        self._own_pod = Behaviour.of(handle).own_pod

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Cordoned nodes fail unless the pod tolerates their taint."""
        if self._tolerates(pod):
            return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unresolvable(REASON))
        return Verdicts.where(~nodes.unschedulable, unresolvable(REASON))

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Cordoned nodes."""
        return [cordoned(nodes, nodes.unschedulable)]

    def _tolerates(self, pod: Pod) -> bool:
        return Tolerations(pod.spec.tolerations or (), numeric=self._numeric).tolerate(_UNSCHEDULABLE_TAINT)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The tolerations."""
        return pod.spec.tolerations or ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A node is added or uncordoned, or the pod gets a toleration."""
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._node_uncordoned),
            on(self._own_pod, Action.UPDATE_POD_TOLERATION, self._pod_tolerates_now),
        ]

    def _node_uncordoned(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        is_uncordoned = not new.spec.unschedulable and (old is None or old.spec.unschedulable)
        return Hint.QUEUE if is_uncordoned else Hint.SKIP

    def _pod_tolerates_now(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE if new.uid == pod.uid and self._tolerates(new) else Hint.SKIP
