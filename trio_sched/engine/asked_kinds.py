"""Which kinds of objects the answers that are kept depend on: those that plugins asked about while giving them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field


@define(eq=False)
class AskedKinds:
    """Notes the kinds that plugins ask about while an answer or a signature is made that will be kept."""

    kinds: set[str] = field(factory=set)
    is_recording: bool = False

    def note(self, kind: str) -> None:
        """A plugin asks about *kind*."""
        if self.is_recording:
            self.kinds.add(kind)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """What is asked in here, is asked for an answer that will be kept."""
        before, self.is_recording = self.is_recording, True
        try:
            yield
        finally:
            self.is_recording = before
