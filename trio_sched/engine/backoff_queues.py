"""Pods in backoff: those that plugins rejected, and apart from them those that had an error.

The first may be popped early when the active queue is empty; after an error the backoff has to end first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from trio_sched.engine.backoff import Backoff
from trio_sched.engine.pod_heap import PodHeap
from trio_sched.engine.queued_pod import QueuedPodInfo


class BackoffQueues:
    """Two heaps by the end of the backoff; with *by_priority*, equal ends are in the order of the active queue."""

    __slots__ = ("backoff", "errors", "rejected")

    def __init__(
        self,
        backoff: Backoff,
        *,
        by_priority: bool,
        replace_keys: Callable[[BaseException, Iterable[QueuedPodInfo]], None] | None = None,
    ) -> None:
        self.backoff = backoff
        if by_priority:
            self.rejected = PodHeap(lambda info: (info.sort_time, info.sort_key), replace_keys)
        else:
            self.rejected = PodHeap(lambda info: info.sort_time)
        self.errors = PodHeap(lambda info: info.sort_time)

    def __len__(self) -> int:
        return len(self.rejected) + len(self.errors)

    def __contains__(self, key: str) -> bool:
        return key in self.rejected or key in self.errors

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod called *key*, if it is here."""
        return self.rejected.get(key) or self.errors.get(key)

    def push(self, info: QueuedPodInfo) -> None:
        """Put *info* in, or in its new place if it is here already."""
        self.end_of(info)
        if info.key in self.errors or (info.had_error and info.key not in self.rejected):
            self.errors.push(info)
        else:
            self.rejected.push(info)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the pod called *key* out, if it is here."""
        info = self.rejected.remove(key)
        return info if info is not None else self.errors.remove(key)

    def over(self, now: float) -> Iterator[QueuedPodInfo]:
        """Take out every pod whose backoff is over, one by one."""
        for heap in (self.rejected, self.errors):
            while (info := heap.peek()) is not None and self.backoff.is_over(info.sort_time, now):
                heap.pop()
                yield info

    def next_check(self) -> float:
        """When `over` will next have something; infinity if nothing waits."""
        heads = (self.rejected.peek(), self.errors.peek())
        return min((self.backoff.next_check(head.sort_time) for head in heads if head is not None), default=math.inf)

    def end_of(self, info: QueuedPodInfo) -> float:
        """When the backoff of *info* ends; worked out once per failure."""
        if info.backoff_expiry is None:
            info.backoff_expiry = self.backoff.expiry(info.timestamp, info.failure_count)
        return info.backoff_expiry

    def must_wait(self, info: QueuedPodInfo, now: float) -> bool:
        """Whether the backoff of *info* is not over yet."""
        return not self.backoff.is_over(self.end_of(info), now)
