"""How much memory the connections of clients that are not known yet may hold, all of them together."""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

from attrs import define, field

_GRAIN_BYTES: Final = 128 * 1024
"""Connections with less hold the same, and of them the oldest one ends: a probe has one request, and is quick."""


class Holder(Protocol):
    """What holds memory."""

    @property
    def is_silent(self) -> bool:
        """Whether its client has said nothing yet."""
        ...

    def drop(self) -> None:
        """End it at once."""


H = TypeVar("H", bound=Holder)


@define(eq=False)
class MemoryBudget(Generic[H]):
    """Ends the one that holds most when all of them hold more than *max_bytes*."""

    max_bytes: int
    held_bytes: int = field(init=False, default=0)
    _holders: dict[H, int] = field(init=False, factory=dict)
    """In the order in which they came."""

    def add(self, holder: H, held_bytes: int) -> None:
        """Count what *holder* holds, until it is released."""
        self._holders[holder] = 0
        self.change(holder, held_bytes)

    def change(self, holder: H, by_bytes: int) -> None:
        """Count that *holder* holds more or less; nothing if it was released."""
        if holder not in self._holders:
            return
        self._holders[holder] += by_bytes
        self.held_bytes += by_bytes
        while self.held_bytes > self.max_bytes:
            self.drop_largest()

    def release(self, holder: H) -> None:
        """Count *holder* no longer: it has ended, or its client is known."""
        self.held_bytes -= self._holders.pop(holder, 0)

    def drop_largest(self) -> H | None:
        """End the one that holds most; among equals one whose client is silent, and the oldest. Returns it."""
        largest = max(self._holders, key=self._precedence, default=None)
        if largest is not None:
            self.release(largest)
            largest.drop()
        return largest

    def _precedence(self, holder: H) -> tuple[int, bool]:
        return self._holders[holder] // _GRAIN_BYTES, holder.is_silent
