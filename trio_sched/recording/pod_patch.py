"""What has changed of a pod: a pod changes some times in its life, and then hardly more than its status."""

from __future__ import annotations

from msgspec import Struct, structs

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod, PodSpec, PodStatus


class PodPatch(Struct, frozen=True, gc=False, array_like=True):
    """A pod with another version; what is None, or empty, is as it was."""

    name: str = ""
    namespace: str = ""
    version: str = ""
    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None
    node: str = ""
    """The node, if nothing else of *spec* has changed."""
    status: PodStatus | None = None


def patch_of(old: Pod, new: Pod) -> PodPatch:
    """What makes *new* of *old*; parts that are one object in both have not changed, and most of them are."""
    was, metadata, spec = old.metadata, new.metadata, new.spec
    version = metadata.resource_version
    changed_metadata = changed_spec = None
    node = ""
    if structs.replace(was, resource_version=version) != metadata:
        changed_metadata = metadata
    if spec is not old.spec and spec != old.spec:
        if spec.node_name and structs.replace(old.spec, node_name=spec.node_name) == spec:
            node = spec.node_name
        else:
            changed_spec = spec
    status = new.status if new.status is not old.status and new.status != old.status else None
    return PodPatch(was.name, was.namespace, version, changed_metadata, changed_spec, node, status)


def patched(old: Pod, patch: PodPatch) -> Pod:
    """*old* with *patch*."""
    metadata, spec = patch.metadata, patch.spec
    if metadata is None:
        metadata = structs.replace(old.metadata, resource_version=patch.version)
    if spec is None:
        spec = structs.replace(old.spec, node_name=patch.node) if patch.node else old.spec
    return Pod(metadata, spec, old.status if patch.status is None else patch.status)
