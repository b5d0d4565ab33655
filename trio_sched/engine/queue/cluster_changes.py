"""From two versions of an object to the events that say what changed.

Source: event derivation of the scheduling framework in Kubernetes 1.36 and 1.37, order and repetitions included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

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
    for resource in (Resource.ASSIGNED_POD, Resource.TARGET_POD, Resource.UNSCHEDULABLE_POD, Resource.NODE)
    for action in Action.__members__.values()
}


@frozen
class PodEvents:
    """The events about pods without a node; their labels are put together once, as they are read for every such pod."""

    other: str = Resource.UNSCHEDULABLE_POD
    """What the events are about that tell that one comes or goes."""
    target: str = Resource.UNSCHEDULABLE_POD
    """What those are about that tell the pod itself that it has changed."""
    has_scale_up: bool = False
    """Whether it is an event of its own that a pod requests more, with a node or without."""
    added: ClusterEvent = field(init=False)
    updated: ClusterEvent = field(init=False)
    """One changed that was in no queue."""
    deleted: ClusterEvent = field(init=False)
    added_label: str = field(init=False)
    updated_label: str = field(init=False)
    deleted_label: str = field(init=False)

    @added.default
    def _make_added(self) -> ClusterEvent:
        return ClusterEvent(self.other, Action.ADD)

    @updated.default
    def _make_updated(self) -> ClusterEvent:
        return ClusterEvent(self.other, Action.UPDATE)

    @deleted.default
    def _make_deleted(self) -> ClusterEvent:
        return ClusterEvent(self.other, Action.DELETE)

    @added_label.default
    def _make_added_label(self) -> str:
        return self.added.label

    @updated_label.default
    def _make_updated_label(self) -> str:
        return self.updated.label

    @deleted_label.default
    def _make_deleted_label(self) -> str:
        return self.deleted.label


POD_EVENTS: Final = PodEvents()
"""Those before 1.37."""
SPLIT_POD_EVENTS: Final = PodEvents(Resource.UNSCHEDULED_POD, Resource.TARGET_POD, has_scale_up=True)
"""Those since 1.37."""


def pod_update_events(
    old: Pod, new: Pod, options: ResourceOptions = DEFAULT_OPTIONS, events: PodEvents = POD_EVENTS
) -> list[ClusterEvent]:
    """What an update of a pod is turned into; a generic update if nothing in particular changed."""
    resource = Resource.ASSIGNED_POD if new.spec.node_name else events.target
    if old.spec == new.spec and old.status == new.status and old.metadata.labels == new.metadata.labels:
        return [_EVENTS[resource, Action.UPDATE]]  # nearly every update: of something that is not decoded
    actions: list[Action] = []
    if old.labels != new.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if not has_same_resources(old, new):  # saves adding up requests twice
        before, after = _milli_requests(old, options), _milli_requests(new, options)
        if _is_less(after, before):
            actions.append(Action.UPDATE_POD_SCALE_DOWN)
        if events.has_scale_up and _is_less(before, after):
            actions.append(Action.UPDATE_POD_SCALE_UP)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations or ()) != len(new.spec.tolerations or ()):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if (old.status.resource_claim_statuses or ()) != (
        new.status.resource_claim_statuses or ()
    ) or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status:
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [_EVENTS[resource, action] for action in actions or [Action.UPDATE]]


def annotation_event(old: Pod, new: Pod, events: PodEvents = POD_EVENTS) -> ClusterEvent | None:
    """The event about other annotations of a pod, which kube-scheduler does not have; None if they are the same."""
    if (old.metadata.annotations or {}) == (new.metadata.annotations or {}):
        return None
    resource = Resource.ASSIGNED_POD if new.spec.node_name else events.target
    return _EVENTS[resource, Action.UPDATE_POD_ANNOTATION]


def _milli_requests(pod: Pod, options: ResourceOptions) -> dict[str, int]:
    return {name: to_milli(amount) for name, amount in nano_requests(pod, options, use_status=True).items()}


def _is_less(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Whether there is less of anything in *one*."""
    return any(name not in one or one[name] < amount for name, amount in other.items())


def node_update_events(
    old: Node, new: Node, *, declared_features: bool = True, preemption_policies: bool = False
) -> list[ClusterEvent]:
    """What an update of a node is turned into; nothing if it cannot matter to a pod.

    Args:
        old: the node before.
        new: the node after.
        declared_features: gate NodeDeclaredFeatures.
        preemption_policies: whether it is an event that another preemption policy holds on the node, as since 1.37.
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
    if preemption_policies and old.spec.pod_preemption_policy != new.spec.pod_preemption_policy:
        actions.append(Action.UPDATE_NODE_PREEMPTION_POLICY)
    return [_EVENTS[Resource.NODE, action] for action in actions]


def _has_same_texts(old: Node, new: Node) -> bool:
    before, after = old.metadata, new.metadata
    return before.labels == after.labels and before.annotations == after.annotations


def _amounts(quantities: Mapping[str, Quantity] | None) -> dict[str, int]:
    return {name: parse_nano(quantity) for name, quantity in (quantities or {}).items()}


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions or ()}
