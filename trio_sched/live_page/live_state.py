"""What all readers of the live page see: looked at once for all of them, and only while there are some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from attrs import define, field, frozen

from trio_sched.engine.scheduler import Scheduler
from trio_sched.live_page.causes import Causes
from trio_sched.live_page.node_rows import CORDONED, NOT_READY, NodeRows
from trio_sched.live_page.pending_rows import GANG_PLUGIN, PendingRows
from trio_sched.live_page.shared_work import ShardEntries, SharedWork
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.vocabulary import CPU_ROW, MEMORY_ROW

VERSION: Final = 1
CLUSTER: Final = "cluster"
"""The kind of a source whose pods are scheduled elsewhere: their conditions say why they wait."""


@frozen(kw_only=True)
class LiveSource:
    """Where the page gets what it shows."""

    kind: str
    """``scheduler``, ``cluster``, ``simulation`` or ``recording``."""
    name: str
    scheduler: Scheduler
    now: Callable[[], float]
    """Returns the time of day in seconds since 1970."""
    message_of: Callable[[Pod], str]
    """Returns what was said of the last attempt to schedule the pod; empty if nothing was."""
    on_permit: Mapping[str, object]
    """The pods that wait on permit, by UID."""
    facts: Callable[[], dict[str, Any]]
    """Returns the entries of the summary that are not read from the scheduler."""
    shared_work: SharedWork | None = None
    """None: the scheduler shares its work with no others."""


@define(eq=False)
class LiveState:
    """The columns and the summary as they were sent last; `refresh` compares them with what there is now."""

    source: LiveSource
    sequence: int = 0
    """Grows with each refresh that has found a change."""
    time: float = field(init=False, default=0.0)
    """When it was refreshed last, in seconds since 1970."""
    summary: dict[str, Any] = field(init=False, factory=dict)
    nodes: NodeRows = field(init=False)
    pending: PendingRows = field(init=False)
    causes: Causes = field(init=False)
    shards: ShardEntries | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        source = self.source
        self.nodes = NodeRows(source.scheduler.cache.table, source.scheduler.cache.evictions)
        if source.shared_work is not None:
            self.nodes.shard_of = source.shared_work.owned.of_node
            self.shards = ShardEntries(source.shared_work, source.scheduler)
        is_elsewhere = source.kind == CLUSTER
        self.causes = Causes(source.scheduler.queue, source.message_of, counts_active=is_elsewhere)
        self.pending = PendingRows(source.scheduler, source.on_permit, self.causes, scheduled_elsewhere=is_elsewhere)

    def refresh(self, delta: dict[str, Any]) -> Iterator[None]:
        """Look at everything, and put what has changed into *delta*, which stays empty if nothing has.

        Yields where others may run; nothing else may be called before it is over.
        """
        self.time = self.pending.now = round(self.source.now(), 3)
        changes: dict[str, Any] = {}
        yield from self.nodes.refresh(changes)
        yield
        yield from self.pending.refresh(changes)
        yield
        if self.shards is not None:
            yield from self.shards.refresh()
        self.causes.refresh(changes, None if self.pending.left_out else self.pending.causes_shown())
        summary = self._summary()
        if different := {name: value for name, value in summary.items() if self.summary.get(name) != value}:
            changes["summary"] = different
        self.summary = summary
        if changes:
            self.sequence += 1
            delta.update(sequence=self.sequence, time=self.time, **changes)

    def snapshot(self) -> dict[str, Any]:
        """Everything, as of the last refresh."""
        source, nodes = self.source, self.nodes
        return {
            "version": VERSION,
            "sequence": self.sequence,
            "time": self.time,
            "source": {"kind": source.kind, "name": source.name},
            "zones": nodes.zones.names,
            "pools": nodes.pools.names,
            "devices": nodes.devices.names,
            "nodes": nodes.shown(),
            "pending": self.pending.shown(),
            "causes": self.causes.shown(),
            "summary": self.summary,
        }

    def _summary(self) -> dict[str, Any]:
        scheduler, columns = self.source.scheduler, self.nodes.columns
        views, flags = scheduler.cache.table.views, columns["flags"]
        summary: dict[str, Any] = {
            "nodes": len(flags),
            "nodes_not_ready": int(np.count_nonzero(flags & NOT_READY)),
            "nodes_cordoned": int(np.count_nonzero(flags & CORDONED)),
            "pods": [len(scheduler.cache), _sum(views.allowed_pods)],
            "pending_left_out": self.pending.left_out,
            "queues": self._queues(),
        }
        for name, row in (("cpu", CPU_ROW), ("memory", MEMORY_ROW)):
            summary[name] = [_sum(views.requested[row]), _sum(views.allocatable[row])]
        if self.shards is not None:
            summary |= self.shards.entries(columns["shard"], columns["pods"])
        return summary | self.source.facts()

    def _queues(self) -> list[int]:
        """How many pods are active, in backoff, unschedulable, gated, on permit, being bound, waiting for a group."""
        scheduler = self.source.scheduler
        queue = scheduler.queue
        incomplete = queue.incomplete()
        waiting = [one.gating_plugin for one in queue.unschedulable.values() if one.key not in incomplete]
        gang_gated, ungated = waiting.count(GANG_PLUGIN), waiting.count("")
        on_permit = len(self.source.on_permit)
        refused = min(self.causes.active, len(queue.active))
        return [
            len(queue.active) + len(queue.set_aside) + len(queue.pending) - refused,
            len(queue.backing_off),
            ungated + refused,
            len(waiting) - ungated - gang_gated,
            on_permit,
            max(scheduler.cache.assumed_count - on_permit, 0),
            gang_gated + len(incomplete),
        ]


def _sum(column: Any) -> int:
    """The sum, made of floats: nodes can have amounts whose sum has no room in an integer of 64 bits."""
    return int(column.sum(dtype=np.float64))
