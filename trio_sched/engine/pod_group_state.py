"""The pods of each pod group: which are unscheduled, which are assumed on a node, which are assigned to one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import define, field

from trio_sched.objects.pod import Pod

_MIN_CHANGED: Final = 1000


@define(eq=False)
class GroupMembers:
    """The pods of one group, by UID; plugins see it as `trio_sched.plugin_api.PodGroupState`."""

    key: str
    """``namespace/name`` of the group."""
    pods: dict[str, Pod] = field(factory=dict)
    """All of them, as they were seen last."""
    unscheduled: dict[str, None] = field(factory=dict)
    assumed: dict[str, str] = field(factory=dict)
    """UID → node."""
    assigned: dict[str, str] = field(factory=dict)
    """UID → node."""
    is_only_assumed: bool = False
    """No event has shown a pod of it: its last pod may have been deleted while the group was tried."""

    @property
    def pod_count(self) -> int:
        """How many pods it has."""
        return len(self.pods)

    @property
    def scheduled_count(self) -> int:
        """How many are assumed or assigned."""
        return len(self.assumed) + len(self.assigned)

    @property
    def unscheduled_pods(self) -> Sequence[Pod]:
        """Those that are neither assumed nor assigned, in the order in which they came."""
        return [self.pods[uid] for uid in self.unscheduled]

    @property
    def assumed_uids(self) -> Sequence[str]:
        """Those that are assumed and not assigned yet."""
        return list(self.assumed)

    @property
    def node_names(self) -> Mapping[str, str]:
        """UID → node, of those that are assumed or assigned."""
        return {**self.assigned, **self.assumed}


@define(eq=False)
class PodGroupStates:
    """All groups that have a pod, by ``namespace/name``.

    Only the cache writes them.

    Source: the pod group states of kube-scheduler 1.36.
    """

    is_followed: bool = True
    """Gate GenericWorkload; without it no pod is in a group."""
    _groups: dict[str, GroupMembers] = field(factory=dict)
    _changed: set[str] = field(factory=set)

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[GroupMembers]:
        return iter(self._groups.values())

    def get(self, key: str) -> GroupMembers | None:
        """The group called *key*; None if it has no pod."""
        return self._groups.get(key)

    def _key(self, pod: Pod) -> str | None:
        return pod.group_key if self.is_followed else None

    def note_change(self, key: str) -> None:
        """Something else about the group called *key* has changed."""
        if self.is_followed:
            self._changed.add(key)

    def take_changed(self) -> set[str]:
        """The keys of the groups that have changed since this was called last."""
        changed, self._changed = self._changed, set()
        return changed

    def add(self, pod: Pod) -> None:
        """*pod* is new, or has another version."""
        key = self._key(pod)
        if key is None:
            return
        self._changed.add(key)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = GroupMembers(key)
        group.is_only_assumed = False
        uid = pod.uid
        group.pods[uid] = pod
        if pod.node_name:
            group.unscheduled.pop(uid, None)
            group.assumed.pop(uid, None)
            group.assigned[uid] = pod.node_name
        elif uid not in group.assumed and uid not in group.assigned:
            group.unscheduled[uid] = None

    def remove(self, pod: Pod) -> None:
        """*pod* is gone."""
        key = self._key(pod)
        group = None if key is None else self._groups.get(key)
        if group is None:
            return
        self._changed.add(group.key)
        for by_uid in (group.pods, group.unscheduled, group.assumed, group.assigned):
            by_uid.pop(pod.uid, None)
        if not group.pods:
            del self._groups[group.key]
            if len(self._changed) > 2 * len(self._groups) + _MIN_CHANGED:  # nobody takes them while another leads
                self._changed &= self._groups.keys()

    def assume(self, pod: Pod, node_name: str) -> None:
        """*pod* is assumed on *node_name*; one that the group does not know is gone, or not seen yet."""
        key = self._key(pod)
        if key is None:
            return
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = GroupMembers(key, {pod.uid: pod}, is_only_assumed=True)
        elif pod.uid not in group.pods:
            return
        self._changed.add(key)
        group.unscheduled.pop(pod.uid, None)
        if pod.uid not in group.assigned:
            group.assumed[pod.uid] = node_name

    def forget(self, pod: Pod) -> None:
        """*pod* is not assumed any more."""
        key = self._key(pod)
        group = None if key is None else self._groups.get(key)
        if group is None or pod.uid not in group.pods:
            return
        self._changed.add(group.key)
        group.assumed.pop(pod.uid, None)
        if group.is_only_assumed and not group.assumed:
            del self._groups[group.key]
        elif pod.uid not in group.assigned:
            group.unscheduled[pod.uid] = None
