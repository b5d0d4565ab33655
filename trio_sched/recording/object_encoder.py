"""Encodes what exists and what changes, as records have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, field
from msgspec import Raw, structs

from trio_sched.objects.changes import Change
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.recording.pod_patch import has_other_status_only, patch_of
from trio_sched.recording.pod_templates import PodTemplates
from trio_sched.recording.records import PATCHED
from trio_sched.recording.redaction import Redaction, identity_of


@define(eq=False)
class ObjectEncoder:
    """Encodes objects of one segment.

    Attributes:
        redaction: what is not written.
        templates: the pods that others are like; the new ones are to be written before what was encoded.
    """

    redaction: Redaction
    first_template: int = 0
    """The number of the first template: encoders of the same segment have others."""
    templates: PodTemplates = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.templates = PodTemplates(self.redaction, self.first_template)

    def encode(self, kind: Watched, one: Any) -> Any:
        """An object of *kind*, as a part of a record."""
        return self.templates.encode(one) if isinstance(one, Pod) else Raw(self.redaction.encode(kind, one))

    def encode_changes(self, kind: Watched, changes: Iterable[Change[Any]]) -> list[tuple[str, Any]]:
        """Changes of objects of *kind*; see `trio_sched.recording.records.Changed.changes`.

        Those of nodes and of pods on nodes are left out that have changed nothing that is read, as most do: heartbeats,
        restarts, readiness.
        """
        return [
            self._encode_change(kind, change)
            for change in changes
            if change.type != "MODIFIED" or not self._is_unread(change.old, change.new)
        ]

    def _is_unread(self, old: Any, new: Any) -> bool:
        """Whether *new* differs from *old* in nothing that is read."""
        if isinstance(new, Pod):
            if not isinstance(old, Pod) or not new.spec.node_name:
                return False
            return has_other_status_only(old, new) and not self.redaction.is_read(new.status, old.status)
        return isinstance(new, Node) and isinstance(old, Node) and _has_other_version_only(old, new)

    def _encode_change(self, kind: Watched, change: Change[Any]) -> tuple[str, Any]:
        old, new = change.old, change.new
        if isinstance(new, Pod) and isinstance(old, Pod) and change.type == "MODIFIED":
            patch = patch_of(old, new)
            if patch.metadata is not None:
                patch = structs.replace(patch, metadata=self.redaction.redact_metadata(patch.metadata))
            return PATCHED, patch
        if change.type == "DELETED":
            return "DELETED", identity_of(change.subject)
        return change.type, self.encode(kind, new)


def _has_other_version_only(old: Node, new: Node) -> bool:
    """Whether nothing else that a scheduler reads has changed, as with heartbeats."""
    metadata = structs.replace(old.metadata, resource_version=new.metadata.resource_version)
    return metadata == new.metadata and old.spec == new.spec and old.status == new.status
