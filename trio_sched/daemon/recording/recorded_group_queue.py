"""A queue of groups of which is recorded what moves pods besides changes and attempts."""

from __future__ import annotations

from attrs import define

from trio_sched.daemon.recording.recorded_queue import RecordedQueue
from trio_sched.engine.queue.group_queue import GroupQueue


@define(eq=False, kw_only=True, slots=False)
class RecordedGroupQueue(RecordedQueue, GroupQueue):
    """Queues as `GroupQueue` does, and notes what `RecordedQueue` does."""
