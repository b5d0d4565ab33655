"""Which of the pods that wait for an event it may help: groups of pods that it cannot are ruled out as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trio_sched.engine.queue.nominator import Nominator
from trio_sched.engine.queue.pre_enqueue import ProfileQueueing
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.unschedulable_pods import RejectionGroup
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cluster_events import ClusterEvent


def not_ruled_out(
    groups: Iterable[RejectionGroup],
    profiles: Mapping[str, ProfileQueueing],
    nominator: Nominator,
    event: ClusterEvent,
    old: Any,
    new: Any,
) -> list[QueuedPodInfo]:
    """The pods of *groups* without those that *event* cannot help; their hints are still to be asked.

    Args:
        groups: pods that were rejected by plugins which wait for the event.
        profiles: by schedulerName.
        nominator: pods that are nominated to the node of the event stay: the room there is theirs.
        event: the event.
        old: the object before, None if it is new.
        new: the object after, None if it is gone.
    """
    if new is not None or not isinstance(old, Pod):
        return [info for group in groups for info in group.pods.values()]
    nominated = nominator.nodes.get(old.node_name or old.nominated_node_name, {})
    found: list[QueuedPodInfo] = []
    for group in groups:
        if _is_ruled_out(group, profiles, nominated, event, old):
            found += [group.pods[pod.key] for pod in nominated.values() if pod.key in group.pods]
        else:
            found += group.pods.values()
    return found


def _is_ruled_out(
    group: RejectionGroup,
    profiles: Mapping[str, ProfileQueueing],
    nominated: Mapping[str, Pod],
    event: ClusterEvent,
    gone: Pod,
) -> bool:
    """Whether *event* is of no use to the pods of *group*, except to those *nominated* to its node."""
    if len(group.pods) == 1:
        return False
    other = next((info for info in group.pods.values() if info.uid not in nominated), None)
    if other is None:
        return False
    profile = profiles.get(other.pod.scheduler_name)
    return profile is not None and profile.hints.rules_out(other, event, gone, None)
