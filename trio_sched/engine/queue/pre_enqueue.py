"""Which pods may enter the active and backoff queues: the pre_enqueue plugins of each profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.measurements import Measurements
from trio_sched.engine.hooks.plugin_calls import call_status_hook
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.hooks.status_labels import SUCCESS
from trio_sched.engine.queue.queue_counters import QueueCounters
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import HintTable


@frozen(eq=False)
class ProfileQueueing:
    """What the queue needs of one profile."""

    pre_enqueue: Sequence[BoundHook]
    hints: HintTable


@define(eq=False)
class PreEnqueue:
    """Runs the pre_enqueue plugins and notes which one gates a pod."""

    profiles: Mapping[str, ProfileQueueing]
    counters: QueueCounters
    plugin_failures: PluginFailures
    measurements: Measurements = field(factory=Measurements)

    def run(self, info: QueuedPodInfo) -> bool:
        """Whether *info* may enter; the plugin that gated it before is called first, the one that does is noted."""
        profile = self.profiles.get(info.pod.scheduler_name)
        if profile is None or not profile.pre_enqueue:
            info.gating_plugin = ""
            return True
        hooks = profile.pre_enqueue
        if info.gating_plugin:
            hooks = sorted(hooks, key=lambda hook: hook.plugin != info.gating_plugin)
        measured = self.measurements.profiles.get(info.pod.scheduler_name)
        began = self.measurements.clock()
        for hook in hooks:
            try:
                status = call_status_hook(hook, info.pod)
            except HookFailed as failed:  # as in kube-scheduler, a failure gates the pod like a rejection
                self.plugin_failures.add(failed, info.key)
                status = failed.status
            if status is None:
                continue
            if measured is not None:
                measured.observe("PreEnqueue", status.code.label, self.measurements.clock() - began)
            if hook.plugin not in info.rejectors:
                self.counters.count_rejector(hook.plugin, info, 1)
            info.unschedulable_plugins.add(hook.plugin)
            info.gating_plugin, info.gating_message = hook.plugin, status.message
            return False
        if measured is not None:
            measured.observe("PreEnqueue", SUCCESS, self.measurements.clock() - began)
        info.gating_plugin = ""
        return True
