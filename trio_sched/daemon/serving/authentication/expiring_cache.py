"""Results that count for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import trio
from attrs import define, field

K = TypeVar("K")
V = TypeVar("V")


@define(eq=False)
class ExpiringCache(Generic[K, V]):
    """Keeps up to *max_entries* values; the least recently used ones go first."""

    max_entries: int
    clock: Callable[[], float] = trio.current_time
    _entries: OrderedDict[K, tuple[float, V]] = field(init=False, factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value of *key*, unless it has expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        expires, value = entry
        if expires <= self.clock():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V, ttl_seconds: float) -> None:
        """Keep *value* for *ttl_seconds*; not at all if that is not above zero."""
        if ttl_seconds <= 0:
            return
        self._entries[key] = (self.clock() + ttl_seconds, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self.max_entries:
            self._entries.popitem(last=False)
