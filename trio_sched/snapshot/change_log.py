"""Which rows changed since when: how a cached answer finds out what to look at again."""

import numpy as np
from numpy.typing import NDArray

KEEP = 1 << 16
"""Changes remembered; who is further behind looks at every row again."""


class ChangeLog:
    """The rows that changed, in order; a reader remembers its position and later asks what came after it."""

    __slots__ = ("_base", "_rows")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._base = 0

    @property
    def position(self) -> int:
        """Where the log ends now; a reader that has seen everything stands here."""
        return self._base + len(self._rows)

    def append(self, row: int) -> None:
        """Note that *row* changed."""
        self._rows.append(row)
        if len(self._rows) > 2 * KEEP:
            del self._rows[:KEEP]
            self._base += KEEP

    def since(self, position: int) -> list[int] | None:
        """The rows changed after *position*, each once; None if that is longer ago than the log reaches."""
        start = position - self._base
        if start < 0:
            return None
        rows = self._rows[start:]
        return list(dict.fromkeys(rows)) if len(rows) > 1 else rows


def as_index(rows: list[int]) -> slice | NDArray[np.intp]:
    """*rows* in the cheapest form numpy takes: a slice for a single row, which makes views instead of copies."""
    return slice(rows[0], rows[0] + 1) if len(rows) == 1 else np.array(rows, dtype=np.intp)
