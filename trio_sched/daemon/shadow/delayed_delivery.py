"""Holds back what the watches deliver until nothing can cross it any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio
from attrs import define, field

from trio_sched.daemon.wake_up import WakeUp
from trio_sched.daemon.watching.delivery import Delivery
from trio_sched.engine.shadow.window import Arrival, Window
from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched


@define(eq=False, kw_only=True)
class DelayedDelivery(Delivery):
    """First lists are handed on at once, changes one by one when `hand_on` is called."""

    window: Window
    arrived: WakeUp = field(factory=WakeUp, init=False)
    """Set when a change has arrived."""
    _handlers: dict[Watched, Callable[[Listed[Any] | Changes[Any]], None]] = field(factory=dict, init=False)
    """Kind → what takes the batches of its watch."""

    def pods_changed(self, batch: Listed[Pod] | Changes[Pod]) -> None:
        """Take in what a watch of pods delivered."""
        if isinstance(batch, Changes):
            self._hold("Pod", batch)
        else:
            Delivery.pods_changed(self, batch)

    def nodes_changed(self, batch: Listed[Node] | Changes[Node]) -> None:
        """Take in what a watch of nodes delivered."""
        if isinstance(batch, Changes):
            self._hold("Node", batch)
        else:
            Delivery.nodes_changed(self, batch)

    def handler(self, kind: Watched) -> Callable[[Listed[Any] | Changes[Any]], None]:
        """What takes the batches of a watch of another *kind*."""
        deliver = self._handlers[kind] = Delivery.handler(self, kind)

        def handle(batch: Listed[Any] | Changes[Any]) -> None:
            if isinstance(batch, Changes):
                self._hold(kind, batch)
            else:
                deliver(batch)

        return handle

    def _hold(self, kind: Watched, batch: Changes[Any]) -> None:
        now = trio.current_time()
        self.window.ahead.extend(Arrival(kind, change, now, batch.relisted) for change in batch.changes)
        self.arrived.set()

    def hand_on(self, arrival: Arrival) -> None:
        """Let cache and queue have *arrival*, the first change ahead."""
        change: Change[Any] = arrival.change
        batch = Changes([change], change.subject.metadata.resource_version)
        if arrival.kind == "Pod":
            Delivery.pods_changed(self, batch)
        elif arrival.kind == "Node":
            Delivery.nodes_changed(self, batch)
        elif arrival.kind in self.event_handlers.scheduler.object_cache.kinds:  # else it is not followed any more
            self._handlers[arrival.kind](batch)
        self.window.applied()
