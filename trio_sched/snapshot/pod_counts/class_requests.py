"""What the pods of each class request on each row, so that the sums of a new selector need not look at all pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trio_sched.objects.pod_requests import ResourceAmounts
from trio_sched.snapshot.pod_counts.pod_classes import ClassKey, PodClass


class ClassRequests:
    """Sums per class, resource and row; what is nowhere requested takes no memory."""

    __slots__ = ("_by_class",)

    def __init__(self) -> None:
        self._by_class: dict[ClassKey, dict[str, dict[int, int]]] = {}

    def change(self, key: ClassKey, row: int, requested: ResourceAmounts, sign: int) -> None:
        """A pod of the class *key* came to *row*, or with a *sign* of -1 it went."""
        of_class = self._by_class.setdefault(key, {})
        for resource, amount in requested.amounts():
            if not amount:
                continue
            rows = of_class.setdefault(resource, {})
            left = rows.get(row, 0) + sign * amount
            if left:
                rows[row] = left
                continue
            del rows[row]
            if not rows:
                del of_class[resource]
        if not of_class:
            del self._by_class[key]

    def placements(self, classes: Iterable[PodClass], resource: str) -> Iterator[tuple[int, int]]:
        """The rows on which pods of *classes* request *resource*, with the amount; a row can occur several times."""
        for one in classes:
            yield from self._by_class.get(one.key, {}).get(resource, {}).items()
