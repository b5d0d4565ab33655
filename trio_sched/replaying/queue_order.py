"""Whether the queue of a replay would return pods in the order in which it did when the recording was made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from attrs import define, field

from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.objects.pod import Pod
from trio_sched.recording.records import BACKOFF, RETRIES, UNSCHEDULABLE, Activated, Flushed
from trio_sched.replaying.results import ReplayResult


@define(eq=False, kw_only=True)
class QueueOrder:
    """Moves pods in *queue* as timers did, and compares the pods that were returned with its first one.

    Nothing is compared where the replay begins with pods, because it is not recorded how long these back off, nor for
    pods of groups, which back off together, or while one is the first.

    Attributes:
        queue: of the replay.
        result: gets what is found.
        is_counted: whether a time, in seconds of the recorded clock, is one at which it is compared.
    """

    queue: SchedulingQueue
    result: ReplayResult
    is_counted: Callable[[float], bool]
    _begins_empty: bool = field(default=True, init=False)

    def begins(self, pods: Collection[Pod]) -> None:
        """The replay begins with *pods*."""
        self._begins_empty = not pods

    def returned(self, pod: Pod, now: float) -> None:
        """The queue has returned *pod*, which it still has in the replay; pods of groups come with their first one."""
        if not self._begins_empty or pod.group_key is not None or not self.is_counted(now):
            return
        first = self.queue.peek()
        if first is not None and first.uid == pod.uid:
            self.result.in_order += 1
        elif first is None or first.pod.group_key is None:
            other = "no pod" if first is None else f"pod {first.key}"
            self.result.is_out_of_order(f"the queue returned pod {pod.key}, and would return {other}")

    def flushed(self, record: Flushed) -> None:
        """A timer has moved pods."""
        flush = {
            BACKOFF: self.queue.flush_backoff,
            RETRIES: self.queue.flush_retries,
            UNSCHEDULABLE: self.queue.flush_unschedulable,
        }.get(record.timer)
        if flush is not None:
            flush(now=record.now)

    def activated(self, record: Activated, pods: Mapping[str, Pod]) -> None:
        """Pods were to be tried next."""
        self.queue.activate([pods[uid] for uid in record.uids if uid in pods], now=record.now)
