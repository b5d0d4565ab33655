"""What one evaluation uses up, and its variables."""

from __future__ import annotations

from typing import Final

from trio_sched.cel.errors import COST_EXCEEDED, Aborted
from trio_sched.cel.values.values import Value

COST_LIMIT: Final = 1_000_000
"""The highest cost of evaluating one selector for one device, as in Kubernetes."""
WORK_LIMIT: Final = 2_000_000
"""Elements that may be looked at or copied without being paid for: lists can hold one another many times over."""
_CHARACTERS: Final = 10
"""How many of them count as one element."""


class Activation:
    """The state of one evaluation."""

    __slots__ = ("_growing", "cost", "values", "work")

    def __init__(self, slots: int) -> None:
        self.cost = 0
        self.work = 0
        self.values: list[Value] = [None] * slots
        """Variables by their slot; the first ones are those of the environment."""
        self._growing: dict[int, list[Value]] = {}

    def growing(self, value: Value) -> Value:
        """*value* as that of a binding: an empty list becomes one that ``+`` adds to, as it does in the original."""
        if type(value) is not list or value:
            return value
        found: list[Value] = []
        self._growing[id(found)] = found
        return found

    def grows(self, value: Value) -> bool:
        """Whether ``+`` adds to *value* itself."""
        return id(value) in self._growing

    def charge(self, cost: int) -> None:
        """Count what an operation costs, before it is done.

        Raises:
            Aborted: all of them together cost too much.
        """
        self.cost += cost
        if self.cost > COST_LIMIT:
            raise Aborted(COST_EXCEEDED)

    def spend(self, elements: int, characters: int = 0) -> None:
        """Count work that has no cost in Kubernetes.

        Raises:
            Aborted: it is more than any expression within the limit of costs needs.
        """
        self.work += elements + characters // _CHARACTERS
        if self.work > WORK_LIMIT:
            raise Aborted(COST_EXCEEDED)
