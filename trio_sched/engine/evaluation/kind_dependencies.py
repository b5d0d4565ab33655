"""Which kinds of objects cached results and signatures depend on: those that plugins read while they are computed."""

from __future__ import annotations

from collections.abc import Hashable

from attrs import define, field


@define(eq=False)
class KindDependencies:
    """Records the kinds that plugins read through their handle while a result is computed that will be cached."""

    kinds: set[Hashable] = field(factory=set)
    _recordings: int = 0
    """How many recordings are under way, one inside another."""

    def note(self, kind: Hashable) -> None:
        """A plugin reads objects of *kind*."""
        if self._recordings:
            self.kinds.add(kind)

    @property
    def is_recording(self) -> bool:
        """Whether such a result is being computed."""
        return self._recordings > 0

    def recording(self) -> KindDependencies:
        """A context manager: what is read inside is read for something that will be cached."""
        return self  # a generator would cost more than what it surrounds

    def __enter__(self) -> None:
        self._recordings += 1

    def __exit__(self, *_error: object) -> None:
        self._recordings -= 1
