"""From watch events to cache and queue: what the API server has reported."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import trio
from attrs import define, field

from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.watching.object_cache import ObjectCache
from trio_sched.daemon.watching.unassigned_pods import UnassignedPods
from trio_sched.daemon.watching.watched_kinds import Watched
from trio_sched.engine.cache import CacheError
from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.engine.queue.cluster_changes import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_UPDATE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_DELETE,
    UNSCHEDULABLE_POD_UPDATE,
    node_update_events,
    pod_update_events,
)
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.quantity import QuantityError
from trio_sched.plugin_api.cluster_events import Action, ClusterEvent, Resource
from trio_sched.plugin_api.custom_resources import differ
from trio_sched.snapshot.devices.device_table import KINDS as DEVICE_KINDS
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)

# A label is put together each time it is read, and these are read for every event about a pod.
_POD_ADDED: Final = ASSIGNED_POD_ADD.label
_POD_UPDATED: Final = ASSIGNED_POD_UPDATE.label
_POD_DELETED: Final = ASSIGNED_POD_DELETE.label
_UNASSIGNED_ADDED: Final = UNSCHEDULABLE_POD_ADD.label
_UNASSIGNED_UPDATED: Final = UNSCHEDULABLE_POD_UPDATE.label
_UNASSIGNED_DELETED: Final = UNSCHEDULABLE_POD_DELETE.label

_SLICES_CHANGED: Final = ClusterEvent(Resource.RESOURCE_SLICE, Action.UPDATE)
_VERBS: Final = {"ADDED": "Add", "MODIFIED": "Update", "DELETED": "Delete"}

K = TypeVar("K")


@define(eq=False, kw_only=True)
class EventHandlers:
    """Keeps the engine's cache and queue in step with the cluster. Nothing here waits."""

    scheduler: Scheduler
    unassigned: UnassignedPods
    object_cache: ObjectCache
    wake: Callable[[], None]
    """Called after every batch: it may have put pods into the queue, or made a plugin fail."""
    reject_waiting: Callable[[str], bool]
    """Rejects the pod with this UID if it waits on permit and has no outcome yet; returns whether that was so."""
    is_set_aside: Callable[[str], bool] = lambda _key: False
    """Whether the pod called ``namespace/name`` waits for extenders."""
    groups: PodGroupStates | None = None
    """The state of pod groups; None without the gate GenericWorkload."""
    move_on_pod_add: bool = False
    """Gate GangScheduling: a pod that is added can be what others of its gang wait for."""
    declared_features: bool = True
    """Gate NodeDeclaredFeatures."""
    wanted_kinds: Mapping[Watched, tuple[str, Action]] = field(factory=dict)
    """Kind → its resource in cluster events, and what plugins have registered for; other changes move no pods."""
    metrics: MetricRecorder = field(factory=MetricRecorder)

    # --- pods -------------------------------------------------------------------------------------------------------

    def pods_changed(self, batch: Listed[Pod] | Changes[Pod]) -> None:
        """Take in what a watch of pods delivered."""
        now, is_logged = trio.current_time(), log.isEnabledFor(V3)
        clock, observe = self.scheduler.measurements.clock, self.metrics.event_handling.observe
        began = clock()
        for change in _changes(batch):
            if is_logged:
                _log_event(change, "pod", "scheduled pod" if _has_node(change) else "unscheduled pod")
            try:
                label = self._pod_changed(change, now)
            except QuantityError as problem:  # no API server stores such a thing; if one does, the others go on
                log.error("pod %s is left out: %s", _name(change), problem)
                continue
            ended = clock()
            observe(ended - began, label)
            began = ended
        self._count_change("Pod", batch)
        self.wake()

    def _pod_changed(self, change: Change[Pod], now: float) -> str:
        """Returns the label of the event in metrics."""
        old, new = change.old, change.new
        if change.type == "ADDED":
            assert new is not None
            self._pod_added(new, now)
            return _POD_ADDED if new.node_name else _UNASSIGNED_ADDED
        if change.type == "MODIFIED":
            assert old is not None
            assert new is not None
            self._pod_updated(old, new, now)
            if old.spec.node_name:
                return _POD_UPDATED
            return _POD_ADDED if new.node_name else _UNASSIGNED_UPDATED
        last = new if new is not None else old
        assert last is not None
        self._pod_deleted(last, now, was=old)
        return _POD_DELETED if last.node_name else _UNASSIGNED_DELETED

    def _responsible_for_pod(self, pod: Pod) -> bool:
        return pod.scheduler_name in self.scheduler.profiles

    def profiles_changed(self, pods: Iterable[Pod]) -> None:
        """Other profiles are installed: forget the pods that none of them schedules, take up those that one does now.

        Args:
            pods: all that the watch has shown.
        """
        now, queue = trio.current_time(), self.scheduler.queue
        for pod in self.unassigned.pods():
            if not self._responsible_for_pod(pod):
                self.unassigned.drop(pod)
                queue.delete(pod)
                if self.groups is not None and not self.scheduler.cache.is_assumed(pod.uid):
                    self.groups.remove(pod)
        for pod in pods:
            if not pod.node_name and self._responsible_for_pod(pod) and self.unassigned.get(pod.key) is None:
                self.unassigned.put(pod)
                if self.groups is not None:
                    self.groups.add(pod)
                if not self.scheduler.cache.is_assumed(pod.uid):
                    queue.add(pod, now=now)

    def take_up_if_missed(self, pod: Pod) -> bool:
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
            else:
                cache.add(pod)
            self.unassigned.drop(pod)
            queue.delete(pod)
            return True
        if not self._responsible_for_pod(pod):
            return False
        known = self.unassigned.get(pod.key)
        # Nobody schedules a pod that is being deleted.
        has_place = (
            cached is not None
            or pod.metadata.deletion_timestamp is not None
            or pod.uid in queue.in_flight
            or queue.find(pod.key) is not None
            or self.is_set_aside(pod.key)
        )
        if has_place and known is not None and known.uid == pod.uid:
            return False
        self.unassigned.put(pod)
        if self.groups is not None:
            self.groups.add(pod)
        if not has_place:
            queue.add(pod, now=trio.current_time())
        return True

    def _pod_added(self, pod: Pod, now: float) -> None:
        if pod.node_name:
            self._cache(self.scheduler.cache.add, pod)
            self.scheduler.queue.move_all(ASSIGNED_POD_ADD, None, pod, now=now)
        elif self._responsible_for_pod(pod):
            self.unassigned.put(pod)
            if self.groups is not None:
                self.groups.add(pod)
            self.scheduler.queue.add(pod, now=now)
            if self.move_on_pod_add:
                self.scheduler.queue.move_all(UNSCHEDULABLE_POD_ADD, None, pod, now=now)

    def _pod_updated(self, old: Pod, new: Pod, now: float) -> None:
        queue = self.scheduler.queue
        if old.spec.node_name:
            self._cache(self.scheduler.cache.update, new)
            for event in pod_update_events(old, new, queue.resource_options):
                queue.move_all(event, old, new, now=now)
        elif new.node_name:
            self.unassigned.drop(old)
            self._cache(self.scheduler.cache.add, new)
            queue.move_all(ASSIGNED_POD_ADD, None, new, now=now)
            if self._responsible_for_pod(new):
                queue.delete(old)
        elif self._responsible_for_pod(new):
            self.unassigned.put(new)
            self._update_pod_in_scheduling_queue(old, new, now)

    def _update_pod_in_scheduling_queue(self, old: Pod, new: Pod, now: float) -> None:
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        if self.groups is not None:
            self.groups.add(new)
        queue = self.scheduler.queue
        if self.scheduler.cache.is_assumed(new.uid):
            if new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
                self._assumed_deleted(new, now)
            return
        queue.update(old, new, now=now)
        if old.nominated_node_name and old.nominated_node_name != new.nominated_node_name:
            queue.move_all(ASSIGNED_POD_DELETE, old, None, now=now, only=lambda pod: pod.priority <= old.priority)

    def _pod_deleted(self, pod: Pod, now: float, *, was: Pod | None) -> None:
        queue = self.scheduler.queue
        known = was if was is not None else pod
        if not known.node_name and self._responsible_for_pod(known):
            # It had no node in the last version that was seen, so it is in the queue, even if it got one in between.
            self.unassigned.drop(known)
            # Its status need not show the nomination that counts: not yet, or because the patch was refused.
            nominated = queue.nominator.node_of(known.uid) or known.nominated_node_name
            queue.delete(known)
            if self.groups is not None:
                self.groups.remove(known)
            if self.scheduler.cache.is_assumed(known.uid):
                self._assumed_deleted(known, now)
            elif nominated:
                queue.nomination_ended(known, nominated, now=now)
        if known.node_name:
            self._cache_remove(known)
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
            self._cache_error(problem)

    def _cache_error(self, problem: CacheError) -> None:
        self.metrics.cache_errors += 1
        log.error("Scheduler cache: %s", problem)

    def _cache_remove(self, pod: Pod) -> None:
        try:
            self.scheduler.cache.remove(pod.uid)
        except CacheError as problem:
            self._cache_error(problem)

    # --- nodes ------------------------------------------------------------------------------------------------------

    def nodes_changed(self, batch: Listed[Node] | Changes[Node]) -> None:
        """Take in what a watch of nodes delivered."""
        is_logged = log.isEnabledFor(V3)
        clock, observe = self.scheduler.measurements.clock, self.metrics.event_handling.observe
        for change in _changes(batch):
            if is_logged:
                _log_event(change, "node", "node")
            began = clock()
            try:
                labels = self._node_changed(change)
            except QuantityError as problem:
                log.error("node %s is left out: %s", _name(change), problem)
                continue
            seconds = clock() - began
            for label in labels:
                observe(seconds / len(labels), label)
        self._count_change("Node", batch)
        self.wake()

    def _count_change(self, kind: str, batch: Listed[Any] | Changes[Any]) -> None:
        """Pods or nodes have changed, which plugins may have read as objects, or wait for."""
        cache = self.object_cache
        if cache.count_change(kind):
            self.scheduler.invalidate_signatures()
        if cache.is_awaited:
            for change in _changes(batch):
                subject: Any = change.new if change.new is not None else change.old
                cache.changed(kind, subject.metadata.name, subject.metadata.namespace)

    def _node_changed(self, change: Change[Node]) -> list[str]:
        """Returns the labels of the events in metrics; none if nothing has changed that matters."""
        old, new = change.old, change.new
        queue, now = self.scheduler.queue, trio.current_time()
        if change.type == "ADDED":
            assert new is not None
            self.scheduler.cache.add_node(new)
            queue.move_all(NODE_ADD, None, new, now=now)
            return [NODE_ADD.label]
        if change.type == "MODIFIED":
            assert old is not None
            assert new is not None
            self.scheduler.cache.add_node(new)
            events = node_update_events(old, new, declared_features=self.declared_features)
            for event in events:
                queue.move_all(event, old, new, now=now)
            return [event.label for event in events]
        gone = old if old is not None else new
        assert gone is not None
        queue.move_all(NODE_DELETE, gone, None, now=now)
        try:
            self.scheduler.cache.remove_node(gone.name)
        except CacheError as problem:
            self._cache_error(problem)
        return [NODE_DELETE.label]

    # --- everything else --------------------------------------------------------------------------------------------

    def handler(self, kind: Watched) -> Callable[[Listed[Any] | Changes[Any]], None]:
        """The event handler for a watch of another *kind*, which is the name under which plugins read its objects."""
        self.object_cache.add_kind(kind)

        def handle(batch: Listed[Any] | Changes[Any]) -> None:
            changes = _changes(batch)
            if any(map(_matters, changes)) and self.object_cache.count_change(kind):
                self.scheduler.invalidate_signatures()
            for change in changes:
                self._object_changed(kind, change)
            self.wake()

        return handle

    def _object_changed(self, kind: Watched, change: Change[Any]) -> None:
        subject: Any = change.new if change.new is not None else change.old
        name, namespace = subject.metadata.name, subject.metadata.namespace
        devices = self.scheduler.cache.table.devices if kind in DEVICE_KINDS else None
        if change.type == "DELETED":
            self.object_cache.remove(kind, name, namespace)
            if devices is not None:
                devices.remove(str(kind), name, namespace)
            action, old, new = Action.DELETE, change.old, None
        else:
            self.object_cache.put(kind, name, namespace, change.new)
            if devices is not None:
                devices.put(subject)
            if self.groups is not None and kind == "PodGroup":
                self.groups.note_change(f"{namespace}/{name}")
            action = Action.ADD if change.type == "ADDED" else Action.UPDATE
            old, new = change.old, change.new
        if kind == "DeviceTaintRule":  # the devices look as if their slices had changed
            self.scheduler.queue.move_all(_SLICES_CHANGED, None, None, now=trio.current_time())
        resource, actions = self.wanted_kinds.get(kind, ("", Action(0)))
        if actions & action:
            clock, event = self.scheduler.measurements.clock, ClusterEvent(resource, action)
            began = clock()
            self.scheduler.queue.move_all(event, old, new, now=trio.current_time())
            self.metrics.event_handling.observe(clock() - began, event.label)


def _changes(batch: Listed[K] | Changes[K]) -> list[Change[K]]:
    """A batch as changes: what was listed first was added."""
    return [Change("ADDED", None, one) for one in batch.objects] if isinstance(batch, Listed) else batch.changes


def _differ(one: Pod, other: Pod) -> bool:
    """Whether two versions of a pod differ in more than their versions."""
    a, b = one.metadata, other.metadata
    return a.resource_version != b.resource_version and differ(one, other)


def _matters(change: Change[Any]) -> bool:
    """Whether anything is different that plugins can see, besides the version."""
    return change.old is None or change.new is None or change.type == "DELETED" or differ(change.old, change.new)


def _has_node(change: Change[Pod]) -> bool:
    subject = change.new if change.new is not None else change.old
    return subject is not None and bool(subject.node_name)


def _log_event(change: Change[Any], key: str, subject: str) -> None:
    log_line(log, V3, f"{_VERBS[change.type]} event for {subject}", {key: _name(change)})


def _name(change: Change[Any]) -> str:
    subject: Any = change.new if change.new is not None else change.old
    metadata = subject.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)
