"""Pods in backoff: those that plugins rejected, and apart from them those that had an error.

The first may be popped early when the active queue is empty; after an error the backoff has to end first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from trio_sched.engine.queue.backoff import Backoff
from trio_sched.engine.queue.pod_heap import PodHeap
from trio_sched.engine.queue.queued_pod import QueuedPodInfo


class BackoffQueues:
    """Two heaps by the end of the backoff.

    With *by_priority*, equal ends in `pod_backoff_q` are in the order of the active queue. With *groups_back_off*,
    members of pod groups are always with those that had an error.
    """

    __slots__ = ("_groups_back_off", "backoff", "pod_backoff_q", "pod_error_backoff_q")

    def __init__(
        self,
        backoff: Backoff,
        *,
        by_priority: bool,
        groups_back_off: bool = False,
        replace_keys: Callable[[BaseException, Iterable[QueuedPodInfo]], None] | None = None,
    ) -> None:
        self.backoff = backoff
        self._groups_back_off = groups_back_off
        if by_priority:
            self.pod_backoff_q = PodHeap(lambda info: (info.sort_time, info.sort_key), replace_keys)
        else:
            self.pod_backoff_q = PodHeap(lambda info: info.sort_time)
        self.pod_error_backoff_q = PodHeap(lambda info: info.sort_time)

    def __len__(self) -> int:
        return len(self.pod_backoff_q) + len(self.pod_error_backoff_q)

    def __contains__(self, key: str) -> bool:
        return key in self.pod_backoff_q or key in self.pod_error_backoff_q

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod called *key*, if it is here."""
        return self.pod_backoff_q.get(key) or self.pod_error_backoff_q.get(key)

    def push(self, info: QueuedPodInfo) -> None:
        """Put *info* in, or in its new place if it is here already."""
        self.backoff_time(info)
        stays = info.had_error or (self._groups_back_off and info.pod.spec.scheduling_group is not None)
        if info.key in self.pod_error_backoff_q or (stays and info.key not in self.pod_backoff_q):
            self.pod_error_backoff_q.push(info)
        else:
            self.pod_backoff_q.push(info)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the pod called *key* out, if it is here."""
        info = self.pod_backoff_q.remove(key)
        return info if info is not None else self.pod_error_backoff_q.remove(key)

    def clear(self) -> list[QueuedPodInfo]:
        """Take out every pod."""
        waiting = [*self.pod_backoff_q, *self.pod_error_backoff_q]
        for info in waiting:
            self.remove(info.key)
        return waiting

    def pop_all_backoff_completed(self, now: float) -> Iterator[QueuedPodInfo]:
        """Take out every pod whose backoff is over, one by one."""
        for heap in (self.pod_backoff_q, self.pod_error_backoff_q):
            while (info := heap.peek()) is not None and self.backoff.is_over(info.sort_time, now):
                heap.pop()
                yield info

    def next_check(self) -> float:
        """When `pop_all_backoff_completed` will next have something; infinity if nothing waits."""
        heads = (self.pod_backoff_q.peek(), self.pod_error_backoff_q.peek())
        return min((self.backoff.next_check(head.sort_time) for head in heads if head is not None), default=math.inf)

    def backoff_time(self, info: QueuedPodInfo) -> float:
        """When the backoff of *info* ends; worked out once per failure."""
        if info.backoff_expiry is None:
            info.backoff_expiry = self.backoff.expiry(info.timestamp, info.failure_count)
        return info.backoff_expiry

    def is_pod_backing_off(self, info: QueuedPodInfo, now: float) -> bool:
        """Whether the backoff of *info* is not over yet."""
        return not self.backoff.is_over(self.backoff_time(info), now)
