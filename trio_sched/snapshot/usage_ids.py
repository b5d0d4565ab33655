"""Numbers for what is taken of nodes: rows with equal amounts have the same one.

The nodes of a cluster are of a few sizes and the pods of a few templates, so most rows look like one that was judged
before. Placing a pod of one template leads from one number always to the same next one, which is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence

from trio_sched.objects.pod_requests import PodResources
from trio_sched.snapshot.column_store import ColumnStore

_MAX_IDS = 4096
"""When there are more, besides four per row, all start over."""
_UNKNOWN = -1


class UsageIds:
    """Row → id of its amounts: allocatable, requested, number of pods.

    Attributes:
        epoch: counts how often the ids have got another meaning.
    """

    __slots__ = ("_after", "_by_amounts", "_changed_by", "_ids", "epoch")

    def __init__(self) -> None:
        self.epoch = 0
        self._ids: list[int] = []
        self._changed_by: dict[int, tuple[int, PodResources, int]] = {}
        """Row without an id → the id that it had, and the pod that has come (1) or gone (-1) since."""
        self._by_amounts: dict[bytes, int] = {}
        self._after: dict[tuple[int, int, int], tuple[int, PodResources]] = {}
        """(id, ``id()`` of what a pod takes, 1 or -1) → the id then, and that object: so no other gets its ``id()``."""

    def of(self, rows: Sequence[int], store: ColumnStore) -> list[int]:
        """The ids of *rows* of *store*, all of the same epoch."""
        ids = self._ids
        found = [ids[row] for row in rows]
        if _UNKNOWN not in found:
            return found
        if len(self._by_amounts) > _MAX_IDS + 4 * len(ids):
            self.forget_all(len(ids))
        return [self._of_row(row, store) for row in rows]

    def _of_row(self, row: int, store: ColumnStore) -> int:
        found = self._ids[row]
        if found != _UNKNOWN:
            return found
        amounts = b"".join(
            (
                store.allocatable[:, row].tobytes(),
                store.requested[:, row].tobytes(),
                store.nonzero_requested[:, row].tobytes(),
                store.pod_count[row].tobytes(),
                store.allowed_pods[row].tobytes(),
            )
        )
        found = self._ids[row] = self._by_amounts.setdefault(amounts, len(self._by_amounts))
        changed_by = self._changed_by.pop(row, None)
        if changed_by is not None:
            before, resources, sign = changed_by
            if len(self._after) > 2 * (_MAX_IDS + 4 * len(self._ids)):  # pods that are like no other lead nowhere twice
                self._after.clear()
            self._after[before, id(resources), sign] = (found, resources)
        return found

    def count_pod(self, row: int, resources: PodResources, sign: int) -> None:
        """A pod that takes *resources* has come to *row* (*sign* 1) or left it (-1)."""
        before = self._ids[row] if row < len(self._ids) else _UNKNOWN
        if before == _UNKNOWN:
            self._changed_by.pop(row, None)
            return
        after = self._after.get((before, id(resources), sign))
        if after is not None:
            self._ids[row] = after[0]
            return
        self._ids[row] = _UNKNOWN
        self._changed_by[row] = (before, resources, sign)

    def forget(self, row: int) -> None:
        """The amounts of *row* are others now."""
        if row < len(self._ids):
            self._ids[row] = _UNKNOWN
            self._changed_by.pop(row, None)

    def forget_all(self, rows: int) -> None:
        """Start over, with so many rows."""
        self.epoch += 1
        self._ids = [_UNKNOWN] * rows
        self._changed_by.clear()
        self._by_amounts.clear()
        self._after.clear()
