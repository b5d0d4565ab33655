"""The scheduling queue: which pod is tried next, which ones wait, and which events move them.

A pod is active, in backoff (has failed a moment ago), unschedulable (until an event or the flush), gated (a
pre_enqueue plugin keeps it back), or in flight (popped). Time comes in as ``now``.

Source: the scheduling queue of kube-scheduler 1.36, quirks that others can observe included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from attrs import define, field
from msgspec import structs

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.measurements import Measurements
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.queue.backoff import Backoff
from trio_sched.engine.queue.backoff_queues import BackoffQueues
from trio_sched.engine.queue.cluster_changes import (
    ASSIGNED_POD_DELETE,
    BACKOFF_COMPLETE,
    CONFIGURATION_CHANGE,
    FORCE_ACTIVATE,
    PLUGIN_RETRY,
    POD_EVENTS,
    POP_FROM_BACKOFF,
    SCHEDULE_ATTEMPT_FAILURE,
    UNSCHEDULABLE_TIMEOUT,
    PodEvents,
    annotation_event,
    pod_update_events,
)
from trio_sched.engine.queue.event_candidates import not_ruled_out
from trio_sched.engine.queue.in_flight import InFlight, InFlightEvent
from trio_sched.engine.queue.nominator import Nominator
from trio_sched.engine.queue.pod_heap import PodHeap
from trio_sched.engine.queue.pre_enqueue import PreEnqueue, ProfileQueueing
from trio_sched.engine.queue.queue_counters import QueueCounters
from trio_sched.engine.queue.queue_sort import QueueSort
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import IsRefused, QueueingStrategy, build_hint_table
from trio_sched.engine.queue.retry_timers import RetryTimers
from trio_sched.engine.queue.unschedulable_pods import UnschedulablePods
from trio_sched.engine.registry.profile import Profile
from trio_sched.errors import TrioSchedError
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import DEFAULT_OPTIONS, ResourceOptions
from trio_sched.plugin_api.cluster_events import Action, ClusterEvent, Resource

MAX_IN_UNSCHEDULABLE_SECONDS = 300.0
"""The default of a flag in `trio_sched.cli.flags.flag_table`, too, which imports no engine."""


class AlreadyQueued(TrioSchedError):
    """A pod came back that is in the queue already; nothing was changed."""


@define(eq=False, kw_only=True)
class SchedulingQueue:
    """The pods without a node that are to be scheduled; not those in flight."""

    get_unassigned_pod: Callable[[str], Pod | None]
    """Looks a pod up by ``namespace/name`` among those that exist."""
    backoff: Backoff = field(factory=Backoff)
    max_in_unschedulable_seconds: float = MAX_IN_UNSCHEDULABLE_SECONDS
    pop_from_backoff: bool = True
    """Gate SchedulerPopFromBackoffQ."""
    groups_skip_hints: bool = False
    """Gate GenericWorkload: members of pod groups move after any event."""
    groups_back_off: bool = False
    """Members of pod groups are not popped from their backoff: their attempts cost as much as those of many pods."""
    resource_options: ResourceOptions = DEFAULT_OPTIONS
    plugin_failures: PluginFailures = field(factory=PluginFailures)
    """Failures of pre_enqueue, queue_sort and hint functions."""
    counters: QueueCounters = field(factory=QueueCounters)
    on_move: Callable[[QueuedPodInfo, str, str], None] | None = None
    """Told of every pod that comes into a queue: the pod, the queue (as in the counters), the event's label."""
    scheduling_cycle: int = 0
    """Pods popped so far."""
    closed: bool = False
    unschedulable: UnschedulablePods = field(factory=UnschedulablePods)
    """Pods that wait for an event, gated ones included."""
    in_flight: InFlight = field(factory=InFlight)
    popped: dict[str, QueuedPodInfo] = field(factory=dict)
    """By UID: pods that were popped, until they are requeued, have a node, or are gone."""
    pending: dict[str, QueuedPodInfo] = field(factory=dict)
    """By ``namespace/name``: pods of groups that are being scheduled without them, from 1.37 on; see `GroupQueue`."""
    retries: RetryTimers = field(factory=RetryTimers)
    """When plugins want pods to be tried again."""
    nominates_gated: bool = False
    """Whether a pod that pre_enqueue rejects is nominated, too, to the node that its status names."""
    uncounts_deleted: bool = False
    """Whether a pod that is deleted while its turn is near is no unschedulable pod any more."""
    flushes_gated: bool = False
    """Whether pre_enqueue is asked again about pods that it rejected when they have waited too long."""
    pod_events: PodEvents = POD_EVENTS
    """The events about pods without a node."""
    profiles: Mapping[str, ProfileQueueing] = field(factory=dict, init=False)
    _registered: dict[ClusterEvent, frozenset[str]] = field(factory=dict)
    _watches_annotations: bool = field(default=False, init=False)
    """Whether a plugin has registered for other annotations of pods."""
    _queue_sort: QueueSort | None = field(default=None, init=False)
    _sign_pod: Callable[[QueuedPodInfo], None] | None = field(default=None, init=False)
    active: PodHeap = field(init=False)
    set_aside: PodHeap = field(init=False)
    """Pods whose turn with the extenders has not come; kube-scheduler has them in the active queue until then."""
    backing_off: BackoffQueues = field(init=False)
    nominator: Nominator = field(init=False)
    _pre_enqueue: PreEnqueue = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.active = PodHeap(lambda info: info.sort_key, self._replace_sort_keys)
        self.set_aside = PodHeap(lambda info: info.sort_key, self._replace_sort_keys)
        self.backing_off = BackoffQueues(
            self.backoff,
            by_priority=self.pop_from_backoff,
            groups_back_off=self.groups_back_off,
            replace_keys=self._replace_sort_keys,
        )
        self.nominator = Nominator(self.get_unassigned_pod)
        self._pre_enqueue = PreEnqueue({}, self.counters, self.plugin_failures)

    def prepare(
        self,
        profiles: Mapping[str, Profile],
        *,
        is_refused: IsRefused | None = None,
        extenders: bool = False,
        measurements: Measurements | None = None,
    ) -> dict[str, ProfileQueueing]:
        """What the queue needs of *profiles*, by schedulerName; nothing changes yet.

        Args:
            profiles: at least one.
            is_refused: whether a plugin's filter refuses a pod on a node.
            extenders: whether extenders are configured.
            measurements: gets the durations of pre_enqueue and hint functions.

        Raises:
            BadPlugin: a plugin's events_to_register failed.
        """
        failures = self.plugin_failures
        return {
            name: ProfileQueueing(
                profile.pre_enqueue,
                build_hint_table(
                    profile,
                    extenders=extenders,
                    extra=(Resource.POD_GROUP,) if self.groups_skip_hints else (),
                    plugin_failures=failures,
                    is_refused=is_refused,
                    measurements=measurements,
                ),
            )
            for name, profile in profiles.items()
        }

    def install_queueing(
        self,
        profiles: Mapping[str, ProfileQueueing],
        queue_sort: BoundHook,
        sign: Callable[[QueuedPodInfo], None] | None = None,
        measurements: Measurements | None = None,
    ) -> None:
        """Queue the pods of *profiles*.

        Args:
            profiles: what `prepare` made.
            queue_sort: orders the active queue.
            sign: signs a pod that has no signature yet.
            measurements: gets the durations of pre_enqueue.
        """
        self.profiles, self._sign_pod = profiles, sign
        self._registered.clear()
        self._watches_annotations = any(
            entry.event.action & Action.UPDATE_POD_ANNOTATION
            for profile in profiles.values()
            for entry in profile.hints.entries
        )
        self._queue_sort = QueueSort(queue_sort, self.plugin_failures)
        self._pre_enqueue = PreEnqueue(profiles, self.counters, self.plugin_failures, measurements or Measurements())

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def has_next(self) -> bool:
        """Whether `pop` would return a pod now."""
        return len(self.active) > 0 or (self.pop_from_backoff and len(self.backing_off.pod_backoff_q) > 0)

    @property
    def needs_backoff_timer(self) -> bool:
        """Whether there are pods in backoff that `pop` does not take before it is over."""
        stays = self.backing_off.pod_error_backoff_q if self.pop_from_backoff else self.backing_off
        return len(stays) > 0

    def next_backoff_check(self) -> float:
        """When `flush_backoff` will next have something to do; infinity if nothing backs off."""
        return self.backing_off.next_check()

    def gated(self) -> dict[str, QueuedPodInfo]:
        """The pods that a pre_enqueue plugin keeps back, by namespace and name."""
        return {info.key: info for info in self.unschedulable.values() if info.gating_plugin}

    def incomplete(self) -> Collection[str]:
        """The pods whose group is not there, by namespace and name; see `GroupQueue`."""
        return ()

    def sizes(self) -> dict[str, int]:
        """The gauge ``pending_pods``: how many pods are in each part of the queue, by the labels of kube-scheduler."""
        gated = len(self.gated())
        return {
            "active": len(self.active) + len(self.set_aside),
            "backoff": len(self.backing_off),
            "unschedulable": len(self.unschedulable) - gated,
            "gated": gated,
        }

    def entity_sizes(self) -> dict[tuple[str, str], int]:
        """How many entities are in each part of the queue: (part, ``pod``) → number; see `GroupQueue`."""
        return {(part, "pod"): size for part, size in self.sizes().items()}

    def incoming_entities(self) -> dict[tuple[str, str, str], int]:
        """(queue, event, ``pod``) → entities that entered; see `GroupQueue`."""
        return {(*where, "pod"): count for where, count in self.counters.incoming.items()}

    def find(self, key: str) -> QueuedPodInfo | None:
        """The pod called *key*, wherever it waits."""
        return (
            self.active.get(key)
            or self.unschedulable.get(key)
            or self.backing_off.get(key)
            or self.set_aside.get(key)
            or self.pending.get(key)
        )

    def nominated_pods(self, node_name: str) -> list[QueuedPodInfo | Pod]:
        """Pods nominated to *node_name*, as the queue has them now, or else as they were nominated."""
        nominated = self.nominator.nodes.get(node_name, {})
        return [self.find(pod.key) or pod for pod in nominated.values()]

    # --- pods come, change and go -----------------------------------------------------------------------------------

    def add(self, pod: Pod, *, now: float) -> None:
        """A new pod without a node."""
        self._move_to_active(QueuedPodInfo(pod, now), self.pod_events.added, now)

    def update(self, old: Pod, new: Pod, *, now: float) -> None:
        """A pod without a node has changed."""
        events = self.events_of_update(old, new)
        if new.uid in self.in_flight:
            for event in events:
                self.in_flight.add_event(InFlightEvent(event, old, new))
            return
        key = new.key
        for heap in (self.active, self.backing_off):
            info = heap.get(key)
            if info is not None:
                info.replace_pod(new)
                self._set_signature_and_sort_key(info)
                heap.push(info)
                self.nominator.update(old, new)
                return
        info = self.set_aside.get(key)
        if info is not None:  # it keeps its position
            info.replace_pod(new)
            self.nominator.update(old, new)
            return
        info = self.unschedulable.get(key)
        if info is None:
            self._move_to_active(QueuedPodInfo(new, now), self.pod_events.updated, now)
            return
        info.replace_pod(new)
        self.nominator.update(old, new)
        for event in events:
            strategy = self._queueing_strategy(info, event, old, new)
            where = self._requeue(info, strategy, event, now)
            if where == "active" or (where == "backoff" and self.pop_from_backoff):
                return

    def events_of_update(self, old: Pod, new: Pod) -> list[ClusterEvent]:
        """What an update of a pod is turned into: kube-scheduler's events, then ours if plugins have asked for it."""
        events = pod_update_events(old, new, self.resource_options, self.pod_events)
        if self._watches_annotations and (added := annotation_event(old, new, self.pod_events)) is not None:
            return [*events, added] if self._registered_for(added) else events
        return events

    def delete(self, pod: Pod) -> None:
        """The pod is gone, or has a node."""
        uid, key = pod.uid, pod.key
        self.nominator.delete(uid)
        self.retries.forget(uid)
        self.popped.pop(uid, None)
        for heap in (self.active, self.backing_off, self.set_aside):
            info = heap.remove(key)
            if info is not None:
                if self.uncounts_deleted:
                    self.counters.count_rejectors(info, -1)
                return
        info = self.unschedulable.remove(key)
        if info is not None:
            self.counters.count_rejectors(info, -1)

    def pod_group_added(self, key: str, *, now: float) -> None:
        """The group called *key* is there; pods do not wait for it here, see `GroupQueue`."""

    def roots_changed(self, keys: Iterable[str], *, now: float) -> None:
        """Pod groups have got, or lost, what is above them; pods are queued one by one here, see `GroupQueue`."""

    def entity_of(self, pod: Pod) -> str | None:
        """The key of the group that *pod* is tried with; None if it has none."""
        return pod.group_key

    # --- being scheduled --------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPodInfo | None:
        """The pod to try next, now in flight; None if there is none."""
        while True:
            info = self.active.pop()
            if info is None and self.pop_from_backoff:
                info = self.backing_off.pod_backoff_q.pop()
                if info is not None:
                    self._count_incoming(info, "active", POP_FROM_BACKOFF)
            if info is None:
                return None
            if self._start(info):
                return info

    def peek(self) -> QueuedPodInfo | None:
        """The pod that `pop` would return if none is in flight twice."""
        first = self.active.peek()
        return self.backing_off.pod_backoff_q.peek() if first is None and self.pop_from_backoff else first

    def pop_specific(self, pod: Pod, *, now: float) -> QueuedPodInfo | None:
        """Take this very pod, wherever it waits; None if it cannot be had."""
        self._activate_one(pod, now)
        info = self.active.get(pod.key)
        if info is None:
            return None
        self.active.remove(pod.key)
        return info if self._start(info) else None

    def _start(self, info: QueuedPodInfo) -> bool:
        info.attempts += 1
        uid = info.uid
        self.nominator.note_change(uid)
        if uid in self.in_flight:
            return False  # tracked twice: the other entry is being scheduled, this one is dropped
        self.in_flight.start(uid, info.key)
        self.popped[uid] = info
        self.scheduling_cycle += 1
        self.counters.count_rejectors(info, -1)
        return True

    def put_aside(self, info: QueuedPodInfo) -> None:
        """A popped pod has to wait until `pop_set_aside` returns it; its attempt has not begun."""
        self.done(info.uid)
        self.popped.pop(info.uid, None)
        info.attempts -= 1
        self.counters.count_rejectors(info, 1)
        self.set_aside.push(info)

    def pop_set_aside(self) -> QueuedPodInfo | None:
        """The pod that was put aside and is to be tried next, now in flight; None if there is none."""
        while (info := self.set_aside.pop()) is not None:
            if self._start(info):
                return info
        return None

    def done(self, uid: str) -> None:
        """The attempt is over: events from now on do not concern it."""
        self.in_flight.done(uid)

    def finish_group(self, key: str, *, is_scheduled: bool, now: float) -> None:
        """The attempt of the group called *key* is over; its pods have come back by themselves, see `GroupQueue`."""

    def add_unschedulable(self, info: QueuedPodInfo, *, now: float) -> None:
        """Requeue a popped pod; its plugin sets say which plugins rejected it (none: it failed).

        Raises:
            AlreadyQueued: it is in the queue already.
        """
        self.nominator.note_change(info.uid)
        self.popped.pop(info.uid, None)
        try:
            self._refuse_if_queued(info)
            if info.had_error:
                info.consecutive_errors += 1
            else:
                info.unschedulable_count += 1
                info.consecutive_errors = 0
            info.timestamp = now
            info.backoff_expiry = None
            info.was_flushed = False
            self.counters.count_rejectors(info, 1)
            self._requeue(info, self._determine_hint_for_in_flight_pod(info), SCHEDULE_ATTEMPT_FAILURE, now)
        finally:
            self.in_flight.done(info.uid)

    def _refuse_if_queued(self, info: QueuedPodInfo) -> None:
        for where, present in (
            ("unschedulable queue", info.key in self.unschedulable),
            ("the active queue", info.key in self.active),
            ("the backoff queue", info.key in self.backing_off),
        ):
            if present:
                raise AlreadyQueued(f"Pod {info.key} is already present in {where}")

    def _determine_hint_for_in_flight_pod(self, info: QueuedPodInfo) -> QueueingStrategy:
        if info.had_error or (self.groups_skip_hints and info.pod.spec.scheduling_group is not None):
            return QueueingStrategy.AFTER_BACKOFF
        if info.uid not in self.in_flight:
            return QueueingStrategy.AFTER_BACKOFF
        strategy = QueueingStrategy.SKIP
        for seen in self.in_flight.since(info.uid):
            found = self._queueing_strategy(info, seen.event, seen.old, seen.new)
            if found == QueueingStrategy.IMMEDIATELY:
                return found
            if found == QueueingStrategy.AFTER_BACKOFF:
                if not info.pending_plugins:
                    return found
                strategy = found
        return strategy

    # --- things happen ----------------------------------------------------------------------------------------------

    def move_all(
        self,
        event: ClusterEvent,
        old: Any = None,
        new: Any = None,
        *,
        now: float,
        only: Callable[[Pod], bool] | None = None,
    ) -> None:
        """Move the pods that an event may have made schedulable.

        Args:
            event: the event.
            old: the object before, None if it is new.
            new: the object after, None if it is gone.
            now: the time.
            only: limits it to some pods.
        """
        if not self.unschedulable and not self.in_flight:
            return
        candidates: Iterable[QueuedPodInfo]
        if event.is_wildcard:
            candidates = list(self.unschedulable.values())
        else:
            plugins = self._registered_for(event)
            if not plugins:
                return
            groups = self.unschedulable.rejected_by(plugins)
            candidates = not_ruled_out(groups, self.profiles, self.nominator, event, old, new)
        if only is not None:
            candidates = [info for info in candidates if only(info.pod)]
        self._move(candidates, event, old, new, now)

    def nomination_ended(self, pod: Pod, node_name: str, *, now: float) -> None:
        """*pod* is no longer nominated to *node_name*: pods of the same or lower priority may use the room there."""
        was = structs.replace(pod, status=structs.replace(pod.status, nominated_node_name=node_name))
        uid, priority = pod.uid, pod.priority
        self.move_all(
            ASSIGNED_POD_DELETE, was, None, now=now, only=lambda other: other.uid != uid and other.priority <= priority
        )

    def _registered_for(self, event: ClusterEvent) -> frozenset[str]:
        """The plugins of all profiles that wait for *event*."""
        plugins = self._registered.get(event)
        if plugins is None:
            plugins = frozenset(e.plugin for p in self.profiles.values() for e in p.hints.matching(event))
            self._registered[event] = plugins
        return plugins

    def _move(self, candidates: Iterable[QueuedPodInfo], event: ClusterEvent, old: Any, new: Any, now: float) -> None:
        registered = self._registered_for(event)
        skips_gated = not (self.flushes_gated and event.is_wildcard)
        for info in candidates:
            if info.gating_plugin and skips_gated and info.gating_plugin not in registered:
                continue
            strategy = self._queueing_strategy(info, event, old, new)
            if strategy == QueueingStrategy.SKIP:
                continue
            self.unschedulable.remove(info.key)
            self._requeue(info, strategy, event, now)
        if len(self.in_flight):
            self.in_flight.add_event(InFlightEvent(event, old, new))

    def activate(self, pods: Iterable[Pod], *, now: float) -> None:
        """Try these pods next, whatever they wait for."""
        for pod in pods:
            if not self._activate_one(pod, now) and pod.uid in self.in_flight:
                self.in_flight.add_event(InFlightEvent(FORCE_ACTIVATE, None, pod))

    def _activate_one(self, pod: Pod, now: float) -> bool:
        info = self.unschedulable.get(pod.key)
        if info is not None:
            self._move_to_active(info, FORCE_ACTIVATE, now)
            return True
        info = self.backing_off.remove(pod.key)
        if info is not None:
            self._move_to_active(info, FORCE_ACTIVATE, now, from_backoff=True)
            return True
        return False

    def requeue_all(self, *, now: float) -> None:
        """Other profiles are installed: have all pods judged by them, and try those that wait for an event."""
        event = CONFIGURATION_CHANGE
        for info in [*self.active, *self.set_aside]:
            self.active.remove(info.key)
            self.set_aside.remove(info.key)
            info.signature = None
            self._move_to_active(info, event, now)
        for info in [*self.backing_off.clear(), *self.unschedulable.values()]:
            info.signature, info.backoff_expiry = None, None
            self.unschedulable.remove(info.key)
            self._requeue(info, QueueingStrategy.AFTER_BACKOFF, event, now)
        if len(self.in_flight):
            self.in_flight.add_event(InFlightEvent(event, None, None))

    def sort_again(self) -> None:
        """Ask the queue_sort plugin again for the keys of all pods that wait their turn."""
        for heap in (self.active, self.set_aside, self.backing_off.pod_backoff_q):
            for info in heap:
                self._assign_key(info)
            heap.sort_again()

    def replace_backoff(self, backoff: Backoff) -> None:
        """Let pods back off as *backoff* says, from their next failure or `requeue_all` on."""
        self.backoff = self.backing_off.backoff = backoff

    # --- time passes ------------------------------------------------------------------------------------------------

    def flush_backoff(self, *, now: float) -> None:
        """Move on every pod whose backoff is over."""
        for info in self.backing_off.pop_all_backoff_completed(now):
            self._move_to_active(info, BACKOFF_COMPLETE, now, from_backoff=True)

    def flush_retries(self, *, now: float) -> None:
        """Move on every pod that a plugin wanted to be tried again by now, as if an event had happened to it."""
        for uid, key, _plugin in self.retries.pop_due(now):
            info = self.unschedulable.get(key)
            if info is not None and info.uid == uid:
                self.unschedulable.remove(key)
                info.was_flushed = False  # a gated pod can have been, before the time that its plugin has named
                self._requeue(info, QueueingStrategy.AFTER_BACKOFF, PLUGIN_RETRY, now)
            elif uid in self.in_flight and (pod := self.get_unassigned_pod(key)) is not None:
                self.in_flight.add_event(InFlightEvent(PLUGIN_RETRY, None, pod))

    def flush_unschedulable(self, *, now: float) -> None:
        """Move on every pod that has waited for an event too long."""
        overdue = [i for i in self.unschedulable.values() if now - i.timestamp > self.max_in_unschedulable_seconds]
        self.counters.flushed += len(overdue)
        for info in overdue:
            info.was_flushed = True
        if overdue:
            self._move(overdue, UNSCHEDULABLE_TIMEOUT, None, None, now)

    def close(self) -> None:
        """No more attempts will be reported; what is active can still be popped."""
        self.closed = True
        self.in_flight.clear_markers()

    # --- moving -----------------------------------------------------------------------------------------------------

    def _queueing_strategy(self, info: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> QueueingStrategy:
        profile = self.profiles.get(info.pod.scheduler_name)
        return (
            QueueingStrategy.AFTER_BACKOFF
            if profile is None
            else profile.hints.queueing_strategy(info, event, old, new)
        )

    def _requeue(self, info: QueuedPodInfo, strategy: QueueingStrategy, event: ClusterEvent, now: float) -> str:
        """Put *info* where *strategy* says; returns where it ended up."""
        if strategy == QueueingStrategy.SKIP:
            self._put_unschedulable(info, event)
            return "unschedulable"
        if strategy == QueueingStrategy.AFTER_BACKOFF and self.backing_off.is_pod_backing_off(info, now):
            return "backoff" if self._move_to_backoff(info, event) else "unschedulable"
        return "active" if self._move_to_active(info, event, now) else "unschedulable"

    def _move_to_active(
        self, info: QueuedPodInfo, event: ClusterEvent, now: float, *, from_backoff: bool = False
    ) -> bool:
        key = info.key
        if not (from_backoff and self.pop_from_backoff) and not self._pre_enqueue.run(info):
            if key not in self.active and key not in self.backing_off:
                self._put_unschedulable(info, event)
                if self.nominates_gated and event in (self.pod_events.added, self.pod_events.updated):
                    self.nominator.add(info.pod, None)
            return False
        if info.initial_attempt_timestamp is None:
            info.initial_attempt_timestamp = now
        self.unschedulable.remove(key)
        self.backing_off.remove(key)
        self._set_signature_and_sort_key(info)
        self.active.push(info)
        self._count_incoming(info, "active", event)
        if event in (self.pod_events.added, self.pod_events.updated):
            self.nominator.add(info.pod, None)
        return True

    def _move_to_backoff(self, info: QueuedPodInfo, event: ClusterEvent) -> bool:
        if self.pop_from_backoff and not self._pre_enqueue.run(info):
            if info.key not in self.backing_off:
                self._put_unschedulable(info, event)
            return False
        self.unschedulable.remove(info.key)
        self._set_signature_and_sort_key(info)
        self.backing_off.push(info)
        self._count_incoming(info, "backoff", event)
        return True

    def _put_unschedulable(self, info: QueuedPodInfo, event: ClusterEvent) -> None:
        if info.key not in self.unschedulable:
            self._count_incoming(info, "unschedulable", event)
        self._sign_if_changed(info)
        self.unschedulable.put(info)

    def _count_incoming(self, info: QueuedPodInfo, queue: str, event: ClusterEvent) -> None:
        label = event.label
        self.counters.incoming[queue, label] += 1
        info.moved_by = label
        if self.on_move is not None:
            self.on_move(info, queue, label)

    def _set_signature_and_sort_key(self, info: QueuedPodInfo) -> None:
        self._sign_if_changed(info)
        self._assign_key(info)

    def _sign_if_changed(self, info: QueuedPodInfo) -> None:
        if info.signature is None and self._sign_pod is not None:
            self._sign_pod(info)

    def _assign_key(self, info: QueuedPodInfo) -> None:
        self._order().assign_key(info)

    def _order(self) -> QueueSort:
        assert self._queue_sort is not None, "install_profiles comes first"
        return self._queue_sort

    def _replace_sort_keys(self, error: BaseException, infos: Iterable[QueuedPodInfo]) -> None:
        self._order().replace_keys(error, infos)
