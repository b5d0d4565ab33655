"""Hands what the watches deliver to the engine's event handlers; logs it, measures it, and wakes who waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio
from attrs import define

from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.watching.object_waits import ObjectWaits
from trio_sched.engine.event_handlers import EventHandlers
from trio_sched.objects.amounts.quantity import QuantityError
from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched, differ
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)

_VERBS: Final = {"ADDED": "Add", "MODIFIED": "Update", "DELETED": "Delete"}

K = TypeVar("K")


@define(eq=False, kw_only=True)
class Delivery:
    """Takes the batches of all watches. Nothing here waits."""

    event_handlers: EventHandlers
    object_waits: ObjectWaits
    wake: Callable[[], None]
    """Called after every batch: it may have put pods into the queue, or made a plugin fail."""
    metrics: MetricRecorder

    def pods_changed(self, batch: Listed[Pod] | Changes[Pod]) -> None:
        """Take in what a watch of pods delivered."""
        handle, now, is_logged = self.event_handlers.pod_changed, trio.current_time(), log.isEnabledFor(V3)
        clock, observe = self.event_handlers.scheduler.measurements.clock, self.metrics.event_handling.observe
        began = clock()
        for change in _changes(batch):
            if is_logged:
                _log_event(change, "pod", "scheduled pod" if change.subject.node_name else "unscheduled pod")
            try:
                label = handle(change, now=now)
            except QuantityError as problem:  # no API server stores such a thing; if one does, the others go on
                log.error("pod %s is left out: %s", _name(change), problem)
                continue
            ended = clock()
            observe(ended - began, label)
            began = ended
        self._end_batch("Pod", batch)

    def nodes_changed(self, batch: Listed[Node] | Changes[Node]) -> None:
        """Take in what a watch of nodes delivered."""
        handle, now, is_logged = self.event_handlers.node_changed, trio.current_time(), log.isEnabledFor(V3)
        clock, observe = self.event_handlers.scheduler.measurements.clock, self.metrics.event_handling.observe
        for change in _changes(batch):
            if is_logged:
                _log_event(change, "node", "node")
            began = clock()
            try:
                labels = handle(change, now=now)
            except QuantityError as problem:
                log.error("node %s is left out: %s", _name(change), problem)
                continue
            seconds = clock() - began
            for label in labels:
                observe(seconds / len(labels), label)
        if isinstance(batch, Changes) and batch.relisted:
            self.event_handlers.nodes_listed_again([change.subject for change in batch.changes])
        self._end_batch("Node", batch)

    def _end_batch(self, kind: str, batch: Listed[Any] | Changes[Any]) -> None:
        self.event_handlers.batch_changed(kind)
        errors = self.event_handlers.cache_errors
        if errors:
            self.metrics.cache_errors += len(errors)
            for problem in errors:
                log.error("Scheduler cache: %s", problem)
            errors.clear()
        if self.object_waits.is_awaited:
            for change in _changes(batch):
                self.object_waits.changed(kind, change.subject.metadata)
        self.wake()

    def handler(self, kind: Watched) -> Callable[[Listed[Any] | Changes[Any]], None]:
        """What takes the batches of a watch of another *kind*, the name under which plugins read its objects."""
        handlers, observe = self.event_handlers, self.metrics.event_handling.observe
        handlers.scheduler.object_cache.add_kind(kind)
        clock = handlers.scheduler.measurements.clock

        def handle(batch: Listed[Any] | Changes[Any]) -> None:
            changes, now = _changes(batch), trio.current_time()
            if any(map(_matters, changes)):
                handlers.batch_changed(kind)
            for change in changes:
                began = clock()
                label = handlers.object_changed(kind, change, now=now)
                if label:
                    observe(clock() - began, label)
                self.object_waits.changed(kind, change.subject.metadata)
            self.wake()

        return handle


def _changes(batch: Listed[K] | Changes[K]) -> list[Change[K]]:
    """A batch as changes: what was listed first was added."""
    return [Change("ADDED", None, one) for one in batch.objects] if isinstance(batch, Listed) else batch.changes


def _matters(change: Change[Any]) -> bool:
    """Whether anything is different that plugins can see, besides the version."""
    return change.old is None or change.new is None or change.type == "DELETED" or differ(change.old, change.new)


def _log_event(change: Change[Any], key: str, subject: str) -> None:
    log_line(log, V3, f"{_VERBS[change.type]} event for {subject}", {key: _name(change)})


def _name(change: Change[Any]) -> str:
    metadata = change.subject.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)
