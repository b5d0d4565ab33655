"""Pods of a template come in thousands: in a segment all but the first are written as what they differ in from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import define, field
from msgspec import Raw, Struct, structs

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod, PodSpec, PodStatus
from trio_sched.objects.storage.volume import Volume
from trio_sched.recording.redaction import Redaction

MAX_TEMPLATES: Final = 256
"""So many are known at once; after that the number of the oldest one is that of another."""


class NewPod(Struct, frozen=True, gc=False, array_like=True):
    """A pod: a template with another identity; what is None of the rest is as in the template."""

    template: int
    name: str
    namespace: str
    uid: str
    version: str
    created: str | None
    node: str
    metadata: ObjectMeta | None
    spec: PodSpec | None
    volumes: tuple[Volume, ...] | None
    """The volumes, if nothing else of *spec* differs: each pod has one with a random name."""
    status: PodStatus | None


@define(eq=False)
class PodTemplates:
    """Encodes pods of one segment.

    Attributes:
        redaction: what is not written.
        first_number: of a template.
        new: the templates that came since they were taken last, by number; to be written before what was encoded.
    """

    redaction: Redaction
    first_number: int = 0
    _known: dict[tuple[int, int], tuple[int, Pod]] = field(factory=dict, init=False)
    """Identities of a pod's containers and owners → a number, and a pod that has them.

    Equal ones nearly always are the same object (`trio_sched.objects.sharing`), and what is in here keeps its identity.
    """
    new: dict[int, Any] = field(factory=dict, init=False)

    def take_new(self) -> dict[int, Any]:
        """The templates that came since this was called last."""
        new, self.new = self.new, {}
        return new

    def encode(self, pod: Pod) -> NewPod:
        """A pod as it is written."""
        metadata, spec, status = self.redaction.redact_metadata(pod.metadata), pod.spec, pod.status
        known = self._known.get((id(spec.containers), id(metadata.owner_references)))
        number, template = self._add(Pod(metadata, spec, status)) if known is None else known
        was, node = template.spec, spec.node_name
        other_metadata = other_spec = other_volumes = None
        if metadata != _with_identity(template.metadata, metadata):
            other_metadata = metadata
        volumes = spec.volumes or was.volumes
        if spec != structs.replace(was, node_name=node, volumes=volumes):
            other_spec = spec
        elif volumes is not was.volumes and volumes != was.volumes:
            other_volumes = volumes
        return NewPod(
            number,
            metadata.name,
            metadata.namespace,
            metadata.uid,
            metadata.resource_version,
            metadata.creation_timestamp,
            node,
            other_metadata,
            other_spec,
            other_volumes,
            None if status == template.status else status,
        )

    def _add(self, template: Pod) -> tuple[int, Pod]:
        known = self._known
        if len(known) < MAX_TEMPLATES:
            number = self.first_number + len(known)
        else:
            number, _oldest = known.pop(next(iter(known)))
        added = number, template
        known[id(template.spec.containers), id(template.metadata.owner_references)] = added
        self.new[number] = template
        return added


@define(eq=False)
class KnownTemplates:
    """Decodes the pods of a recording."""

    _pods: dict[int, Pod] = field(factory=dict, init=False)

    def add(self, templates: Mapping[int, Raw]) -> None:
        """More templates, or others with the same numbers.

        Raises:
            MsgspecError: one is no pod.
        """
        self._pods.update((number, _decode_pod(raw)) for number, raw in templates.items())

    def decode(self, raw: Raw) -> Pod:
        """What `PodTemplates.encode` has made, read from a recording.

        Raises:
            MsgspecError: it is something else, or its template is not known.
        """
        new = _decode_new_pod(raw)
        template = self._pods.get(new.template)
        if template is None:
            raise msgspec.ValidationError(f"there is no template {new.template} of pod {new.namespace}/{new.name}")
        metadata, spec = new.metadata, new.spec
        if metadata is None:
            identity = ObjectMeta(new.name, new.namespace, new.uid, new.version, creation_timestamp=new.created)
            metadata = _with_identity(template.metadata, identity)
        if spec is None:
            volumes = template.spec.volumes if new.volumes is None else new.volumes
            spec = structs.replace(template.spec, node_name=new.node, volumes=volumes)
        return Pod(metadata, spec, template.status if new.status is None else new.status)


_decode_pod: Final = msgspec.json.Decoder(Pod).decode
_decode_new_pod: Final = msgspec.json.Decoder(NewPod).decode


def _with_identity(metadata: ObjectMeta, identity: ObjectMeta) -> ObjectMeta:
    """*metadata* with what differs even among the pods of a template."""
    return structs.replace(
        metadata,
        name=identity.name,
        namespace=identity.namespace,
        uid=identity.uid,
        resource_version=identity.resource_version,
        creation_timestamp=identity.creation_timestamp,
    )
