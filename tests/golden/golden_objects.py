"""From the JSON of a recording to the objects and events that trio-sched works with."""

from collections.abc import Mapping
from typing import Any

import msgspec

from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Action, ClusterEvent

_TYPES: dict[str, type[Any]] = {"Pod": Pod, "Node": Node, **{name: kind.type for name, kind in KINDS.items()}}
ACTIONS = {
    "Add": Action.ADD,
    "Delete": Action.DELETE,
    "UpdateNodeAllocatable": Action.UPDATE_NODE_ALLOCATABLE,
    "UpdateNodeLabel": Action.UPDATE_NODE_LABEL,
    "UpdateNodeTaint": Action.UPDATE_NODE_TAINT,
    "UpdateNodeCondition": Action.UPDATE_NODE_CONDITION,
    "UpdateNodeAnnotation": Action.UPDATE_NODE_ANNOTATION,
    "UpdateNodeDeclaredFeature": Action.UPDATE_NODE_DECLARED_FEATURE,
    "UpdatePodLabel": Action.UPDATE_POD_LABEL,
    "UpdatePodScaleDown": Action.UPDATE_POD_SCALE_DOWN,
    "UpdatePodToleration": Action.UPDATE_POD_TOLERATION,
    "UpdatePodSchedulingGatesEliminated": Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    "UpdatePodGeneratedResourceClaim": Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
    "Update": Action.UPDATE,
    "All": Action.ALL,
}


def pod_of(recorded: Mapping[str, Any]) -> Pod:
    return msgspec.convert(recorded, Pod)


def node_of(recorded: Mapping[str, Any]) -> Node:
    return msgspec.convert(recorded, Node)


def object_of(recorded: Mapping[str, Any] | None) -> Any:
    """As the watches would show it; None stays None."""
    return None if recorded is None else msgspec.convert(recorded, _TYPES.get(recorded["kind"], AnyObject))


def event_of(recorded: Mapping[str, Any]) -> ClusterEvent:
    action = Action(0)
    for name in recorded["actionType"]:
        action |= ACTIONS[name]
    event = ClusterEvent(recorded["resource"], action)
    label = recorded.get("label")
    return event if label in (None, "", event.label) else ClusterEvent(event.resource, event.action, label)


def merged(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """*target* after the JSON merge patch *patch*."""
    found = dict(target)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, Mapping):
            found[name] = merged(found.get(name) or {}, value)
        else:
            found[name] = value
    return found
