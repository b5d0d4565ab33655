"""PrioritySort: orders pods by priority, then by the time they entered the queue."""

from typing import ClassVar

from trio_sched.plugin_api import Handle, QueuedPod, hookimpl


class PrioritySort:
    """Orders the active queue by priority, then by the time the pod entered the queue, or entered it again."""

    name: ClassVar[str] = "PrioritySort"

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def queue_sort(self, queued: QueuedPod) -> tuple[int, float]:
        """Higher priority, then earlier timestamp."""
        return -queued.pod.priority, queued.timestamp
