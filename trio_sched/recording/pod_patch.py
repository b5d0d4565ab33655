"""What has changed of a pod: a pod changes some times in its life, and then hardly more than its status."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod, PodSpec, PodStatus


class PodPatch(Struct, frozen=True, gc=False, array_like=True):
    """A pod with another version; what is None, or empty, is as it was."""

    name: str = ""
    namespace: str = ""
    version: str = ""
    labels: Mapping[str, str] | None = None
    """Labels that it did not have, or with other values, if nothing else of *metadata* has changed."""
    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None
    node: str = ""
    """The node, if nothing else of *spec* has changed."""
    status: PodStatus | None = None


def patch_of(old: Pod, new: Pod) -> PodPatch:
    """What makes *new* of *old*; parts that are one object in both have not changed, and most of them are."""
    was, metadata = old.metadata, new.metadata
    version, labels = metadata.resource_version, None
    changed_metadata: ObjectMeta | None = metadata
    if structs.replace(was, resource_version=version, labels=metadata.labels) == metadata:
        labels = _added(was.labels or {}, metadata.labels or {})
        if labels is not None:
            changed_metadata = None
    spec, node = new.spec, ""
    changed_spec: PodSpec | None = spec
    if spec.node_name != old.spec.node_name:
        if spec.node_name and structs.replace(old.spec, node_name=spec.node_name) == spec:
            changed_spec, node = None, spec.node_name
    elif spec is old.spec or spec == old.spec:
        changed_spec = None
    status = new.status if new.status is not old.status and new.status != old.status else None
    return PodPatch(was.name, was.namespace, version, labels or None, changed_metadata, changed_spec, node, status)


def _added(old: Mapping[str, str], new: Mapping[str, str]) -> Mapping[str, str] | None:
    """The labels of *new* that differ from *old*, an API server adds some on binding; None if there are labels less."""
    if old.keys() - new:
        return None
    return {name: text for name, text in new.items() if old.get(name) != text}


def patched(old: Pod, patch: PodPatch) -> Pod:
    """*old* with *patch*."""
    metadata, spec = patch.metadata, patch.spec
    if metadata is None:
        metadata, labels = old.metadata, patch.labels
        labels = {**(metadata.labels or {}), **labels} if labels else metadata.labels
        metadata = structs.replace(metadata, resource_version=patch.version, labels=labels)
    if spec is None:
        spec = structs.replace(old.spec, node_name=patch.node) if patch.node else old.spec
    return Pod(metadata, spec, old.status if patch.status is None else patch.status)
