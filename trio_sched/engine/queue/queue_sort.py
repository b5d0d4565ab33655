"""The order of the active queue: the sort keys that the queue_sort plugin gives, and what stands in where it fails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed, raised
from trio_sched.engine.hooks.plugin_calls import call_queue_sort
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.verdicts import QueuedPod


@define(eq=False)
class QueueSort:
    """Gives pods their sort keys; the first part says whether it is a substitute: those pods come last."""

    hook: BoundHook
    plugin_failures: PluginFailures

    def assign_key(self, info: QueuedPodInfo, pod: Pod | None = None) -> None:
        """Call the plugin for *info*, or for *pod* in its place; after a failure its key is a substitute."""
        queued = QueuedPod(pod or info.pod, info.timestamp, info.attempts)
        try:
            info.sort_key = False, call_queue_sort(self.hook, queued)
        except HookFailed as failed:
            self.plugin_failures.add(failed, info.key)
            info.sort_key = _substitute_key(info)

    def replace_keys(self, error: BaseException, infos: Iterable[QueuedPodInfo]) -> None:
        """Two keys of the plugin cannot be compared, as *error* says: give substitutes to all of *infos*."""
        self.plugin_failures.add(raised(self.hook, error))
        for info in infos:
            info.sort_key = _substitute_key(info)


def _substitute_key(info: QueuedPodInfo) -> Any:
    """By priority and time, as PrioritySort."""
    return True, (-info.pod.priority, info.timestamp)
