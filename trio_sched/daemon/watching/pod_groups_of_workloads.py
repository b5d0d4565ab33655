"""Makes PodGroups of the workloads of 1.35: one per pod group in a workload and key that a pod names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from attrs import define, field

from trio_sched.kube_client.kinds import Kind
from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.objects.pod_groups.workload_groups import (
    PLURAL,
    Workload,
    group_in,
    group_without_workload,
    is_of_workload,
    workload_and_group,
)

_Key = tuple[str, str]
"""Namespace and name."""
_NO_MEMBERS: Final[dict[str, None]] = {}


@define(eq=False, kw_only=True)
class PodGroupsOfWorkloads:
    """Between the watch of pod groups, which on servers of 1.35 is one of workloads, and who wants pod groups.

    A group that was made is there as long as it has a pod and its workload names it. Where the server serves no
    workloads, as after an upgrade to 1.36, it says that its pods are scheduled one by one. As long as that is not
    known, because workloads may not be listed for instance, there is none, and its pods wait.
    """

    deliver: Callable[[Listed[Any] | Changes[Any]], None]
    """Takes batches of pod groups."""
    listed_kind: Callable[[], Kind[Any] | None]
    """The kind that was listed last; None if the server serves neither pod groups nor workloads."""
    _workloads: dict[_Key, Workload] = field(factory=dict, init=False)
    _pods: dict[_Key, dict[str, None]] = field(factory=dict, init=False)
    """Group → the UIDs of its pods."""
    _priorities: dict[_Key, int | None] = field(factory=dict, init=False)
    """Group → the priority of the first of its pods: workloads have none."""
    _groups: dict[_Key, dict[str, None]] = field(factory=dict, init=False)
    """Workload → the names of its groups that have pods."""
    _made: dict[_Key, PodGroup] = field(factory=dict, init=False)
    _are_served: bool | None = field(default=None, init=False)
    """Whether the server serves workloads; None: not known."""

    def pods_changed(self, batch: Listed[Pod] | Changes[Pod]) -> None:
        """Take in what the watch of pods has shown."""
        changed: dict[_Key, None] = {}
        if isinstance(batch, Listed):
            for pod in batch.objects:
                self._pod_changed(pod, changed, is_gone=False)
        else:
            for change in batch.changes:
                self._pod_changed(change.subject, changed, is_gone=change.type == "DELETED")
        if changed:
            self._deliver_made(changed, batch.resource_version)

    def _pod_changed(self, pod: Pod, changed: dict[_Key, None], *, is_gone: bool) -> None:
        group = pod.spec.scheduling_group
        if group is None or not group.pod_group_name or not is_of_workload(group.pod_group_name):
            return
        name, namespace = group.pod_group_name, pod.metadata.namespace
        key, workload = (namespace, name), (namespace, workload_and_group(name)[0])
        members = self._pods.get(key)
        if not is_gone:
            if members is not None:
                members[pod.uid] = None
                return
            self._pods[key], self._priorities[key] = {pod.uid: None}, pod.spec.priority
            self._groups.setdefault(workload, {})[name] = None
        else:
            if members is None:
                return
            members.pop(pod.uid, None)
            if members:
                return
            del self._pods[key], self._priorities[key], self._groups[workload][name]
            if not self._groups[workload]:
                del self._groups[workload]
        changed[key] = None

    def groups_changed(self, batch: Listed[Any] | Changes[Any]) -> None:
        """Take in what the watch of pod groups has shown: pod groups, which are handed on, or workloads."""
        changed: dict[_Key, None] = {}
        if isinstance(batch, Listed):
            for one in batch.objects:
                if isinstance(one, Workload):
                    self._workload_changed(Change("ADDED", None, one), changed)
            found = [one for one in batch.objects if not isinstance(one, Workload)]
            self.deliver(Listed(found, batch.resource_version))
        else:
            others: list[Change[Any]] = []
            for change in batch.changes:
                if isinstance(change.subject, Workload):
                    self._workload_changed(change, changed)
                else:
                    others.append(change)
            self.deliver(Changes(others, batch.resource_version, batch.relisted))
        listed = self.listed_kind()
        changed |= self._note_served(are_served=listed is not None and listed.plural == PLURAL)
        if changed:
            self._deliver_made(changed, batch.resource_version)

    def not_served(self) -> None:
        """The server serves neither pod groups nor workloads, and never has."""
        if self.listed_kind() is None:
            self._deliver_made(self._note_served(are_served=False), "")

    def _note_served(self, *, are_served: bool) -> dict[_Key, None]:
        """Note whether the server serves workloads; returns the groups for which that is news."""
        if are_served is self._are_served:
            return {}
        self._are_served = are_served
        return dict.fromkeys(self._pods)

    def _workload_changed(self, change: Change[Workload], changed: dict[_Key, None]) -> None:
        metadata = change.subject.metadata
        key = metadata.namespace, metadata.name
        if change.type == "DELETED":
            self._workloads.pop(key, None)
        else:
            assert change.new is not None
            self._workloads[key] = change.new
        changed |= dict.fromkeys((metadata.namespace, name) for name in self._groups.get(key, _NO_MEMBERS))

    def _deliver_made(self, keys: Iterable[_Key], version: str) -> None:
        changes = [change for key in keys for change in self._changes_of(key)]
        if changes:
            self.deliver(Changes(changes, version))

    def _changes_of(self, key: _Key) -> list[Change[PodGroup]]:
        before, now = self._made.get(key), self._group(key)
        if now is None:
            if before is None:
                return []
            del self._made[key]
            return [Change("DELETED", before, None)]
        self._made[key] = now
        if before is None:
            return [Change("ADDED", None, now)]
        if before == now:
            return []
        if before.spec == now.spec:
            return [Change("MODIFIED", before, now)]
        # Pods wait for a group that is added, not for one that changes: those of 1.36 do not.
        return [Change("DELETED", before, None), Change("ADDED", None, now)]

    def _group(self, key: _Key) -> PodGroup | None:
        """The group as it is to be; None if it is not to be."""
        namespace, name = key
        if key not in self._pods or self._are_served is None:
            return None
        if not self._are_served:
            return group_without_workload(namespace, name)
        workload = self._workloads.get((namespace, workload_and_group(name)[0]))
        return None if workload is None else group_in(workload, name, self._priorities[key])
