"""A scheduling queue in which the pods of a group are one entity: they have one place, one backoff and one turn.

The entity of a group that is in a tree of groups is the root of the tree: all pods in the tree are queued together.

Each pod has its entry, but the entries of a group are always in the same part of the queue, with the same sort key and
the same end of the backoff. A group has one more place for pods that come while it is being scheduled.

Source: the scheduling queue of kube-scheduler 1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from attrs import define, field
from msgspec import structs

from trio_sched.engine.queue.cluster_changes import (
    CONFIGURATION_CHANGE,
    POD_GROUP_ADD,
    SCHEDULE_ATTEMPT_FAILURE,
)
from trio_sched.engine.queue.queued_group import QueuedGroup, entity_sizes, with_incomplete
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import QueueingStrategy
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api.cluster_events import ClusterEvent

_RANK: Final = {strategy: rank for rank, strategy in enumerate(QueueingStrategy)}


@define(eq=False, kw_only=True, slots=False)
class GroupQueue(SchedulingQueue):
    """Queues pods as `SchedulingQueue` does, and groups of pods as one entity each."""

    find_group: Callable[[str], PodGroup | CompositePodGroup | None]
    """The group that is the entity with that key; None if no event has shown it, or its tree is not whole."""
    root_of: Callable[[str], str] = str
    """The key of the entity of the group called ``namespace/name``: itself, or the root of its tree."""
    groups: dict[str, QueuedGroup] = field(factory=dict)
    _roots: dict[str, str] = field(factory=dict)
    """Group → the root of its tree, of the groups that are not their own root."""

    def entity_of(self, pod: Pod) -> str | None:
        """The key of the group or tree of *pod*; None if it has none."""
        key = pod.group_key
        return None if key is None else self._roots.get(key, key)

    def _group_of(self, info: QueuedPodInfo) -> QueuedGroup | None:
        key = self.entity_of(info.pod)
        return None if key is None else self.groups.get(key)

    # --- looking ----------------------------------------------------------------------------------------------------

    def incomplete(self) -> set[str]:
        """The pods whose group is not there, by namespace and name."""
        return {key for group in self.groups.values() if group.is_incomplete for key in group.members}

    def sizes(self) -> dict[str, int]:
        """How many pods are in each part of the queue."""
        return with_incomplete(super().sizes(), self.groups.values()) | {"pending": len(self.pending)}

    def entity_sizes(self) -> dict[tuple[str, str], int]:
        """How many entities are in each part of the queue: (part, ``pod`` or ``podgroup``) → number."""
        return entity_sizes(self.sizes(), self.groups.values(), self._part)

    def _part(self, group: QueuedGroup) -> str:
        if group.is_incomplete:
            return "incomplete"
        match self._strategy_of(group):
            case QueueingStrategy.IMMEDIATELY:
                return "active"
            case QueueingStrategy.AFTER_BACKOFF:
                return "backoff"
        return "gated" if any(info.gating_plugin for info in group.members.values()) else "unschedulable"

    def incoming_entities(self) -> dict[tuple[str, str, str], int]:
        """(queue, event, ``pod`` or ``podgroup``) → entities that entered."""
        pods = self.counters.incoming - self.counters.incoming_members
        found = {(*where, "pod"): count for where, count in pods.items()}
        return found | {(*where, "podgroup"): count for where, count in self.counters.incoming_groups.items()}

    def _strategy_of(self, group: QueuedGroup) -> QueueingStrategy:
        """What leads to where the group is: at once to the active part, where it is also if it is nowhere."""
        key = next(iter(group.members), "")
        if key in self.unschedulable:
            return QueueingStrategy.SKIP
        return QueueingStrategy.AFTER_BACKOFF if key in self.backing_off else QueueingStrategy.IMMEDIATELY

    # --- pods and groups come, change and go ------------------------------------------------------------------------

    def add(self, pod: Pod, *, now: float) -> None:
        """A new pod without a node."""
        if pod.group_key is None:
            super().add(pod, now=now)
        else:
            self._join(QueuedPodInfo(pod, now), self.pod_events.added, now)

    def _join(self, info: QueuedPodInfo, event: ClusterEvent, now: float) -> None:
        self.nominator.add(info.pod, None)
        group = self._made_group_of(info, now)
        if group.is_in_flight:
            self._put_pending(group, info)
            return
        self._enter(group, info, event, now)

    def _made_group_of(self, info: QueuedPodInfo, now: float) -> QueuedGroup:
        key = self.entity_of(info.pod)
        assert key is not None
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = QueuedGroup(key, now)
        return group

    def _enter(self, group: QueuedGroup, info: QueuedPodInfo, event: ClusterEvent, now: float) -> str:
        """Put a pod where its group is; returns where that is. The other pods are looked at only if it gates them."""
        strategy, other = self._strategy_of(group), next(iter(group.members.values()), None)
        group.members[info.key] = info
        if other is None:
            return self._requeue_group(group, QueueingStrategy.AFTER_BACKOFF, event, now)
        info.timestamp, info.backoff_expiry = group.timestamp, group.backoff_expiry
        if strategy == QueueingStrategy.SKIP:
            info.gating_plugin, info.gating_message = other.gating_plugin, other.gating_message
            self._put_unschedulable(info, event)
            return "unschedulable"
        if not self._may_enter(group, [info]):
            self._put_all_unschedulable(group, event)
            return "unschedulable"
        backs_off = strategy == QueueingStrategy.AFTER_BACKOFF
        self._push(info, event, now, backs_off=backs_off)
        return "backoff" if backs_off else "active"

    def _put_pending(self, group: QueuedGroup, info: QueuedPodInfo) -> None:
        group.pending[info.key] = self.pending[info.key] = info

    def update(self, old: Pod, new: Pod, *, now: float) -> None:
        """A pod without a node has changed."""
        info = self.pending.get(new.key)
        if info is None or new.uid in self.in_flight:
            super().update(old, new, now=now)
        else:
            info.replace_pod(new)
            self.nominator.update(old, new)

    def delete(self, pod: Pod) -> None:
        """The pod is gone, or has a node."""
        super().delete(pod)
        key = self.entity_of(pod)
        group = None if key is None else self.groups.get(key)
        if group is None:
            return
        info = group.pending.pop(pod.key, None)
        if info is not None:
            del self.pending[pod.key]
            self.counters.count_rejectors(info, -1)
        was_queued = group.members.pop(pod.key, None) is not None
        if was_queued:
            self._judge_rest(group)
        self._drop_if_empty(group)

    def _judge_rest(self, group: QueuedGroup) -> None:
        """Pods of *group* have gone: if there are too few now, that gates any of the others."""
        if group.members and self._strategy_of(group) != QueueingStrategy.SKIP:
            other = next(iter(group.members.values()))
            if not self._may_enter(group, [other]):
                self._put_all_unschedulable(group, self.pod_events.deleted)

    def _drop_if_empty(self, group: QueuedGroup) -> None:
        if not group.members and not group.pending and not group.is_in_flight:
            self.groups.pop(group.key, None)

    def pod_group_added(self, key: str, *, now: float) -> None:
        """The group called *key* is there: its pods need not wait for it any more."""
        group = self.groups.get(key)
        if group is not None and group.is_incomplete:
            self._requeue_group(group, QueueingStrategy.IMMEDIATELY, POD_GROUP_ADD, now)

    def roots_changed(self, keys: Iterable[str], *, now: float) -> None:
        """Groups may have got, or lost, what is above them: their pods go where those of the same tree are."""
        entered: dict[str, QueuedGroup] = {}
        for key in keys:
            old, new = self._roots.get(key, key), self.root_of(key)
            if new == key:
                self._roots.pop(key, None)
            else:
                self._roots[key] = new
            for info in self._taken_out(old, key) if old != new else ():
                group = entered[new] = self._made_group_of(info, now)
                if group.is_in_flight:
                    self._put_pending(group, info)
                else:
                    group.members[info.key] = info
        for group in entered.values():
            if group.members:
                self._requeue_group(group, QueueingStrategy.AFTER_BACKOFF, POD_GROUP_ADD, now)

    def _taken_out(self, entity: str, key: str) -> list[QueuedPodInfo]:
        """The pods of the group called *key*, which are taken out of *entity*."""
        group = self.groups.get(entity)
        if group is None:
            return []
        queued = [info for info in group.members.values() if info.pod.group_key == key]
        waiting = [info for info in group.pending.values() if info.pod.group_key == key]
        for info in queued:
            del group.members[info.key]
            self._take_out(info)
        for info in waiting:
            del group.pending[info.key], self.pending[info.key]
        if queued:
            self._judge_rest(group)
        self._drop_if_empty(group)
        return [*queued, *waiting]

    # --- being scheduled --------------------------------------------------------------------------------------------

    def _start(self, info: QueuedPodInfo) -> bool:
        group, is_started = self._group_of(info), super()._start(info)
        if group is not None:
            group.members.pop(info.key, None)
            group.is_in_flight = group.is_in_flight or is_started
            self._drop_if_empty(group)
        return is_started

    def finish_group(self, key: str, *, is_scheduled: bool, now: float) -> None:
        """The attempt of the group called *key* is over, and what becomes of its pods is decided.

        Args:
            key: of the group, or of the root of a tree.
            is_scheduled: whether it was scheduled: pods that are left then are tried at once.
            now: the time.
        """
        group = self.groups.get(key)
        if group is None:
            return
        group.is_in_flight = False
        for pod_key, info in group.pending.items():
            group.members[pod_key] = info
            del self.pending[pod_key]
        group.pending = {}
        if not group.members:
            del self.groups[key]
            return
        strategy = QueueingStrategy.IMMEDIATELY
        if not is_scheduled:
            strategy = QueueingStrategy.AFTER_BACKOFF
            if any(info.had_error for info in group.members.values()):
                group.consecutive_errors += 1
            else:
                group.unschedulable_count += 1
                group.consecutive_errors = 0
            self._back_off(group, len(group.members), now)
        self._requeue_group(group, strategy, SCHEDULE_ATTEMPT_FAILURE, now)

    def _back_off(self, group: QueuedGroup, pods: int, now: float) -> None:
        backoff = self.backoff.for_pods(pods)
        group.timestamp, group.backoff_expiry = now, backoff.expiry(now, group.failure_count)

    # --- moving -----------------------------------------------------------------------------------------------------

    def _move(self, candidates: Iterable[QueuedPodInfo], event: ClusterEvent, old: Any, new: Any, now: float) -> None:
        """The best that an event can do for one pod of a group it does for all of them."""
        registered, single = self._registered_for(event), []
        best: dict[str, tuple[QueueingStrategy, QueuedGroup]] = {}
        for info in candidates:
            group = self._group_of(info)
            if group is None:
                single.append(info)
            elif not info.gating_plugin or info.gating_plugin in registered:
                strategy = self._queueing_strategy(info, event, old, new)
                known, _group = best.get(group.key, (QueueingStrategy.SKIP, group))
                if _RANK[strategy] > _RANK[known]:
                    best[group.key] = strategy, group
        for strategy, group in best.values():
            self._requeue_group(group, strategy, event, now)
        super()._move(single, event, old, new, now)

    def requeue_all(self, *, now: float) -> None:
        """Other profiles are installed: have all pods judged by them, and try those that wait for an event."""
        moved = [(group, self._strategy_of(group)) for group in self.groups.values() if group.members]
        for group, _strategy in moved:
            for info in group.members.values():
                self._take_out(info)
                info.signature = None
        super().requeue_all(now=now)
        for group, strategy in moved:
            is_active = strategy == QueueingStrategy.IMMEDIATELY
            strategy = QueueingStrategy.IMMEDIATELY if is_active else QueueingStrategy.AFTER_BACKOFF
            self._requeue_group(group, strategy, CONFIGURATION_CHANGE, now)

    def _requeue(self, info: QueuedPodInfo, strategy: QueueingStrategy, event: ClusterEvent, now: float) -> str:
        if info.pod.group_key is None:
            return super()._requeue(info, strategy, event, now)
        group = self._made_group_of(info, now)
        if group.is_in_flight:
            self._put_pending(group, info)
            return "pending"
        if info.key in group.members:
            if strategy == QueueingStrategy.SKIP:
                self._put_unschedulable(info, event)
                return "unschedulable"
            return self._requeue_group(group, strategy, event, now)
        if not group.members:  # it could not be bound, as the first of its group
            group.unschedulable_count = max(group.unschedulable_count, info.unschedulable_count)
            group.consecutive_errors = max(group.consecutive_errors, info.consecutive_errors)
            self._back_off(group, 1, now)
        return self._enter(group, info, event, now)

    def _move_to_active(
        self, info: QueuedPodInfo, event: ClusterEvent, now: float, *, from_backoff: bool = False
    ) -> bool:
        group = self._group_of(info)
        if info.pod.group_key is None:
            return super()._move_to_active(info, event, now, from_backoff=from_backoff)
        if group is None or info.key not in group.members:
            self._join(info, event, now)
        else:
            is_judged = from_backoff and self.pop_from_backoff
            self._requeue_group(group, QueueingStrategy.IMMEDIATELY, event, now, is_judged=is_judged)
        return info.key in self.active

    def _requeue_group(
        self,
        group: QueuedGroup,
        strategy: QueueingStrategy,
        event: ClusterEvent,
        now: float,
        *,
        is_judged: bool = False,
    ) -> str:
        """Put the pods of *group* where *strategy* says; returns where they ended up.

        With *is_judged*, pre_enqueue has let them pass.
        """
        infos = list(group.members.values())
        for info in infos:
            info.timestamp, info.backoff_expiry = group.timestamp, group.backoff_expiry
        backs_off = strategy == QueueingStrategy.AFTER_BACKOFF and self.backing_off.is_pod_backing_off(infos[0], now)
        is_judged = is_judged or (backs_off and not self.pop_from_backoff)
        if strategy == QueueingStrategy.SKIP or not (is_judged or self._may_enter(group, infos)):
            self._put_all_unschedulable(group, event)
            return "unschedulable"
        for info in infos:
            self._take_out(info)
            self._push(info, event, now, backs_off=backs_off)
        where = "backoff" if backs_off else "active"
        self._count_group(where, event)
        return where

    def _push(self, info: QueuedPodInfo, event: ClusterEvent, now: float, *, backs_off: bool) -> None:
        self._set_signature_and_sort_key(info)
        if backs_off:
            self.backing_off.push(info)
        else:
            if info.initial_attempt_timestamp is None:
                info.initial_attempt_timestamp = now
            self.active.push(info)
        self._count_incoming(info, "backoff" if backs_off else "active", event)

    def _may_enter(self, group: QueuedGroup, infos: list[QueuedPodInfo]) -> bool:
        """Whether the group is there and pre_enqueue lets *infos* of it pass; one that it keeps back keeps all pods."""
        passed = [self._pre_enqueue.run(info) for info in infos]
        group.is_incomplete = self.find_group(group.key) is None
        if all(passed):
            return not group.is_incomplete
        gated = infos[passed.index(False)]
        for info in group.members.values():
            if not info.gating_plugin:
                info.gating_plugin, info.gating_message = gated.gating_plugin, gated.gating_message
        return False

    def _put_all_unschedulable(self, group: QueuedGroup, event: ClusterEvent) -> None:
        is_new = any(key not in self.unschedulable for key in group.members)
        for info in group.members.values():
            self.active.remove(info.key)
            self.backing_off.remove(info.key)
            self._put_unschedulable(info, event)
        if is_new:
            self._count_group("unschedulable", event)

    def _take_out(self, info: QueuedPodInfo) -> None:
        self.active.remove(info.key)
        self.backing_off.remove(info.key)
        self.unschedulable.remove(info.key)

    def _count_group(self, queue: str, event: ClusterEvent) -> None:
        self.counters.incoming_groups[queue, event.label] += 1

    def _count_incoming(self, info: QueuedPodInfo, queue: str, event: ClusterEvent) -> None:
        super()._count_incoming(info, queue, event)
        if info.pod.group_key is not None:
            self.counters.incoming_members[queue, info.moved_by] += 1

    def _assign_key(self, info: QueuedPodInfo) -> None:
        """Order a pod of a group by the priority of the group, or of the root of its tree."""
        key = self.entity_of(info.pod)
        group, pod = None if key is None else self.find_group(key), info.pod
        if group is not None and (group.spec.priority or 0) != pod.priority:
            pod = structs.replace(pod, spec=structs.replace(pod.spec, priority=group.spec.priority or 0))
        self._order().assign_key(info, pod)
