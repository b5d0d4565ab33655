"""Who may enter the queue: the pre_enqueue plugins of each profile, and the one that keeps a pod back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from trio_sched.engine.profile import Caller
from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.engine.queueing_hints import HintTable
from trio_sched.plugin_api.status import Code


@frozen(eq=False)
class ProfileQueueing:
    """What the queue needs of one profile."""

    pre_enqueue: Sequence[Caller]
    hints: HintTable


@define(eq=False)
class QueueCounters:
    """What the queue has counted, for the metrics."""

    incoming: Counter[tuple[str, str]] = field(factory=Counter)
    """(queue, event) → pods that entered."""
    unschedulable: Counter[tuple[str, str]] = field(factory=Counter)
    """(plugin, profile) → pods that it keeps from being scheduled."""
    scheduled_after_flush: int = 0
    """Pods that were bound after no event had freed them: their plugins' hints miss something."""


@define(eq=False)
class Gates:
    """Asks the pre_enqueue plugins whether a pod may be tried."""

    profiles: Mapping[str, ProfileQueueing]
    counters: QueueCounters
    errors: list[tuple[str, str, BaseException]] = field(factory=list)
    """(plugin, pod, error) of plugins that failed."""

    def lets_pass(self, info: QueuedPodInfo) -> bool:
        """Whether *info* may go on; asks the plugin that keeps it back first, and notes which one does."""
        profile = self.profiles.get(info.pod.scheduler_name)
        if profile is None or not profile.pre_enqueue:
            info.gating_plugin = ""
            return True
        callers = profile.pre_enqueue
        if info.gating_plugin:
            callers = sorted(callers, key=lambda caller: caller.plugin != info.gating_plugin)
        for caller in callers:
            try:
                status = caller.call(info.pod)
                refused = status is not None and status.code != Code.SUCCESS
            except Exception as exc:  # a plugin that cannot answer keeps the pod back, as one that says no
                self.errors.append((caller.plugin, info.key, exc))
                refused = True
            if refused:
                if caller.plugin not in info.rejectors:
                    self.counters.unschedulable[caller.plugin, info.pod.scheduler_name] += 1
                info.unschedulable_plugins.add(caller.plugin)
                info.gating_plugin = caller.plugin
                return False
        info.gating_plugin = ""
        return True
