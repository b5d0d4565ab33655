"""Which kinds of objects cached answers and signatures depend on: those that plugins read while giving them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field


@define(eq=False)
class KindDependencies:
    """Records the kinds that plugins read through their handle while an answer is made that will be cached."""

    kinds: set[str] = field(factory=set)
    is_recording: bool = False

    def note(self, kind: str) -> None:
        """A plugin reads objects of *kind*."""
        if self.is_recording:
            self.kinds.add(kind)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """What is read inside is read for something that will be cached."""
        before, self.is_recording = self.is_recording, True
        try:
            yield
        finally:
            self.is_recording = before
