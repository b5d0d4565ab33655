"""Pending pods that could be placed by now: no event for which their plugins have registered has shown it."""

from __future__ import annotations

from itertools import islice
from typing import Final

from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler

_MOST: Final = 100
"""Groups of equal pods that are looked at: one of each is evaluated on every node."""


def missed_events(scheduler: Scheduler) -> dict[str, str]:
    """What to say of the pods that wait for an event without need: ``namespace/name`` → a sentence.

    Left out are pods that wait for something else: their backoff, permission, a time that a plugin has named, or other
    members of their group, which back off instead of waiting for an event; and pods that were rejected by what is only
    asked once a node is chosen.
    """
    found: dict[str, str] = {}
    for group in islice(scheduler.queue.unschedulable.groups(), _MOST):
        alike: dict[str, list[QueuedPodInfo]] = {}
        for one in group.pods.values():
            alike.setdefault(one.gating_plugin, []).append(one)
        for pods in alike.values():
            if said := _what_is_missed(scheduler, pods[0]):
                found.update((one.key, said) for one in pods if one.uid not in scheduler.queue.retries)
    return found


def _what_is_missed(scheduler: Scheduler, info: QueuedPodInfo) -> str:
    profile = scheduler.profiles.get(info.pod.scheduler_name)
    if profile is None:
        return ""
    asked_before = {hook.plugin for hook in (*profile.filter, *profile.pre_filter)}
    if not info.gating_plugin and not (info.rejectors and info.rejectors <= asked_before):
        return ""
    explained = scheduler.explain(info.pod)
    if info.gating_plugin:
        if explained.rejected_at == "PreEnqueue" or explained.error:
            return ""
        return f"{info.gating_plugin} lets it into the queue now, but {_unmoved([info.gating_plugin])}"
    if not explained.feasible or explained.error:
        return ""
    plugins = sorted(info.rejectors)
    seconds = scheduler.queue.max_in_unschedulable_seconds
    return (
        f"fits {explained.best[0].node} now; {' and '.join(plugins)} rejected it, and {_unmoved(plugins)}; "
        f"it is tried again {seconds:.0f} s after the last attempt"
    )


def _unmoved(plugins: list[str]) -> str:
    return f"no event that {' or '.join(plugins)} registered has moved it since"
