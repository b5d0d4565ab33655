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

from trio_sched.documents.json_values import encode
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.config_map import ConfigMap
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.storage.persistent_volume import CLASS_ANNOTATION
from trio_sched.plugin_api.custom_resources import CustomObject, CustomResource, Watched
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
        metadata = self.redact_metadata(one.metadata)
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

    def redact_metadata(self, metadata: ObjectMeta) -> ObjectMeta:
        """*metadata* without the annotations that are not named."""
        if not metadata.annotations:
            return metadata
        kept = {
            name: text
            for name, text in metadata.annotations.items()
            if name in self._names or name.startswith(self._prefixes)
        }
        return structs.replace(metadata, annotations=kept or None)

    def _without_annotations(self, one: Any) -> Any:
        return structs.replace(one, metadata=self.redact_metadata(one.metadata))


class Identity(Struct, frozen=True):
    """What is written of an object that was deleted."""

    metadata: ObjectMeta


def identity_of(one: Any) -> Identity:
    """What is needed to know which object was deleted."""
    metadata: ObjectMeta = one.metadata
    return Identity(ObjectMeta(metadata.name, metadata.namespace, metadata.uid))


def _is_secret(kind: CustomResource[Any]) -> bool:
    return not kind.group and kind.plural in ("secrets", "configmaps")


def _without(value: Any) -> Any:
    """*value*, as in JSON, without the fields that are never written."""
    if isinstance(value, Mapping):
        return {name: _without(one) for name, one in value.items() if name not in _NEVER}
    return [_without(one) for one in value] if isinstance(value, list | tuple) else value
