"""Pods that wait for an event, indexed by the plugins that rejected them: most events concern few of them.

Pods with equal signature, priority and rejectors form a group, so that an event that is of no use to one of them can
be ruled out for all of them at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, KeysView, ValuesView

from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.interrupts import raise_interrupt


class RejectionGroup:
    """Pods that an event concerns alike; there is at least one."""

    __slots__ = ("key", "pods", "rejectors")

    def __init__(self, key: Hashable, rejectors: frozenset[str]) -> None:
        self.key = key
        """Equal for pods of one group."""
        self.rejectors = rejectors
        """The plugins that rejected them."""
        self.pods: dict[str, QueuedPodInfo] = {}
        """``namespace/name`` → pod."""


class UnschedulablePods:
    """``namespace/name`` → pod, in groups, with an index by rejecting plugin."""

    __slots__ = ("_by_plugin", "_group_of", "_groups", "_pods")

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPodInfo] = {}
        self._group_of: dict[str, RejectionGroup] = {}
        self._groups: dict[Hashable, RejectionGroup] = {}
        self._by_plugin: dict[str, dict[int, RejectionGroup]] = {}
        """Plugin → id → group."""

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod called *key*, if it is here."""
        return self._pods.get(key)

    def keys(self) -> KeysView[str]:
        """The names of all of them."""
        return self._pods.keys()

    def values(self) -> ValuesView[QueuedPodInfo]:
        """All of them."""
        return self._pods.values()

    def groups(self) -> ValuesView[RejectionGroup]:
        """All groups."""
        return self._groups.values()

    def put(self, info: QueuedPodInfo) -> None:
        """Put *info* in, or take note that its rejectors have changed."""
        key = info.key
        self.remove(key)
        self._pods[key] = info
        rejectors = frozenset(info.rejectors)
        group_key = self._group_key(info, rejectors)
        group = self._groups.get(group_key)
        if group is None:
            group = self._groups[group_key] = RejectionGroup(group_key, rejectors)
            for plugin in rejectors:
                self._by_plugin.setdefault(plugin, {})[id(group)] = group
        group.pods[key] = info
        self._group_of[key] = group

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the pod called *key* out, if it is here."""
        info = self._pods.pop(key, None)
        if info is not None:
            group = self._group_of.pop(key)
            del group.pods[key]
            if not group.pods:
                self._remove_group(group)
        return info

    def rejected_by(self, plugins: Iterable[str]) -> list[RejectionGroup]:
        """The groups of pods that one of *plugins* rejected; each once."""
        found: dict[int, RejectionGroup] = {}
        for plugin in plugins:
            found.update(self._by_plugin.get(plugin, {}))
        return list(found.values())

    def _group_key(self, info: QueuedPodInfo, rejectors: frozenset[str]) -> Hashable:
        if info.signature is None:
            return info.key
        pod = info.pod
        preempts = pod.spec.preemption_policy
        key = (pod.scheduler_name, info.signature, info.signature_epoch, pod.priority, preempts, rejectors)
        try:
            _ = key in self._groups
        except BaseException as error:  # the parts are objects of plugins, whose __eq__ can raise anything
            raise_interrupt(error)
            return info.key
        return key

    def _remove_group(self, group: RejectionGroup) -> None:
        del self._groups[group.key]
        for plugin in group.rejectors:
            groups = self._by_plugin[plugin]
            del groups[id(group)]
            if not groups:
                del self._by_plugin[plugin]
