"""A daemon's event handlers, queue and engine, driven by hand; no task runs."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

import trio
from attrs import define, field
from msgspec.structs import replace
from plugin_base import PluginBase

from trio_sched.daemon.assembly import Assembly
from trio_sched.engine.evaluation.decision import Decision, ScheduleResult
from trio_sched.engine.queue.backoff_queues import BackoffQueues
from trio_sched.engine.queue.pod_heap import PodHeap
from trio_sched.engine.queue.unschedulable_pods import UnschedulablePods
from trio_sched.objects.changes import Change, Changes
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Action, EventRegistration, Status, hookimpl, on, unschedulable
from trio_sched.snapshot.node_columns import NodeColumns

Assemble = Callable[..., Assembly]
"""What the fixture `assembled` gives."""

PodOrNode = TypeVar("PodOrNode", Pod, Node)


@define(eq=False, slots=False)
class Stage:
    """The event handlers and the engine behind them; objects get a new version each time they are shown."""

    assembly: Assembly
    _versions: Iterator[int] = field(factory=lambda: count(1))

    def __attrs_post_init__(self) -> None:
        self.delivery, self.queue = self.assembly.delivery, self.assembly.scheduler.queue
        self.cache, self.unassigned = self.assembly.scheduler.cache, self.assembly.scheduler.cache.unassigned

    def stamp(self, thing: PodOrNode) -> PodOrNode:
        return replace(thing, metadata=replace(thing.metadata, resource_version=str(next(self._versions))))

    def _take(self, *changes: Change[Any]) -> None:
        subject = changes[0].new if changes[0].new is not None else changes[0].old
        take = self.delivery.nodes_changed if isinstance(subject, Node) else self.delivery.pods_changed
        take(Changes(list(changes), "1"))

    def add(self, *things: PodOrNode) -> list[PodOrNode]:
        stamped = [self.stamp(thing) for thing in things]
        for thing in stamped:
            self._take(Change("ADDED", None, thing))
        return stamped

    def update(self, old: PodOrNode, new: PodOrNode) -> PodOrNode:
        new = self.stamp(new)
        self._take(Change("MODIFIED", old, new))
        return new

    def delete(self, old: PodOrNode, last: PodOrNode | None = None) -> None:
        self._take(Change("DELETED", old, last))

    def attempt(self) -> Decision:
        """Let the engine decide about the next pod, up to the point where it would be bound."""
        info = self.queue.pop()
        assert info is not None
        decision = self.assembly.scheduler.decide(info)
        if isinstance(decision, ScheduleResult):
            now = trio.current_time()
            assert self.assembly.scheduler.assume_and_reserve(info.pod, decision, now=now) is None
            self.queue.done(info.uid)
        else:
            self.assembly.schedule_one.failure_handler.handle(info, decision)
        return decision

    def refuse(self, *pods: Pod) -> list[Pod]:
        """Add *pods*, which the engine then finds no node for."""
        added = self.add(*pods)
        for _ in pods:
            assert not isinstance(self.attempt(), ScheduleResult)
        assert [self.where(each) for each in added] == ["unschedulable"] * len(added)
        return added

    def assume(self, new: Pod) -> Pod:
        """Add *new*, which the engine then finds a node for."""
        (added,) = self.add(new)
        assert isinstance(self.attempt(), ScheduleResult)
        assert self.cache.is_assumed(added.uid)
        return added

    def where(self, one: Pod) -> str:
        """The part of the queue that *one* is in."""
        places: dict[str, PodHeap | BackoffQueues | UnschedulablePods] = {
            "active": self.queue.active,
            "backoff": self.queue.backing_off,
            "unschedulable": self.queue.unschedulable,
        }
        found = [name for name, place in places.items() if one.key in place]
        assert len(found) <= 1
        return found[0] if found else ""

    def cpu(self, node_name: str) -> int:
        """What pods on the node have asked for, in thousandths."""
        row = self.cache.table.row_of[node_name]
        return int(NodeColumns(self.cache.table).requested[0, row])


MakeStage = Callable[..., Stage]
"""What the fixture `staged` gives."""


def picky_plugin(*waits_for: tuple[str, Action]) -> type[Any]:
    """Make a plugin that refuses pods with the label ``picky`` and registers for some (resource, actions)."""

    class Picky(PluginBase):
        @hookimpl
        def filter_node(self, pod: Pod) -> Status | None:
            return unschedulable("not good enough") if "picky" in pod.labels else None

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            return [on(resource, action) for resource, action in waits_for]

    return Picky
