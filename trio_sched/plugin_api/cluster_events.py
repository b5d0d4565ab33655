"""Cluster events, and the registrations of plugins for events that may make a rejected pod schedulable.

Source: cluster events of the scheduling framework in Kubernetes 1.36 and 1.37; bit values are those of 1.36 because
matching compares them numerically. Actions that came with 1.37 have bits behind these.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntFlag
from typing import Any

from attrs import frozen

from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import CustomResource


class Action(IntFlag):
    """What happened to an object."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    """Any update; as an event: an update of another kind than those above."""
    ALL = 8191
    UPDATE_POD_ANNOTATION = 8192
    """kube-scheduler has no such action: neither `UPDATE` nor `ALL` contains it, and only who names it is told."""
    UPDATE_NODE_PREEMPTION_POLICY = 16384
    """An event since 1.37, of which who registers for `UPDATE` is told, too; likewise the next one."""
    UPDATE_POD_SCALE_UP = 32768


_ACTION_NAMES = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_NODE_PREEMPTION_POLICY: "UpdateNodePreemptionPolicy",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_SCALE_UP: "UpdatePodScaleUp",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE: "Update",
    Action.ALL: "All",
    Action.UPDATE_POD_ANNOTATION: "UpdatePodAnnotation",
}


class Resource:
    """The kinds of objects that events are about; others are ``plural.version.group`` or `CustomResource`.

    ``TARGET_POD`` is the rejected pod itself, whose changes hints are told, ``UNSCHEDULED_POD`` another one without a
    node, ``UNSCHEDULABLE_POD`` both, ``POD`` all; each holds whichever version is emulated. That other pods without a
    node change or go is no event, nor that they come unless the gate GangScheduling is on: a plugin that needs to know
    looks at ``Handle.version("Pod")`` in its ``run``, or is told of each new one by ``pre_enqueue``, and has others
    tried by ``Handle.activate`` or ``Handle.retry_after``.
    """

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    TARGET_POD = "TargetPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
    WILDCARD = "*"


PODS = (Resource.POD, Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD, Resource.TARGET_POD, Resource.UNSCHEDULABLE_POD)
"""The resources that are pods."""
_SINCE_1_37 = (Action.UPDATE_NODE_PREEMPTION_POLICY, Action.UPDATE_POD_SCALE_UP)
_UNASSIGNED = (Resource.UNSCHEDULED_POD, Resource.TARGET_POD, Resource.UNSCHEDULABLE_POD)


@frozen
class ClusterEvent:
    """Something that happened, or in a registration: a class of such events."""

    resource: str
    action: Action
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The name in metrics and logs, ``AssignedPodDelete`` for instance."""
        return self.custom_label or f"{self.resource}{_ACTION_NAMES.get(self.action, '')}"

    @property
    def is_wildcard(self) -> bool:
        """Whether this matches every event."""
        return self.resource == Resource.WILDCARD and self.action == Action.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """Whether *incoming* is an instance of this registered event.

        A generic update only matches a registration of all updates: hence the numeric comparison.
        """
        own = self.action & Action.ALL  # what kube-scheduler knows is compared as it does
        if incoming.action in _SINCE_1_37:
            own = incoming.action if Action.UPDATE in self.action else self.action & incoming.action
        if incoming.action == Action.UPDATE_POD_ANNOTATION:
            own = self.action & incoming.action
        elif self.is_wildcard:
            return True
        return self._includes(incoming) and bool(own & incoming.action) and incoming.action <= own

    def _includes(self, incoming: ClusterEvent) -> bool:
        """Whether the resource of *incoming* is that of this registered event, or one kind of it."""
        resource = incoming.resource
        if self.resource in (Resource.WILDCARD, resource):
            return True
        if self.resource == Resource.POD:
            return resource in PODS
        if self.resource == Resource.UNSCHEDULABLE_POD:
            return resource in _UNASSIGNED
        if resource == Resource.UNSCHEDULABLE_POD:  # before 1.37, changes of the pod itself are called so, too
            comes_or_goes = incoming.action in (Action.ADD, Action.DELETE)
            return self.resource == (Resource.UNSCHEDULED_POD if comes_or_goes else Resource.TARGET_POD)
        return False


class Hint(Enum):
    """Whether an event is worth another attempt."""

    QUEUE = "Queue"
    """It is."""
    SKIP = "QueueSkip"
    """The pod would be rejected again."""


HintFunction = Callable[[Pod, Any, Any], Hint]
"""``hint(pod, old, new)``: *old* is None for an added object, *new* for a deleted one. A failure counts as QUEUE."""


@frozen
class EventRegistration:
    """Events after which pods that this plugin rejected may fit; without a *hint* each is worth an attempt.

    With *node_local* the deletion of a pod is worth one only if the plugin's filter passes on the node of that pod now,
    beside the pods nominated there, and without those that the pending pod may preempt: for filters that judge a node
    by what is on it. It spares hundreds of pending pods an attempt that must fail, and their hints.
    """

    event: ClusterEvent
    hint: HintFunction | Hint | None = None
    """Called for every pod; or what it would return for any."""
    node_local: bool = False
    custom_resource: CustomResource[Any] | None = None
    """What the event is about, if that is a custom resource: hints get objects of its type."""


def on(
    resource: str | CustomResource[Any],
    action: Action,
    hint: HintFunction | Hint | None = None,
    *,
    node_local: bool = False,
) -> EventRegistration:
    """The registration for *action* on *resource*, for `events_to_register`; see `EventRegistration`."""
    if isinstance(resource, CustomResource):
        event = ClusterEvent(resource.resource, action)
        return EventRegistration(event, hint, node_local, resource)
    return EventRegistration(ClusterEvent(resource, action), hint, node_local)
