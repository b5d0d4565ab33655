"""What the queue counts: pods that entered, pods that each plugin keeps from being scheduled, flushed ones."""

from __future__ import annotations

from collections import Counter

from attrs import define, field

from trio_sched.engine.queue.queued_pod import QueuedPodInfo


@define(eq=False)
class QueueCounters:
    """What the queue has counted."""

    incoming: Counter[tuple[str, str]] = field(factory=Counter)
    """(queue, event) → pods that entered."""
    incoming_members: Counter[tuple[str, str]] = field(factory=Counter)
    """Those of *incoming* that entered as part of a group, from 1.37 on."""
    incoming_groups: Counter[tuple[str, str]] = field(factory=Counter)
    """(queue, event) → groups that entered, from 1.37 on."""
    unschedulable: Counter[tuple[str, str]] = field(factory=Counter)
    """(plugin, profile) → pods that it keeps from being scheduled."""
    flushed: int = 0
    """Pods that have waited for an event too long, and were moved without one."""
    scheduled_after_flush: int = 0
    """Pods that were bound after no event had moved them: their plugins' hints miss something."""

    def count_rejectors(self, info: QueuedPodInfo, change: int) -> None:
        """The plugins that have rejected a pod begin (1) or end (-1) to keep it from being scheduled."""
        for plugin in info.rejectors:
            self.count_rejector(plugin, info, change)

    def count_rejector(self, plugin: str, info: QueuedPodInfo, change: int) -> None:
        """*plugin* begins (1) or ends (-1) to keep a pod from being scheduled, by a rejection or by gating it."""
        self.unschedulable[plugin, info.pod.scheduler_name] += change

    def reset_incoming(self) -> None:
        """Forget what has entered."""
        for counted in (self.incoming, self.incoming_members, self.incoming_groups):
            counted.clear()
