"""References to objects of any kind, for events about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.event import ObjectReference
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import CustomObject, CustomResource

_KIND_OF_TYPE: Mapping[type[Any], tuple[str, str]] = {
    Pod: ("v1", "Pod"),
    Node: ("v1", "Node"),
    **{kind.type: (kind.api_version, name) for name, kind in KINDS.items()},
}


def reference_to(about: Any, declared: Mapping[str, CustomResource[Any]]) -> ObjectReference:
    """A reference to an object.

    Args:
        about: the object.
        declared: custom resources, among which that of the object is looked for.

    Raises:
        TypeError: it is not known what kind of object it is.
    """
    metadata = getattr(about, "metadata", None)
    found = _kind_of(about, declared)
    if found is None or not isinstance(metadata, ObjectMeta) or not metadata.name:
        raise TypeError(
            f"handle.record_event is about a pod, a node, or another object that was read through the handle, not "
            f"{type(about).__name__}"
        )
    api_version, kind = found
    return ObjectReference(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=api_version,
        resource_version=metadata.resource_version,
    )


def _kind_of(about: Any, declared: Mapping[str, CustomResource[Any]]) -> tuple[str, str] | None:
    """``apiVersion`` and ``kind``; None if they are not known."""
    if isinstance(about, AnyObject):
        return (about.api_version, about.kind) if about.api_version and about.kind else None
    if isinstance(about, CustomObject):
        found = about.fields.get("apiVersion"), about.fields.get("kind")
        return (found[0], found[1]) if isinstance(found[0], str) and isinstance(found[1], str) else None
    for one in declared.values():
        if type(about) is one.type:
            return one.api_version, one.kind
    return next((_KIND_OF_TYPE[base] for base in type(about).__mro__ if base in _KIND_OF_TYPE), None)
