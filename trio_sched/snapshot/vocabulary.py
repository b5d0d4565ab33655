"""Names ↔ small integers, so that columns hold numbers.

A vocabulary only grows: an id, once given, means the same for as long as the process lives.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from trio_sched.objects.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY

H = TypeVar("H", bound=Hashable)

CPU_ROW, MEMORY_ROW, EPHEMERAL_STORAGE_ROW = 0, 1, 2
"""The rows of the three resources that every cluster has, in the resource-major columns."""


class Interner(Generic[H]):
    """Gives each distinct value the next small integer."""

    __slots__ = ("_ids", "values")

    def __init__(self, *first: H) -> None:
        self.values: list[H] = list(first)
        self._ids: dict[H, int] = {value: i for i, value in enumerate(first)}

    def __len__(self) -> int:
        return len(self.values)

    def intern(self, value: H) -> int:
        """The id of *value*, given now if it is new."""
        found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = len(self.values)
            self.values.append(value)
        return found

    def get(self, value: H) -> int | None:
        """The id of *value*, or None if it has none yet."""
        return self._ids.get(value)


def resource_vocabulary() -> Interner[str]:
    """A fresh vocabulary of resource names; the three common ones have fixed rows."""
    return Interner(CPU, MEMORY, EPHEMERAL_STORAGE)
