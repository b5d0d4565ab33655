"""When pods are to be tried again because a plugin has asked for it: one timer per pod and plugin."""

from __future__ import annotations

import heapq
import math
from typing import Final

from attrs import define, field

_MAX_OVERTAKEN = 64
"""How many entries of the heap may be out of date, unless there are more that are not."""
PAUSE_SECONDS: Final = 1.0
"""How long a plugin that has had a pod tried again waits until it has it tried once more: two pods of a group that move
each other, or a pod that moves itself, would keep the scheduler busy for ever, on a simulated clock at one instant."""


@define(eq=False)
class RetryTimers:
    """Timers by pod and plugin; of two for the same the earlier one counts. Times are those of the scheduler's clock.

    Of a pod that is gone or has a node they are to be forgotten, so there are never more than pods times plugins.
    """

    _due: dict[str, dict[str, float]] = field(factory=dict, init=False)
    """UID → plugin → when."""
    _heap: list[tuple[float, str, str, str]] = field(factory=list, init=False)
    """(when, uid, plugin, ``namespace/name``), some of them forgotten or overtaken by an earlier one."""
    _count: int = field(default=0, init=False)
    _ended: dict[str, dict[str, float]] = field(factory=dict, init=False)
    """UID → plugin → when its last timer ended."""

    def __len__(self) -> int:
        return self._count

    def __contains__(self, uid: str) -> bool:
        return uid in self._due

    def start(self, uid: str, key: str, plugin: str, due: float) -> bool:
        """Have the pod tried again at *due*; False if *plugin* has asked for an earlier time before.

        Not before `PAUSE_SECONDS` have passed since the last time.
        """
        if uid in self._ended:
            due = max(due, self._ended[uid].get(plugin, -math.inf) + PAUSE_SECONDS)
        of_pod = self._due.setdefault(uid, {})
        known = of_pod.get(plugin)
        if known is not None and known <= due:
            return False
        self._count += known is None
        of_pod[plugin] = due
        heapq.heappush(self._heap, (due, uid, plugin, key))
        if len(self._heap) > 2 * self._count + _MAX_OVERTAKEN:
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapq.heapify(self._heap)
        return True

    def forget(self, uid: str) -> None:
        """The pod is gone or has a node."""
        self._ended.pop(uid, None)
        of_pod = self._due.pop(uid, None)
        if of_pod is not None:
            self._count -= len(of_pod)

    @property
    def next_due(self) -> float:
        """When the next timer ends; infinity if there is none."""
        heap = self._heap
        while heap and not self._is_current(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def pop_due(self, now: float) -> list[tuple[str, str, str]]:
        """(uid, ``namespace/name``, plugin) of the timers that have ended, which are forgotten."""
        found = []
        while self.next_due <= now:
            _, uid, plugin, key = heapq.heappop(self._heap)
            of_pod = self._due[uid]
            del of_pod[plugin]
            if not of_pod:
                del self._due[uid]
            self._count -= 1
            self._ended.setdefault(uid, {})[plugin] = now
            found.append((uid, key, plugin))
        return found

    def _is_current(self, entry: tuple[float, str, str, str]) -> bool:
        due, uid, plugin, _ = entry
        return self._due.get(uid, {}).get(plugin) == due
