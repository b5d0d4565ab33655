"""Lets equal parts of many objects be one part: the pods of a template differ in little more than name and node.

That takes a fifth of the memory of a pod, and parts that are the same object are compared without looking at them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct, structs

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node, NodeStatus
from trio_sched.objects.pod import Pod, PodStatus

V = TypeVar("V")

_MAX_VALUES = 1024
"""Of a table, in each of its two generations."""
_MAX_KEY_BYTES = 4096
"""Larger parts are not shared: they would have to be held twice."""

# JSON, because MessagePack has no integers of more than 64 bits; as bytes, because dicts cannot be hashed.
_encode = msgspec.json.Encoder().encode
_replace_in_place = structs.force_setattr


class SharedValues(Generic[V]):
    """Gives for each value the first one that had the same key.

    What nobody asked for while many other values came is forgotten, so that nothing is held for what is long gone:
    values are in two generations, and those asked for move to the newer one.
    """

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self._new: dict[Hashable, V] = {}
        self._old: dict[Hashable, V] = {}

    def first(self, key: Hashable, value: V) -> V:
        """The value to use instead of *value*, which has this *key*."""
        known = self._new.get(key)
        if known is not None:
            return known
        known = self._old.get(key, value)
        if len(self._new) >= _MAX_VALUES:
            self._old, self._new = self._new, {}
        self._new[key] = known
        return known


_Tables = Mapping[str, SharedValues[object]]

_texts: SharedValues[str] = SharedValues()
_text_maps: SharedValues[object] = SharedValues()
_containers: SharedValues[object] = SharedValues()
_amounts: SharedValues[object] = SharedValues()
_images: SharedValues[object] = SharedValues()

# A table for each type: the JSON does not say of which one it is.
_METADATA: _Tables = {"labels": _text_maps, "annotations": _text_maps, "owner_references": SharedValues()}
_POD_SPEC: _Tables = {
    "containers": _containers,
    "init_containers": _containers,
    "overhead": _amounts,
    "node_selector": _text_maps,
    "affinity": SharedValues(),
    "tolerations": SharedValues(),
    "topology_spread_constraints": SharedValues(),
    "volumes": SharedValues(),
}
_POD_STATUS: _Tables = {"conditions": SharedValues(), "container_statuses": SharedValues()}
_NODE_SPEC: _Tables = {"taints": SharedValues()}
_NODE_STATUS: _Tables = {"allocatable": _amounts, "capacity": _amounts, "conditions": SharedValues()}
_POD_SPEC_TEXTS = ("scheduler_name", "priority_class_name", "preemption_policy")


def share_pod(pod: Pod, known: Pod | None) -> Pod:
    """*pod*, just decoded, with parts of other pods and of *known*, its version before, instead of equal ones."""
    spec, status = pod.spec, pod.status
    _share_metadata(pod.metadata, known)
    if known is not None and known.spec == spec:
        _replace_in_place(pod, "spec", known.spec)
    else:
        _share_texts(spec, _POD_SPEC_TEXTS)
        _share(spec, _POD_SPEC)
    if known is not None and known.status == status:
        _replace_in_place(pod, "status", known.status)
    else:
        _share_pod_status(status)
    return pod


def share_node(node: Node, known: Node | None) -> Node:
    """*node*, just decoded, with parts of other nodes and of *known*, its version before, instead of equal ones."""
    _share_metadata(node.metadata, known)
    if known is not None and known.spec == node.spec:
        _replace_in_place(node, "spec", known.spec)
    else:
        _share(node.spec, _NODE_SPEC)
    if known is not None and known.status == node.status:
        _replace_in_place(node, "status", known.status)
    else:
        _share_node_status(node.status)
    return node


def _share_metadata(metadata: ObjectMeta, known: Pod | Node | None) -> None:
    if known is None:
        _share_texts(metadata, ("namespace",))
        _share(metadata, _METADATA)
        return
    before = known.metadata
    for name in ("name", "namespace", "uid"):  # which are keys of many tables
        if getattr(before, name) == getattr(metadata, name):
            _replace_in_place(metadata, name, getattr(before, name))
    for name, table in _METADATA.items():
        value = getattr(metadata, name)
        if value is not None:
            of_before = getattr(before, name)
            _replace_in_place(metadata, name, of_before if of_before == value else _first(table, value))


def _share_pod_status(status: PodStatus) -> None:
    _share_texts(status, ("phase",))
    conditions = status.conditions
    _share(status, _POD_STATUS)
    if conditions is not None and status.conditions is conditions:
        # There are none like these, because of their timestamps.
        for condition in conditions:
            _share_texts(condition, ("type", "status", "last_transition_time"))


def _share_node_status(status: NodeStatus) -> None:
    _share(status, _NODE_STATUS)
    if status.images:  # a node has fifty, but seldom the same fifty
        _replace_in_place(status, "images", tuple([_first(_images, image) for image in status.images]))


def _share(part: Struct, tables: _Tables) -> None:
    for name, table in tables.items():
        value = getattr(part, name)
        if value is not None:
            _replace_in_place(part, name, _first(table, value))


def _share_texts(part: Struct, names: tuple[str, ...]) -> None:
    for name in names:
        text = getattr(part, name)
        if text:
            _replace_in_place(part, name, _texts.first(text, text))


def _first(table: SharedValues[object], value: object) -> object:
    key = _encode(value)
    return value if len(key) > _MAX_KEY_BYTES else table.first(key, value)
