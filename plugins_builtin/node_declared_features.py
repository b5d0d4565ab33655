"""NodeDeclaredFeatures: pods that need a kubelet feature go where it is declared."""

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from trio_sched.plugin_api import (
    SKIP,
    Action,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Node,
    NodeColumns,
    Pod,
    Resource,
    Status,
    Verdicts,
    hookimpl,
    on,
    unresolvable,
)

REASON = "node(s) didn't match Pod's required features"
_RESTART_ALL = "RestartAllContainersOnContainerExits"
_HOST_NETWORK_USERS = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures:
    """Turns away nodes whose ``status.declaredFeatures`` lack what the pod needs."""

    name: ClassVar[str] = "NodeDeclaredFeatures"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Nothing to do for pods that need nothing special."""
        return None if _required_features(pod) else SKIP

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes that do not declare all of it fail."""
        required = _required_features(pod)
        passes = np.fromiter((required <= set(declared) for declared in nodes.feature_lists), dtype=np.bool_)
        return Verdicts.where(passes[nodes.feature_sets], unresolvable(REASON))

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """What it needs."""
        return _required_features(pod)

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A node declares something else, or the pod needs something else."""
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _node_declares_something_else),
            on(Resource.POD, Action.UPDATE, _pod_needs_something_else),
        ]


def _required_features(pod: Pod) -> frozenset[str]:
    spec, required = pod.spec, set()
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        if any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules or ()):
            required.add(_RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        required.add(_HOST_NETWORK_USERS)
    return frozenset(required)


def _node_declares_something_else(pod: Pod, old: Node | None, new: Node) -> Hint:
    if old is None or (old.status.declared_features or ()) != (new.status.declared_features or ()):
        return Hint.QUEUE
    return Hint.SKIP


def _pod_needs_something_else(pod: Pod, old: Pod, new: Pod) -> Hint:
    changed = new.uid == pod.uid and _required_features(old) != _required_features(new)
    return Hint.QUEUE if changed else Hint.SKIP
