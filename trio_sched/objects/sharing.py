"""Lets equal parts of many objects be one part: the pods of a template differ in little more than name and node.

That takes a fifth of the memory of a pod, and parts that are the same object are compared without looking at them.

What no object has any more is forgotten by `forget_unused`, which is to be called now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from operator import attrgetter
from sys import getrefcount
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, structs

from trio_sched.documents.json_values import encode
from trio_sched.objects.node import Node, NodeStatus
from trio_sched.objects.pod import Pod, PodStatus
from trio_sched.objects.pod_groups.workload_groups import join_group, stay_in_group

S = TypeVar("S", bound=Struct)
T = TypeVar("T", Pod, Node)
V = TypeVar("V")

_MAX_VALUES = 1024
"""How many values a table has, in each of its two generations."""
_MAX_BYTES = 1 << 20
"""How much the keys of a generation take; the values take a few times as much."""
_MAX_KEY_BYTES = 4096
"""Larger parts are not shared: they would have to be held twice."""

_replace_in_place = structs.force_setattr
_NOTHING: Final[Iterable[None]] = repeat(None)


class SharedValues(Generic[V]):
    """Gives for each value the first one that had the same key.

    What nobody asked for while many other values came is forgotten, so that nothing is held for what is long gone:
    values are in two generations, and those asked for move to the newer one.

    Attributes:
        newer: what was asked for lately, by key; for those who cannot afford a call.
    """

    __slots__ = ("_newer_bytes", "_older", "newer")

    def __init__(self) -> None:
        self.newer: dict[bytes | str, V] = {}
        self._older: dict[bytes | str, V] = {}
        self._newer_bytes = 0

    def first(self, key: bytes | str, value: V) -> V:
        """The value to use instead of *value*, which has this *key*; a text can be its own."""
        shared = self.newer.get(key)
        if shared is not None or len(key) > _MAX_KEY_BYTES:
            return value if shared is None else shared
        shared = self._older.get(key, value)
        if len(self.newer) >= _MAX_VALUES or self._newer_bytes > _MAX_BYTES:
            self._older, self.newer, self._newer_bytes = self.newer, {}, 0
        self.newer[key] = shared
        self._newer_bytes += len(key)
        return shared

    def forget_unused(self, used_part: Callable[[V], object] | None = None) -> None:
        """Forget the values of which nothing else refers to the *used_part*, or to themselves, any more."""
        self._older = {key: value for key, value in self._older.items() if key not in self.newer}
        for values in (self._older, self.newer):
            # One reference is the table's, one that of the call; a text that is its own key has two more.
            if used_part is None:
                unused = [key for key in values if getrefcount(values[key]) <= (4 if values[key] is key else 2)]
            else:
                unused = [key for key in values if getrefcount(used_part(values[key])) <= 2]
            for key in unused:
                del values[key]
        self._newer_bytes = sum(map(len, self.newer))


class _Tables:
    """The tables of the fields of a struct; None: a field is only ever the same as in the version before.

    Attributes:
        fields: names, and their tables.
        read: gives the values of all of them, in one call: this is done for every version of every pod.
    """

    __slots__ = ("fields", "read")

    def __init__(self, tables: Mapping[str, SharedValues[object] | None]) -> None:
        self.fields = tuple(tables.items())
        names = tuple(tables)
        self.read: Callable[[Struct], tuple[Any, ...]] = attrgetter(*names, names[0])  # a tuple even for one field


# A table for each type: the JSON does not say of which one it is.
_texts: SharedValues[object] = SharedValues()
_text_maps: SharedValues[object] = SharedValues()
_containers: SharedValues[object] = SharedValues()
_amounts: SharedValues[object] = SharedValues()
_images: SharedValues[object] = SharedValues()
_METADATA = _Tables(
    {
        "name": None,
        "namespace": _texts,
        "uid": None,
        "labels": _text_maps,
        "annotations": _text_maps,
        "owner_references": SharedValues(),
        "finalizers": SharedValues(),
    }
)
_POD_SPEC = _Tables(
    {
        "scheduler_name": _texts,
        "priority_class_name": _texts,
        "runtime_class_name": _texts,
        "preemption_policy": _texts,
        "containers": _containers,
        "init_containers": _containers,
        "overhead": _amounts,
        "node_selector": _text_maps,
        "affinity": SharedValues(),
        "tolerations": SharedValues(),
        "topology_spread_constraints": SharedValues(),
        "volumes": SharedValues(),
    }
)
_POD_STATUS = _Tables({"phase": _texts, "conditions": SharedValues(), "container_statuses": SharedValues()})
_POD_CONDITION = _Tables({"type": _texts, "status": _texts, "last_transition_time": _texts})
_NODE_SPEC = _Tables({"taints": SharedValues()})
_NODE_STATUS = _Tables({"allocatable": _amounts, "capacity": _amounts, "conditions": SharedValues()})


def forget_unused() -> None:
    """Forget the parts of pods and nodes that none of these has any more."""
    parts = (_METADATA, _POD_SPEC, _POD_STATUS, _POD_CONDITION, _NODE_SPEC, _NODE_STATUS)
    for table in {_images, *(table for part in parts for _name, table in part.fields)}:
        if table is not None:
            table.forget_unused()


def share_pod(pod: Pod, known: Pod | None) -> Pod:
    """*pod*, just decoded, with parts of other pods and of *known*, its version before, instead of equal ones.

    A reference to a workload has become a pod group.
    """
    if pod.spec.workload_ref is not None:
        join_group(pod)
    if known is None:
        _share(pod.metadata, None, _METADATA)
        _share(pod.spec, None, _POD_SPEC)
        _share_pod_status(pod.status, None)
        return pod
    _share_metadata(pod, known)
    bound = structs.replace(known.spec, node_name=pod.spec.node_name)
    if bound == pod.spec:
        _replace_in_place(pod, "spec", known.spec if known.spec.node_name == bound.node_name else bound)
    else:
        stay_in_group(pod, known)
        _share(pod.spec, known.spec, _POD_SPEC)
    if pod.status == known.status:
        _replace_in_place(pod, "status", known.status)
    else:
        _share_pod_status(pod.status, known.status)
    return pod


def share_node(node: Node, known: Node | None) -> Node:
    """*node*, just decoded, with parts of other nodes and of *known*, its version before, instead of equal ones."""
    if known is None:
        _share(node.metadata, None, _METADATA)
        _share(node.spec, None, _NODE_SPEC)
        _share_node_status(node.status, None)
        return node
    _share_metadata(node, known)
    if node.spec == known.spec:
        _replace_in_place(node, "spec", known.spec)
    if node.status == known.status:
        _replace_in_place(node, "status", known.status)
    else:
        _share_node_status(node.status, known.status)
    return node


def _share_metadata(one: T, known: T) -> None:
    """Use the parts of the metadata of *known*; nearly always all of them, except for the version."""
    metadata = one.metadata
    newer = structs.replace(known.metadata, resource_version=metadata.resource_version)
    if newer == metadata:
        _replace_in_place(one, "metadata", newer)
    else:
        _share(metadata, known.metadata, _METADATA)


def _share_pod_status(status: PodStatus, known: PodStatus | None) -> None:
    conditions = status.conditions
    _share(status, known, _POD_STATUS)
    if conditions and status.conditions is conditions:
        for condition in conditions:  # there are none like these, because of their timestamps
            _share(condition, None, _POD_CONDITION)


def _share_node_status(status: NodeStatus, known: NodeStatus | None) -> None:
    _share(status, known, _NODE_STATUS)
    if status.images:  # a node has fifty, but seldom the same fifty
        _replace_in_place(status, "images", tuple([_images.first(encode(image), image) for image in status.images]))


def _share(part: S, known: S | None, tables: _Tables) -> None:
    """Replace the fields of *part* in *tables* by equal values of *known*, or else of any other object."""
    befores = _NOTHING if known is None else tables.read(known)
    for (name, table), value, before in zip(tables.fields, tables.read(part), befores, strict=False):
        if not value:
            continue
        if before == value:
            _replace_in_place(part, name, before)
        elif table is not None:
            # JSON, because MessagePack has no integers of more than 64 bits; as bytes, because dicts cannot be hashed.
            key = value if table is _texts else encode(value)
            shared = table.newer.get(key)
            _replace_in_place(part, name, table.first(key, value) if shared is None else shared)
