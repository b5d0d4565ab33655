"""Which rows changed since when: what a cached result has to compute again."""

import numpy as np

from trio_sched.snapshot.arrays import RowIndex

KEPT_CHANGES = 1 << 12
"""Changes that the log holds at least; a reader that is further behind has to look at every row again."""


class ChangeLog:
    """The rows that changed, in order; a reader keeps a position and later reads what came after it."""

    __slots__ = ("_base", "_rows")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._base = 0

    @property
    def position(self) -> int:
        """The end of the log: the position of a reader that has read all of it."""
        return self._base + len(self._rows)

    def append(self, row: int) -> None:
        """Record that *row* changed."""
        self._rows.append(row)
        if len(self._rows) > 2 * KEPT_CHANGES:
            del self._rows[:KEPT_CHANGES]
            self._base += KEPT_CHANGES

    def since(self, position: int) -> list[int] | None:
        """The rows changed after *position*, each once; None if the log does not reach back that far."""
        start = position - self._base
        if start < 0:
            return None
        rows = self._rows[start:]
        return list(dict.fromkeys(rows)) if len(rows) > 1 else rows


def as_index(rows: list[int]) -> RowIndex:
    """*rows* in the cheapest form numpy takes: a slice for a single row, which makes views instead of copies."""
    return slice(rows[0], rows[0] + 1) if len(rows) == 1 else np.array(rows, dtype=np.intp)
