"""Checks what is registered for events, and that it is complete: no pod waits though the plugin would let it pass now.

Random clusters are changed at random while a real queue holds the pods that the plugin has rejected. A pod that stays
there and that the plugin no longer rejects has missed an event: in a cluster it would wait for the periodic flush.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

from attrs import define, field, frozen

from trio_sched.daemon.plugins.kind_mistakes import kind_mistakes
from trio_sched.engine.evaluation.node_refusal import is_refused_on_node
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_hint
from trio_sched.engine.hooks.plugin_errors import PluginError
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import build_hint_table
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cluster_events import Resource
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing import builders
from trio_sched.testing.conformance.changes import Changes
from trio_sched.testing.conformance.cluster_state import (
    NODE,
    RUNNING,
    WAITING,
    Change,
    ClusterState,
    Kind,
    resources_by_kind,
)
from trio_sched.testing.conformance.description import describe_change, describe_cluster_state, registration_for
from trio_sched.testing.conformance.judgement import Rejection, judge
from trio_sched.testing.conformance.probing import find_effective
from trio_sched.testing.conformance.subject import Subject, Trial
from trio_sched.testing.conformance.vocabulary import texts_of_objects, texts_of_plugin

_ROUNDS: Final = 40
_CHANGES_PER_ROUND: Final = 24
_MAX_ATTEMPTS: Final = 10
"""So often a pod may be tried after one change."""
_MAX_REPORTED: Final = 3
_FAILED: Final = Rejection("", ("it failed",))


def registration_problems(subject: Subject) -> Iterator[str]:
    """What is wrong with the registrations of a plugin, and with what its hint functions return."""
    trial = subject.fresh()
    profile = trial.profile
    try:
        table = build_hint_table(profile)
    except PluginError as error:
        yield str(error)
        return
    yield from kind_mistakes(trial.plugin, table.events_of(subject.name))
    waiting = builders.pod("waiting")
    for entry in table.entries:
        changes = ((None, None), (None, waiting), (waiting, None)) if entry.event.resource == Resource.POD else ()
        for old, new in changes:
            if entry.hint is None:
                continue
            try:
                call_hint(entry.hint, waiting, old, new)
            except HookFailed as failed:
                if failed.__cause__ is None:  # hints may raise for these objects, but not return something else
                    yield str(failed)
    if profile.events_to_register and not profile.rejector_plugins:
        yield "events_to_register is never asked for: it has no hook that can turn a pod away"


def event_problems(subject: Subject) -> Iterator[str]:
    """The events that a plugin has forgotten, each with the smallest history in which that matters."""
    trial = subject.fresh()
    if not trial.profile.rejector_plugins or not subject.pods or not subject.cluster.nodes:
        return
    try:
        build_hint_table(trial.profile)
    except PluginError:
        return  # reported where registrations are checked
    changes = changes_for(subject, trial)
    reported: set[str] = set()
    for round_number in range(_ROUNDS * subject.effort):
        changes.rng.seed(round_number)
        history = History(subject.fresh(), changes.cluster_state())
        for _ in range(_CHANGES_PER_ROUND):
            change = changes.change(history.cluster_state)
            missed = history.apply(change)
            failures = history.hint_failures()
            if history.endless:
                yield _describe_endless(history.endless, change)
                return
            if change.kind in (NODE, RUNNING, WAITING):  # others may be changed as their schema does not allow
                yield from failures
            if missed is None:
                continue
            what = registration_for(change, history.resources)
            if what not in reported:
                reported.add(what)
                yield _describe(subject, _shrunk(subject, missed))
            if len(reported) == _MAX_REPORTED:
                return
            break


def _describe_endless(names: tuple[str, ...], change: Change) -> str:
    named = ", ".join(map(repr, names))
    who = f"pod {named} activates itself" if len(names) == 1 else f"pods {named} activate each other"
    return (
        f"{who} endlessly: after one change ({describe_change(change)}) each is tried more than {_MAX_ATTEMPTS} times, "
        "though nothing else has changed, and in a cluster that would never end; call handle.activate when the answer "
        "about a pod has changed, not at every attempt"
    )


def changes_for(subject: Subject, trial: Trial) -> Changes:
    """Random changes of what the plugin may look at."""
    known, watched = trial.handle.known_objects, trial.watched_kinds
    objects = {kind: list(ones) for kind, ones in known.items() if ones and kind in watched}
    everything = [*subject.pods, *subject.cluster.nodes, *subject.cluster.running]
    everything += [one for ones in objects.values() for one in ones]
    changes = Changes(
        rng=Random(0),
        nodes=subject.cluster.nodes,
        running=subject.cluster.running,
        waiting=[one for one in subject.pods if not one.node_name],
        objects=objects,
        own_texts=texts_of_plugin(trial.plugin),
        other_texts=texts_of_objects(everything),
    )
    if changes.nodes and changes.waiting and not subject.effective_edits:
        subject.effective_edits.extend(find_effective(subject.fresh(), changes))
    changes.effective = subject.effective_edits
    return changes


@frozen(eq=False)
class Missed:
    """A pod that no event has moved, though the plugin lets it pass after a change."""

    before: ClusterState
    change: Change
    pod: Pod
    rejection: Rejection
    """Before the change."""
    was_skipped: bool
    """Whether the event is registered, but the hint said SKIP, or node_local ruled it out."""


@define(eq=False)
class History:
    """A cluster with a queue, in which the pods wait that the plugin rejects."""

    trial: Trial
    cluster_state: ClusterState
    resources: dict[Kind, str] = field(init=False)
    _queue: SchedulingQueue = field(init=False)
    _rejections: dict[str, Rejection] = field(factory=dict, init=False)
    """The rejections of the pods that wait in the queue, by UID."""
    _retried: set[str] = field(factory=set, init=False)
    """UIDs of the pods that the plugin has tried again after a time, so that they do not wait in vain."""
    _table: NodeTable = field(init=False)
    endless: tuple[str, ...] = field(default=(), init=False)
    """Names of pods that the plugin has activated again and again after the last change."""

    def __attrs_post_init__(self) -> None:
        profile = self.trial.profile
        self.resources = resources_by_kind(build_hint_table(profile))
        self._queue = SchedulingQueue(get_unassigned_pod=lambda _key: None)
        queueing = self._queue.prepare({profile.name: profile}, is_refused=self._is_refused)
        self._queue.install_queueing(queueing, BoundHook("conformance", "queue_sort", lambda queued: queued.pod.uid))
        self._table = self.cluster_state.table()
        self.cluster_state.show(self.trial, self._table)
        self._try_all()

    def _is_refused(self, info: QueuedPodInfo, plugin: str, node_name: str) -> bool:
        return is_refused_on_node(self.trial.profile, plugin, info.pod, self._table, node_name, {})

    def apply(self, change: Change) -> Missed | None:
        """Make *change*; a pod that should have been moved by it, if there is one."""
        before, self.cluster_state = self.cluster_state, self.cluster_state.after(change)
        is_node_gone = change.kind == NODE and change.new is None
        if not is_node_gone:  # of a node that goes the queue is told first
            self._show(change)
        self._tell(change)
        if is_node_gone:
            self._show(change)
        self._try_moved()
        missed = self._missed(before, change)
        self._try_all()
        return missed

    def _show(self, change: Change) -> None:
        change.make_in(self._table)
        self.cluster_state.show(self.trial, self._table)

    def hint_failures(self) -> list[str]:
        """What hint functions and pre_enqueue have raised since the last call."""
        failures = self._queue.plugin_failures
        return [f"in a history of random changes: {one.failed}" for one in failures.drain()]

    def _tell(self, change: Change) -> None:
        queue = self._queue
        if change.kind == WAITING:
            if change.new is None:
                queue.delete(change.old)
                self._rejections.pop(change.old.uid, None)
            elif change.old is not None:
                queue.update(change.old, change.new, now=0.0)
        else:
            for event in change.events(self.resources):
                queue.move_all(event, change.old, change.new, now=0.0)

    def _try_moved(self) -> None:
        """Let the plugin judge the pods that have been moved, and park those again that it rejects."""
        self._note_wishes()
        attempts: Counter[str] = Counter()
        while (info := self._queue.pop()) is not None:
            attempts[info.pod.name] += 1
            if attempts[info.pod.name] > _MAX_ATTEMPTS:
                self.endless = tuple(sorted(name for name, count in attempts.items() if count >= _MAX_ATTEMPTS))
                return
            self._attempt(info)

    def _note_wishes(self) -> None:
        """Do what the plugin has asked of its handle."""
        handle = self.trial.handle
        self._queue.activate(handle.activated, now=0.0)
        self._retried.update(pod.uid for pod, _seconds in handle.retries)
        handle.activated.clear()
        handle.retries.clear()

    def _try_all(self) -> None:
        """Park the pods that are not in the queue and that the plugin rejects now."""
        for pod in self.cluster_state.waiting.values():
            if pod.scheduler_name in self._queue.profiles and self._queue.find(pod.key) is None:
                self._queue.add(pod, now=0.0)
        self._try_moved()
        for info in self._queue.unschedulable.values():
            if info.gating_plugin:
                self._rejections[info.uid] = Rejection("pre_enqueue", (info.gating_message,))

    def _attempt(self, info: QueuedPodInfo) -> None:
        self._retried.discard(info.uid)
        rejection = self._judge(info.pod)
        self._note_wishes()
        info.unschedulable_plugins.clear()
        info.pending_plugins.clear()
        self._rejections.pop(info.uid, None)
        if rejection is None or rejection is _FAILED:
            self._queue.done(info.uid)
            return
        (plugin,) = self.trial.profile.plugins
        (info.pending_plugins if rejection.is_pending else info.unschedulable_plugins).add(plugin)
        self._rejections[info.uid] = rejection
        self._queue.add_unschedulable(info, now=0.0)

    def _missed(self, before: ClusterState, change: Change) -> Missed | None:
        for info in list(self._queue.unschedulable.values()):
            rejection = self._rejections.get(info.uid)
            events = change.events(self.resources) if change.kind != WAITING or change.key == info.uid else []
            if info.uid in self._retried:
                continue
            if rejection is None or (not events and change.kind in (NODE, RUNNING, WAITING)):
                continue  # there is no event for which it could register
            if self._judge(info.pod) is None:
                hints = self._queue.profiles[info.pod.scheduler_name].hints
                was_skipped = any(hints.matching(event) for event in events)
                return Missed(before, change, info.pod, rejection, was_skipped)
        return None

    def _judge(self, pod: Pod) -> Rejection | None:
        try:
            return judge(self.trial, NodeColumns(self._table), pod)
        except HookFailed:
            return _FAILED


def _shrunk(subject: Subject, missed: Missed) -> Missed:
    """*missed* with as few objects as possible; as it is if the plugin behaves otherwise when it is asked again."""
    for kind in list(missed.before.objects):
        for key in list(missed.before.objects[kind]):
            if (kind, key) not in ((missed.change.kind, missed.change.key), (WAITING, missed.pod.uid)):
                found = _missed_again(subject, missed.before.without(kind, key), missed)
                missed = missed if found is None else found
    return missed


def _missed_again(subject: Subject, cluster_state: ClusterState, missed: Missed) -> Missed | None:
    if not cluster_state.nodes:
        return None
    found = History(subject.fresh(), cluster_state).apply(missed.change)
    return found if found is not None and found.pod.uid == missed.pod.uid else None


def _describe(subject: Subject, missed: Missed) -> str:
    change, pod, resources = missed.change, missed.pod, History(subject.fresh(), missed.before).resources
    wanted = registration_for(change, resources)
    fix = (
        f"{wanted} is registered, but its hint function returned SKIP for this change, or node_local=True rules it out"
        if missed.was_skipped
        else f"add {wanted} to what events_to_register returns"
    )
    return "\n    ".join(
        [
            f"an event is missing: pod {pod.name!r} was rejected by {missed.rejection} and passes after a change, but "
            f"goes on waiting; {fix}. The change: {describe_change(change)}. The cluster before:",
            *describe_cluster_state(missed.before),
        ]
    )
