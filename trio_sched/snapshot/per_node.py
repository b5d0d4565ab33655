"""What functions of plugins have made of single nodes, kept until these nodes change."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from attrs import define, field

from trio_sched.snapshot.arrays import Int64Array, RowIndex

_NONE = np.zeros(0, dtype=np.int64)


@define(eq=False)
class _Kept:
    """What one function has returned, by row."""

    values: Int64Array = _NONE
    versions: Int64Array = _NONE
    """Those of the nodes that *values* were computed of; -1 where there is none."""

    def make_room_for(self, count: int) -> None:
        """Have entries for so many rows."""
        missing = count - len(self.values)
        if missing > 0:
            self.values = np.concatenate([self.values, np.zeros(missing, dtype=np.int64)])
            self.versions = np.concatenate([self.versions, np.full(missing, -1, dtype=np.int64)])


@define(eq=False)
class ValuesPerNode:
    """The values of one table; they go with the function, or the plugin that it is a method of."""

    _kept: WeakKeyDictionary[Any, dict[Any, _Kept]] = field(factory=WeakKeyDictionary, init=False)

    def of(
        self,
        function: Callable[[Any], int],
        rows: RowIndex | None,
        versions: Int64Array,
        count: int,
        node: Callable[[int], Any],
    ) -> Int64Array:
        """The values of *rows*.

        Args:
            function: makes an integer of a node.
            rows: of the table; None for all.
            versions: those of the nodes in *rows*.
            count: how many rows the table has.
            node: the node at a position in *rows*.

        Raises:
            TypeError: *function* gives something else, or cannot be kept.
        """
        owner = getattr(function, "__self__", function)
        try:
            of_owner = self._kept.setdefault(owner, {})
        except TypeError as error:
            raise TypeError(f"nodes.per_node takes a function or a method, not {function!r}: {error}") from None
        kept = of_owner.setdefault(getattr(function, "__func__", None), _Kept())
        kept.make_room_for(count)
        chosen: Any = slice(0, count) if rows is None else rows
        stale = np.flatnonzero(kept.versions[chosen] != versions).tolist()
        if stale:
            numbers = np.arange(count)[chosen]
            for position in stale:
                row = numbers[position]
                kept.values[row] = operator.index(function(node(position)))
                kept.versions[row] = versions[position]
        found: Int64Array = kept.values[chosen].copy()
        found.setflags(write=False)
        return found
