"""What has to happen so that a pending pod is tried again, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from trio_sched.engine.queue.queueing_hints import HintTable
from trio_sched.plugin_api.cluster_events import Action, ClusterEvent

_WORDS: Final = {
    ("Pod", Action.DELETE): "a pod is deleted",
    ("Pod", Action.ADD): "a pod is placed",
    ("Pod", Action.UPDATE_POD_LABEL): "labels of a pod change",
    ("Pod", Action.UPDATE_POD_SCALE_DOWN): "a pod asks for less",
    ("Pod", Action.UPDATE_POD_TOLERATION): "it tolerates more",
    ("Pod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED): "its gates are removed",
    ("Node", Action.UPDATE_NODE_ALLOCATABLE): "a node grows",
    ("Node", Action.UPDATE_NODE_LABEL): "labels of a node change",
    ("Node", Action.UPDATE_NODE_CONDITION): "conditions of a node change",
    ("Node", Action.UPDATE_NODE_TAINT): "a node is uncordoned or loses a taint",
    ("Node", Action.ADD): "a node is added",
}
"""What is special of a plugin first: nearly all of them wait for new nodes."""
_MOST: Final = 4


def wake_events(hints: HintTable, plugins: Iterable[str]) -> list[str]:
    """The events that *plugins*, which rejected a pod, wait for; of several kinds those of nodes and pods.

    Args:
        hints: the events that plugins have registered.
        plugins: their events come in this order.
    """
    found: dict[str, None] = {}
    for plugin in plugins:
        of_plugin = {text for event in hints.events_of(plugin) for text in _in_words(event)}
        usual = [text for text in _WORDS.values() if text in of_plugin]
        found.update(dict.fromkeys(usual or sorted(of_plugin)))
    usual = [text for text in found if text in _WORDS.values()]
    return (usual or list(found))[:_MOST]


def _in_words(event: ClusterEvent) -> list[str]:
    kind = event.resource.rpartition("/")[2]
    words = [text for (resource, action), text in _WORDS.items() if resource == kind and event.action & action]
    if words or kind in ("Node", "Pod"):
        return words
    verb = (
        "is added or changes" if event.action & Action.UPDATE else "is added" if event.action & Action.ADD else "goes"
    )
    return [f"a {kind.partition('.')[0]} {verb}"]
