"""What the watches deliver is noted before it is taken in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio
from attrs import define

from trio_sched.daemon.recording.decision_recorder import DecisionRecorder
from trio_sched.daemon.recording.notes import Batch
from trio_sched.daemon.watching.delivery import Delivery
from trio_sched.objects.changes import Changes, Listed
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched


@define(eq=False, kw_only=True)
class RecordedDelivery(Delivery):
    """Takes the batches of all watches, and notes them."""

    decisions: DecisionRecorder

    def pods_changed(self, batch: Listed[Pod] | Changes[Pod]) -> None:
        """Take in what a watch of pods delivered."""
        if isinstance(batch, Changes):
            self.decisions.pods_changed(trio.current_time(), batch.changes)
        else:
            self.decisions.delivered(Batch(trio.current_time(), "Pod", batch))
        super().pods_changed(batch)

    def nodes_changed(self, batch: Listed[Node] | Changes[Node]) -> None:
        """Take in what a watch of nodes delivered."""
        self.decisions.delivered(Batch(trio.current_time(), "Node", batch))
        super().nodes_changed(batch)

    def handler(self, kind: Watched) -> Callable[[Listed[Any] | Changes[Any]], None]:
        """What takes the batches of a watch of another *kind*, the name under which plugins read its objects."""
        handle, decisions = super().handler(kind), self.decisions

        def note_and_handle(batch: Listed[Any] | Changes[Any]) -> None:
            decisions.delivered(Batch(trio.current_time(), kind, batch))
            handle(batch)

        return note_and_handle
