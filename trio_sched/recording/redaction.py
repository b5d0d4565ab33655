"""What of an object is written into a recording: nothing that no scheduler reads, and no contents of secrets.

The classes of `trio_sched.objects` have neither environment variables nor commands. What is taken out here: the data of
ConfigMaps and Secrets, annotations unless they are named, and of the objects that plugins declare themselves whatever
is called as in a pod's containers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from attrs import define, field
from msgspec import Struct, structs

from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.changes import Change
from trio_sched.objects.config_map import ConfigMap
from trio_sched.objects.copies import encode
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.storage.persistent_volume import CLASS_ANNOTATION
from trio_sched.plugin_api.custom_resources import CustomObject, CustomResource, Watched
from trio_sched.recording.pod_patch import patch_of
from trio_sched.recording.records import PATCHED
from trio_sched.snapshot.devices.claim_cache import EXTENDED_RESOURCE_CLAIM

READ_ANNOTATIONS: Final = (
    CLASS_ANNOTATION,
    EXTENDED_RESOURCE_CLAIM,
    "pv.kubernetes.io/*",
    "storage.alpha.kubernetes.io/migrated-plugins",
    "storageclass.kubernetes.io/is-default-class",
    "volume.kubernetes.io/selected-node",
)
"""The annotations that built-in plugins read; ``*`` at the end stands for any text."""

_NEVER: Final = frozenset(
    {
        "annotations",
        "args",
        "binaryData",
        "command",
        "data",
        "env",
        "envFrom",
        "imagePullSecrets",
        "managedFields",
        "stringData",
    }
)
"""Fields of objects without a class of their own that are not written, however deep they are."""


@define(eq=False)
class Redaction:
    """Encodes objects without what is not to be written.

    Args:
        annotations: names of annotations that are written, besides those that built-in plugins read; ``*`` at the end
            stands for any text.
    """

    _annotations: Collection[str] = ()
    _names: frozenset[str] = field(init=False)
    _prefixes: tuple[str, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        wanted = [*READ_ANNOTATIONS, *self._annotations]
        self._names = frozenset(name for name in wanted if not name.endswith("*"))
        self._prefixes = tuple(name[:-1] for name in wanted if name.endswith("*"))

    def encode(self, kind: Watched, one: Any) -> bytes:
        """An object of *kind* as JSON; only its metadata if it cannot be written."""
        if isinstance(one, Pod | Node):  # nearly all are
            return encode(one if not one.metadata.annotations else self._without_annotations(one))
        metadata = self._metadata(one.metadata)
        if isinstance(one, ConfigMap) or (isinstance(kind, CustomResource) and _is_secret(kind)):
            return encode({"metadata": metadata})
        try:
            if isinstance(one, CustomObject):
                return encode({**_without(one.fields), "metadata": metadata})
            if isinstance(one, AnyObject):
                one = structs.replace(one, spec=_without(one.spec), status=_without(one.status))
            elif isinstance(kind, CustomResource):
                return encode({**_without(msgspec.to_builtins(one)), "metadata": metadata})
            return encode(self._without_annotations(one))
        except Exception:  # a class of a plugin may have values that JSON does not know, or raise anything
            return encode({"metadata": metadata})

    def encode_change(self, kind: Watched, change: Change[Any]) -> tuple[str, bytes]:
        """A change of an object of *kind*; see `trio_sched.recording.records.Changed.changes`."""
        old, new = change.old, change.new
        if change.type == "DELETED":
            return "DELETED", self.encode_deleted(change.subject)
        if change.type == "MODIFIED" and isinstance(old, Pod) and isinstance(new, Pod):
            patch = patch_of(old, new)
            if patch.metadata is not None:
                patch = structs.replace(patch, metadata=self._metadata(patch.metadata))
            return PATCHED, encode(patch)
        return change.type, self.encode(kind, new)

    def encode_deleted(self, one: Any) -> bytes:
        """What is needed to know which object was deleted."""
        metadata: ObjectMeta = one.metadata
        return encode(_Gone(ObjectMeta(metadata.name, metadata.namespace, metadata.uid)))

    def _without_annotations(self, one: Any) -> Any:
        return structs.replace(one, metadata=self._metadata(one.metadata))

    def _metadata(self, metadata: ObjectMeta) -> ObjectMeta:
        if not metadata.annotations:
            return metadata
        kept = {
            name: text
            for name, text in metadata.annotations.items()
            if name in self._names or name.startswith(self._prefixes)
        }
        return structs.replace(metadata, annotations=kept or None)


class _Gone(Struct, frozen=True):
    metadata: ObjectMeta


def _is_secret(kind: CustomResource[Any]) -> bool:
    return not kind.group and kind.plural in ("secrets", "configmaps")


def _without(value: Any) -> Any:
    """*value*, as in JSON, without the fields that are never written."""
    if isinstance(value, Mapping):
        return {name: _without(one) for name, one in value.items() if name not in _NEVER}
    return [_without(one) for one in value] if isinstance(value, list | tuple) else value
