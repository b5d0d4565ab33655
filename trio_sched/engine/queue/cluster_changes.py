"""From two versions of an object to the events that say what changed.

Source: event derivation of the scheduling framework in Kubernetes 1.36, order and repetitions included.
"""

from __future__ import annotations

from collections.abc import Mapping

from trio_sched.objects.amounts.quantity import Quantity, parse_nano, to_milli
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import DEFAULT_OPTIONS, ResourceOptions, has_same_resources, nano_requests
from trio_sched.plugin_api.cluster_events import Action, ClusterEvent, Resource

ASSIGNED_POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_UPDATE = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE)
ASSIGNED_POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_DELETE = ClusterEvent(Resource.NODE, Action.DELETE)

UNSCHEDULABLE_POD_ADD = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE)
UNSCHEDULABLE_POD_DELETE = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.DELETE)
POD_GROUP_ADD = ClusterEvent(Resource.POD_GROUP, Action.ADD)
SCHEDULE_ATTEMPT_FAILURE = ClusterEvent(Resource.WILDCARD, Action.ALL, "ScheduleAttemptFailure")
BACKOFF_COMPLETE = ClusterEvent(Resource.WILDCARD, Action.ALL, "BackoffComplete")
POP_FROM_BACKOFF = ClusterEvent(Resource.WILDCARD, Action.ALL, "PopFromBackoffQ")
FORCE_ACTIVATE = ClusterEvent(Resource.WILDCARD, Action.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.WILDCARD, Action.ALL, "UnschedulableTimeout")
PLUGIN_RETRY = ClusterEvent(Resource.WILDCARD, Action.ALL, "PluginRetry")
CONFIGURATION_CHANGE = ClusterEvent(Resource.WILDCARD, Action.ALL, "ConfigurationChange")
"""kube-scheduler has no such event: it cannot change its configuration while it runs."""

_EVENTS: dict[tuple[str, Action], ClusterEvent] = {
    (resource, action): ClusterEvent(resource, action)
    for resource in (Resource.ASSIGNED_POD, Resource.UNSCHEDULABLE_POD, Resource.NODE)
    for action in Action.__members__.values()
}


def pod_update_events(old: Pod, new: Pod, options: ResourceOptions = DEFAULT_OPTIONS) -> list[ClusterEvent]:
    """What an update of a pod is turned into; a generic update if nothing in particular changed."""
    resource = Resource.ASSIGNED_POD if new.spec.node_name else Resource.UNSCHEDULABLE_POD
    if old.spec == new.spec and old.status == new.status and old.metadata.labels == new.metadata.labels:
        return [_EVENTS[resource, Action.UPDATE]]  # nearly every update: of something that is not decoded
    actions: list[Action] = []
    if old.labels != new.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if _scaled_down(old, new, options):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations or ()) != len(new.spec.tolerations or ()):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if (old.status.resource_claim_statuses or ()) != (
        new.status.resource_claim_statuses or ()
    ) or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status:
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [_EVENTS[resource, action] for action in actions or [Action.UPDATE]]


def annotation_event(old: Pod, new: Pod) -> ClusterEvent | None:
    """The event about other annotations of a pod, which kube-scheduler does not have; None if they are the same."""
    if (old.metadata.annotations or {}) == (new.metadata.annotations or {}):
        return None
    resource = Resource.ASSIGNED_POD if new.spec.node_name else Resource.UNSCHEDULABLE_POD
    return _EVENTS[resource, Action.UPDATE_POD_ANNOTATION]


def _scaled_down(old: Pod, new: Pod, options: ResourceOptions) -> bool:
    if has_same_resources(old, new):
        return False  # saves adding up requests twice
    before = nano_requests(old, options, use_status=True)
    after = nano_requests(new, options, use_status=True)
    return any(name not in after or to_milli(amount) > to_milli(after[name]) for name, amount in before.items())


def node_update_events(old: Node, new: Node, *, declared_features: bool = True) -> list[ClusterEvent]:
    """What an update of a node is turned into; nothing if it cannot matter to a pod.

    Args:
        old: the node before.
        new: the node after.
        declared_features: gate NodeDeclaredFeatures.
    """
    if old.status == new.status and old.spec == new.spec and _has_same_texts(old, new):
        return []  # a heartbeat: its timestamps are not decoded
    actions: list[Action] = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(Action.UPDATE_NODE_TAINT)
    if _amounts(old.status.allocatable) != _amounts(new.status.allocatable):
        actions.append(Action.UPDATE_NODE_ALLOCATABLE)
    if old.labels != new.labels:
        actions.append(Action.UPDATE_NODE_LABEL)
    if (old.spec.taints or ()) != (new.spec.taints or ()):
        actions.append(Action.UPDATE_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        actions.append(Action.UPDATE_NODE_CONDITION)
    if (old.metadata.annotations or {}) != (new.metadata.annotations or {}):
        actions.append(Action.UPDATE_NODE_ANNOTATION)
    if declared_features and (old.status.declared_features or ()) != (new.status.declared_features or ()):
        actions.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return [_EVENTS[Resource.NODE, action] for action in actions]


def _has_same_texts(old: Node, new: Node) -> bool:
    before, after = old.metadata, new.metadata
    return before.labels == after.labels and before.annotations == after.annotations


def _amounts(quantities: Mapping[str, Quantity] | None) -> dict[str, int]:
    return {name: parse_nano(quantity) for name, quantity in (quantities or {}).items()}


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions or ()}
