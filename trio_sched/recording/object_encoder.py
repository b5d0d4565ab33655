"""Encodes what exists and what changes, as records have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, field
from msgspec import Raw, structs

from trio_sched.objects.changes import Change
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.recording.pod_patch import patch_of
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
        """Changes of objects of *kind*; see `trio_sched.recording.records.Changed.changes`."""
        return [self._encode_change(kind, change) for change in changes]

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
