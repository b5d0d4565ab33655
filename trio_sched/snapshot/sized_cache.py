"""A cache that is bounded by the size of its values too: one pod of any tenant can hold a megabyte of selectors."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_TEXTS: Final = 1 << 17
"""Keys, values and names in all that a cache holds: some ten megabytes; ordinary selectors have a handful each."""


class SizedCache(Generic[K, V]):
    """Values that can be made again; all are dropped when they have become too many, or too large together."""

    __slots__ = ("_texts", "_values", "get")

    def __init__(self) -> None:
        self._values: dict[K, V] = {}
        self._texts = 0
        self.get: Callable[[K], V | None] = self._values.get
        """The value of a key, or None. The method of the dict itself: it is called several times per pod."""

    def __len__(self) -> int:
        return len(self._values)

    def keep(self, key: K, value: V, *, texts: int, max_entries: int) -> V:
        """Keep *value*, which has so many *texts*; returns it."""
        if len(self._values) >= max_entries or self._texts + texts > MAX_TEXTS:
            self.clear()
        self._values[key] = value
        self._texts += texts
        return value

    def clear(self) -> None:
        """Drop everything."""
        self._values.clear()
        self._texts = 0
