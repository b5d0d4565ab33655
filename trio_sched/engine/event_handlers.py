"""What events of pods, nodes and other objects do to cache and queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from attrs import define, field

from trio_sched.engine.cache import CacheError
from trio_sched.engine.queue.cluster_changes import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_UPDATE,
    NODE_ADD,
    NODE_DELETE,
    node_update_events,
)
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.changes import Change
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cluster_events import Action, ClusterEvent, Resource
from trio_sched.plugin_api.custom_resources import Watched, differ

# A label is put together each time it is read, and these are read for every event about a pod.
_POD_ADDED: Final = ASSIGNED_POD_ADD.label
_POD_UPDATED: Final = ASSIGNED_POD_UPDATE.label
_POD_DELETED: Final = ASSIGNED_POD_DELETE.label

_DISRUPTED: Final = "DisruptionTarget"
_IN_TREES: Final = ("PodGroup", "CompositePodGroup")
_SLICES_CHANGED: Final = ClusterEvent(Resource.RESOURCE_SLICE, Action.UPDATE)


@define(eq=False, kw_only=True)
class EventHandlers:
    """Keeps cache and queue in step with the cluster; each event of a watch is one call, which returns its labels."""

    scheduler: Scheduler
    reject_waiting: Callable[[str], bool]
    """Rejects the pod with this UID if it waits on permit and has no outcome yet; returns whether that was so."""
    move_on_pod_add: bool = False
    """Gate GangScheduling: a pod that is added can be what others of its gang wait for."""
    declared_features: bool = True
    """Gate NodeDeclaredFeatures."""
    preemption_policies: bool = False
    """Whether it is an event that another preemption policy holds on a node, as since 1.37."""
    wanted_kinds: Mapping[Watched, tuple[str, Action]] = field(factory=dict)
    """Kind → its resource in cluster events, and what plugins have registered for; other changes move no pods."""
    cache_errors: list[CacheError] = field(factory=list, init=False)
    """Events that did not fit what the cache held, for the daemon to log."""

    # --- pods -------------------------------------------------------------------------------------------------------

    def pod_changed(self, change: Change[Pod], *, now: float) -> str:
        """Take in a change of a pod; returns the label of the event in metrics.

        Raises:
            QuantityError: the pod asks for an amount that cannot be read.
        """
        old, new = change.old, change.new
        unassigned = self.scheduler.queue.pod_events
        if change.type == "ADDED":
            assert new is not None
            self._pod_added(new, now)
            return _POD_ADDED if new.node_name else unassigned.added_label
        if change.type == "MODIFIED":
            assert old is not None
            assert new is not None
            self._pod_updated(old, new, now)
            if old.spec.node_name:
                return _POD_UPDATED
            return _POD_ADDED if new.node_name else unassigned.updated_label
        last = change.subject
        self._pod_deleted(old if old is not None else last, now)
        return _POD_DELETED if last.node_name else unassigned.deleted_label

    def _has_profile(self, pod: Pod) -> bool:
        return pod.scheduler_name in self.scheduler.profiles

    _responsible_for_pod = _has_profile  # not all that have one, where several schedulers share the work

    def profiles_changed(self, pods: Iterable[Pod], *, now: float) -> None:
        """Other profiles are installed: forget the pods that none of them schedules, take up those that one does now.

        Args:
            pods: all that the watch has shown.
            now: the time.
        """
        cache, queue = self.scheduler.cache, self.scheduler.queue
        for pod in cache.unassigned.pods():
            if not self._responsible_for_pod(pod):
                self._forget(pod)
        taken = [
            pod
            for pod in pods
            if not pod.node_name and self._responsible_for_pod(pod) and cache.unassigned.get(pod.key) is None
        ]
        for pod in taken:  # all of a group before the first of them is tried
            cache.put_unassigned(pod)
        for pod in taken:
            if not cache.is_assumed(pod.uid):
                queue.add(pod, now=now)
        if self.move_on_pod_add:  # others of their groups may have been waiting for them
            for pod in {pod.group_key: pod for pod in taken if pod.group_key}.values():
                queue.move_all(queue.pod_events.added, None, pod, now=now)

    def _forget(self, pod: Pod) -> None:
        """Nothing is decided here any more about a pod without a node."""
        cache = self.scheduler.cache
        if cache.is_assumed(pod.uid):  # it will be bound all the same, and stays a member of its group
            cache.unassigned.drop(pod)
        else:
            cache.drop_unassigned(pod)
        self.scheduler.queue.delete(pod)

    def take_up_if_missed(self, pod: Pod, *, now: float) -> bool:
        """Take up *pod*, which the watch has shown, if the cache or the queue should have it and does not.

        Returns:
            Whether that was so.

        Raises:
            QuantityError: it cannot be taken up.
        """
        cache, queue = self.scheduler.cache, self.scheduler.queue
        cached = cache.get(pod.uid)
        if pod.node_name:
            if cached is not None and not cached.assumed and not _differ(cached.pod, pod):
                return False
            if cached is not None and not cached.assumed:
                cache.update(pod)
                cache.unassigned.drop(pod)
            else:
                cache.add(pod)
            queue.delete(pod)
            return True
        if not self._responsible_for_pod(pod):
            return False
        known = cache.unassigned.get(pod.key)
        # Nobody schedules a pod that is being deleted.
        has_place = (
            cached is not None
            or pod.metadata.deletion_timestamp is not None
            or pod.uid in queue.in_flight
            or queue.find(pod.key) is not None
        )
        if has_place and known is not None and known.uid == pod.uid:
            return False
        cache.put_unassigned(pod)
        if not has_place:
            queue.add(pod, now=now)
        return True

    def _pod_added(self, pod: Pod, now: float) -> None:
        scheduler = self.scheduler
        if pod.node_name:
            self._cache(scheduler.cache.add, pod)
            scheduler.queue.move_all(ASSIGNED_POD_ADD, None, pod, now=now)
        elif self._responsible_for_pod(pod):
            scheduler.cache.put_unassigned(pod)
            scheduler.queue.add(pod, now=now)
            if self.move_on_pod_add:
                scheduler.queue.move_all(scheduler.queue.pod_events.added, None, pod, now=now)

    def _pod_updated(self, old: Pod, new: Pod, now: float) -> None:
        queue = self.scheduler.queue
        if old.spec.node_name:
            self._cache(self.scheduler.cache.update, new)
            for event in queue.events_of_update(old, new):
                queue.move_all(event, old, new, now=now)
        elif new.node_name:
            self._cache(self.scheduler.cache.add, new)
            queue.move_all(ASSIGNED_POD_ADD, None, new, now=now)
            if self._has_profile(new):
                queue.delete(old)
        elif self._responsible_for_pod(new) and old.metadata.resource_version != new.metadata.resource_version:
            self._update_pod_in_scheduling_queue(old, new, now)

    def _update_pod_in_scheduling_queue(self, old: Pod, new: Pod, now: float) -> None:
        cache, queue = self.scheduler.cache, self.scheduler.queue
        cache.put_unassigned(new)
        if cache.is_assumed(new.uid):
            if new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
                self._assumed_deleted(new, now)
            return
        queue.update(old, new, now=now)
        if old.nominated_node_name and old.nominated_node_name != new.nominated_node_name:
            queue.move_all(ASSIGNED_POD_DELETE, old, None, now=now, only=lambda pod: pod.priority <= old.priority)

    def _pod_deleted(self, known: Pod, now: float) -> None:
        """The pod is gone that was *known* like this; its last state can be another."""
        cache, queue = self.scheduler.cache, self.scheduler.queue
        if not known.node_name and self._has_profile(known):
            # It had no node in the last version that was seen, so it is in the queue, even if it got one in between.
            cache.drop_unassigned(known)
            # Its status need not show the nomination that counts: not yet, or because the patch was refused.
            nominated = queue.nominator.node_of(known.uid) or known.nominated_node_name
            queue.delete(known)
            if cache.is_assumed(known.uid):
                self._assumed_deleted(known, now)
            elif nominated:
                queue.nomination_ended(known, nominated, now=now)
        if known.node_name:
            self._cache(lambda pod: cache.remove(pod.uid), known)
            if known.node_name in cache.table.row_of and _is_evicted(known):
                cache.evictions[known.node_name] += 1
            queue.move_all(ASSIGNED_POD_DELETE, known, None, now=now)

    def _assumed_deleted(self, pod: Pod, now: float) -> None:
        """An assumed pod is being deleted; its binding will fail by itself."""
        cached = self.scheduler.cache.get(pod.uid)
        if cached is None:
            return
        if not self.reject_waiting(pod.uid):
            self._cache(lambda p: self.scheduler.cache.forget(p.uid), pod)
        self.scheduler.queue.move_all(ASSIGNED_POD_DELETE, cached.pod_on_node, None, now=now)

    def _cache(self, step: Callable[[Pod], object], pod: Pod) -> None:
        try:
            step(pod)
        except CacheError as problem:
            self.cache_errors.append(problem)

    # --- nodes ------------------------------------------------------------------------------------------------------

    def node_changed(self, change: Change[Node], *, now: float) -> list[str]:
        """Take in a change of a node; returns the labels of the events in metrics: none if nothing that matters.

        Raises:
            QuantityError: the node offers an amount that cannot be read.
        """
        old, new = change.old, change.new
        cache, queue = self.scheduler.cache, self.scheduler.queue
        if change.type == "ADDED":
            assert new is not None
            cache.add_node(new)
            queue.move_all(NODE_ADD, None, new, now=now)
            return [NODE_ADD.label]
        if change.type == "MODIFIED":
            assert old is not None
            assert new is not None
            cache.add_node(new)
            events = node_update_events(
                old, new, declared_features=self.declared_features, preemption_policies=self.preemption_policies
            )
            for event in events:
                queue.move_all(event, old, new, now=now)
            return [event.label for event in events]
        gone = old if old is not None else change.subject
        queue.move_all(NODE_DELETE, gone, None, now=now)
        try:
            cache.remove_node(gone.name)
        except CacheError as problem:
            self.cache_errors.append(problem)
        return [NODE_DELETE.label]

    def nodes_listed_again(self, changed: Iterable[Node]) -> None:
        """These have *changed*, and what they were in between was missed; nothing follows from that here."""

    # --- everything else --------------------------------------------------------------------------------------------

    def batch_changed(self, kind: Watched) -> None:
        """Objects of *kind* have changed in more than their versions: plugins may have read them."""
        if self.scheduler.object_cache.count_change(kind):
            self.scheduler.invalidate_signatures()

    def object_changed(self, kind: Watched, change: Change[Any], *, now: float) -> str:
        """Take in a change of an object of another *kind*.

        Returns:
            The label of the event in metrics; empty if no plugin has registered for it.
        """
        cache, queue = self.scheduler.object_cache, self.scheduler.queue
        metadata = change.subject.metadata
        if change.type == "DELETED":
            cache.remove(kind, metadata.name, metadata.namespace)
            self._tree_changed(kind, change, now)
            action, old, new = Action.DELETE, change.old, None
        else:
            cache.put(kind, metadata.name, metadata.namespace, change.new)
            self._tree_changed(kind, change, now)
            if kind == "PodGroup":
                self.scheduler.cache.pod_group_changed(f"{metadata.namespace}/{metadata.name}")
                if change.type == "ADDED":
                    queue.pod_group_added(f"{metadata.namespace}/{metadata.name}", now=now)
            action = Action.ADD if change.type == "ADDED" else Action.UPDATE
            old, new = change.old, change.new
        if kind == "DeviceTaintRule":  # the devices look as if their slices had changed
            queue.move_all(_SLICES_CHANGED, None, None, now=now)
        resource, actions = self.wanted_kinds.get(kind, ("", Action(0)))
        if not actions & action:
            return ""
        event = ClusterEvent(resource, action)
        queue.move_all(event, old, new, now=now)
        return event.label

    def _tree_changed(self, kind: Watched, change: Change[Any], now: float) -> None:
        """A group may have got another root, or lost it."""
        forest = self.scheduler.forest
        if forest is not None and kind in _IN_TREES:
            edit = forest.remove if change.type == "DELETED" else forest.put
            leaves = edit(change.subject, now)
            if leaves:
                self.scheduler.queue.roots_changed(leaves, now=now)


def _differ(one: Pod, other: Pod) -> bool:
    """Whether two versions of a pod differ in more than their versions."""
    a, b = one.metadata, other.metadata
    return a.resource_version != b.resource_version and differ(one, other)


def _is_evicted(pod: Pod) -> bool:
    """Whether *pod* was to make way when it was seen last: for another pod, a drained node, a taint."""
    return any(one.type == _DISRUPTED and one.status == "True" for one in pod.status.conditions or ())
