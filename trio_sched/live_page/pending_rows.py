"""The pods that wait as columns: those of highest priority, then oldest first, and what has changed of them.

Pods come and go many times a second, so what all of them are compared in are operations on sets; a row is read again
when its pod is in another part of the queue, and otherwise every few times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator
from heapq import heappop, heappush
from itertools import filterfalse, islice, takewhile
from typing import Any, Final

from attrs import define, field

from trio_sched.engine.queue.pending_pods import find_queued
from trio_sched.engine.scheduler import Scheduler
from trio_sched.live_page.causes import Causes
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import parse_time
from trio_sched.plugin_api.pending_pods import QueueState

MOST_ROWS: Final = 2000
ACTIVE, BACKOFF, UNSCHEDULABLE, GATED, ON_PERMIT, BINDING, GANG = range(7)
"""The values of the column ``queue``."""
GANG_PLUGIN: Final = "GangScheduling"
"""What it gates waits for its group, or the other pods of it."""
_QUEUES: Final = {
    QueueState.ACTIVE: ACTIVE,
    QueueState.BACKOFF: BACKOFF,
    QueueState.UNSCHEDULABLE: UNSCHEDULABLE,
    QueueState.GATED: GATED,
    QueueState.IN_FLIGHT: ACTIVE,
}
_FIXED: Final = ("id", "namespace", "name", "priority", "since", "group")
_CHANGING: Final = ("queue", "attempts", "cause", "node")
_TOGETHER: Final = 250
"""Pods that are looked at without a pause."""
_SCANNED_TOGETHER: Final = 2000
"""Names that are compared without a pause."""
_SCANNED_EVERY_TIME: Final = 10_000
"""So many pods are looked at in every refresh for new ones anywhere among them; more in every second one, and so on."""
ROUNDS: Final = 5
"""Each row is read at least in one of so many refreshes."""

Rank = tuple[int, float, str]
"""The lower, the sooner a pod is shown."""


@define(eq=False)
class _Row:
    """A pod that is shown."""

    rank: Rank
    uid: str
    fixed: tuple[Any, ...]
    """The values of the columns `_FIXED`."""
    changing: tuple[Any, ...] = ()
    """Those of `_CHANGING`; none yet."""


@define(eq=False)
class PendingRows:
    """Compares the pods without a node with what was returned of them last."""

    scheduler: Scheduler
    on_permit: Container[str]
    """The UIDs of the pods that wait on permit."""
    causes: Causes
    scheduled_elsewhere: bool = False
    """Whether another process tries the pods, so that active ones with a cause are unschedulable."""
    now: float = 0.0
    """Stands for the creation of pods that do not tell theirs; seconds since 1970."""
    _rows: dict[str, _Row] = field(init=False, factory=dict)
    """By ``namespace/name``."""
    _hidden: list[Rank] = field(init=False, factory=list)
    """A heap of the pods that have no row; some are gone."""
    _known: set[str] = field(init=False, factory=set)
    """The names of those with a row, and of those in the heap; some of these are gone."""
    _parts: list[set[str]] = field(init=False, factory=list)
    """Which pods with a row were in which part of the queue."""
    _incomplete: Collection[str] = field(init=False, default=())
    """The names of those whose group is not there."""
    _until_scan: int = field(init=False, default=0)
    """In how many refreshes all pods are looked at."""
    _round: int = field(init=False, default=0)
    _next_id: int = field(init=False, default=0)

    @property
    def left_out(self) -> int:
        """How many pods have no row."""
        return max(len(self._pods) - len(self._rows), 0)

    @property
    def _pods(self) -> dict[str, Pod]:
        return self.scheduler.cache.unassigned.by_key

    def refresh(self, delta: dict[str, Any]) -> Iterator[None]:
        """Look at the pods, and put what has changed into *delta*; yields where others may run."""
        removed = [self._rows.pop(key) for key in self._gone()]
        yield from self._note_new()
        yield from self._choose(removed)
        added: list[_Row] = []
        changed: dict[str, list[list[Any]]] = {}
        for number, key in enumerate(self._to_read(), start=1):
            pod, row = self._pods.get(key), self._rows[key]
            if pod is not None and pod.uid == row.uid:
                before = row.changing
                row.changing = self._read(pod)
                if not before:
                    added.append(row)
                elif before != row.changing:
                    _compare(row, before, changed)
            if number % _TOGETHER == 0:
                yield
        gone = [row.fixed[0] for row in removed if row.changing]
        if changes := _without_empty({"added": _listed(added), "removed": gone, "changed": changed}):
            delta["pending"] = changes

    def causes_shown(self) -> Counter[int]:
        """How many rows have each cause."""
        position = _CHANGING.index("cause")
        found = (row.changing[position] for row in self._rows.values() if row.changing)
        return Counter(cause for cause in found if cause is not None)

    def shown(self) -> dict[str, list[Any]]:
        """All rows as columns."""
        return _listed(self._rows.values())

    def _gone(self) -> list[str]:
        """The pods with rows that have gone, or of whose names there is another one."""
        pods, gone = self._pods, []
        for key, row in self._rows.items():
            pod = pods.get(key)
            if pod is None or pod.metadata.uid != row.uid:
                gone.append(key)
        self._known.difference_update(gone)
        return gone

    def _note_new(self) -> Iterator[None]:
        """Put new pods into the heap, and if most of it is gone all others again.

        The newest are at the end. All are looked at seldom if they are many: a pod may have taken its place again
        behind others, and those without rows go.
        """
        pods = self._pods
        newest = islice(reversed(pods), _SCANNED_TOGETHER)
        new = list(takewhile(lambda key: key not in self._known, newest))
        self._until_scan -= 1
        if self._until_scan <= 0 or len(new) == _SCANNED_TOGETHER:
            new.clear()
            self._until_scan = 1 + len(pods) // _SCANNED_EVERY_TIME
            for keys in _batches(self._known):
                self._known.difference_update([key for key in keys if key not in pods])
                yield
            for keys in _batches(pods):
                new += filterfalse(self._known.__contains__, keys)
                yield
        if len(self._hidden) > 2 * self.left_out + MOST_ROWS:
            self._hidden.clear()
            new += self._known - self._rows.keys()
        for number, key in enumerate(new, start=1):
            pod = pods.get(key)
            if pod is not None:
                self._known.add(key)
                heappush(self._hidden, self._rank(pod))
            if number % _TOGETHER == 0:
                yield

    def _rank(self, pod: Pod) -> Rank:
        created = parse_time(pod.metadata.creation_timestamp or "")
        return -pod.priority, self.now if created is None else created, pod.key

    def _choose(self, removed: list[_Row]) -> Iterator[None]:
        """Give rows to the pods of lowest rank; to *removed* come the rows of those that lose theirs."""
        self._drop_gone()
        while self._hidden and len(self._rows) < MOST_ROWS:
            self._show()
            if len(self._rows) % _TOGETHER == 0:
                yield
        if not self._hidden or max(row.rank for row in self._rows.values()) < self._hidden[0]:
            return
        for key, row in sorted(self._rows.items(), key=lambda one: one[1].rank, reverse=True):
            if not self._hidden or row.rank < self._hidden[0]:
                break
            del self._rows[key]
            removed.append(row)
            self._show()
            heappush(self._hidden, row.rank)
            if len(removed) % _TOGETHER == 0:
                yield

    def _drop_gone(self) -> None:
        """Have a pod at the top of the heap that exists and has no row."""
        while self._hidden and ((key := self._hidden[0][2]) not in self._known or key in self._rows):
            heappop(self._hidden)

    def _show(self) -> None:
        """Give a row to the pod at the top of the heap."""
        rank = heappop(self._hidden)
        key = rank[2]
        pod = self._pods.get(key)
        if pod is None:  # gone while others ran
            self._known.discard(key)
        elif (now := self._rank(pod)) != rank:  # another one of its name
            heappush(self._hidden, now)
        else:
            group = pod.spec.scheduling_group
            group_name = "" if group is None else group.pod_group_name or ""
            fixed = self._next_id, pod.namespace, pod.name, pod.priority, round(rank[1], 3), group_name
            self._rows[key] = _Row(rank, pod.uid, fixed)
            self._next_id += 1
        self._drop_gone()

    def _to_read(self) -> set[str]:
        """The rows that are new or may have changed: the pods are or were elsewhere in the queue; and some others."""
        queue, shown = self.scheduler.queue, self._rows.keys()
        backing_off = queue.backing_off
        self._incomplete = queue.incomplete()
        parts = [
            {key for key in shown if key in part}  # an intersection would go through all of the part
            for part in (
                queue.active,
                queue.set_aside,
                backing_off.pod_backoff_q,
                backing_off.pod_error_backoff_q,
                queue.unschedulable,
                self._incomplete,
            )
        ]
        resting = set().union(*parts)
        moved = set(shown - resting)  # in flight
        for now, before in zip(parts, self._parts, strict=False):
            moved |= (now ^ before) & shown
        self._parts = parts
        self._round = (self._round + 1) % ROUNDS
        moved.update(islice(shown, self._round, None, ROUNDS))
        moved.update(key for key, row in self._rows.items() if not row.changing)
        return moved

    def _read(self, pod: Pod) -> tuple[Any, ...]:
        """The values of *pod* in the columns that change."""
        info, state = find_queued(self.scheduler.queue, pod)
        where, node = _QUEUES[state], pod.nominated_node_name
        if state is QueueState.IN_FLIGHT and (cached := self.scheduler.cache.get(pod.uid)) is not None:
            where, node = ON_PERMIT if pod.uid in self.on_permit else BINDING, cached.node_name
        elif pod.key in self._incomplete or (info is not None and info.gating_plugin == GANG_PLUGIN):
            where = GANG
        if info is None:
            return where, 0, None, node
        cause = self.causes.of(info)
        if self.scheduled_elsewhere and where == ACTIVE and cause is not None:
            where = UNSCHEDULABLE
        return where, info.attempts, cause, node


def _compare(row: _Row, before: tuple[Any, ...], changed: dict[str, list[list[Any]]]) -> None:
    """Put what differs of *row* into *changed*: by column, the ids and the values."""
    for name, value, former in zip(_CHANGING, row.changing, before, strict=True):
        if value != former:
            ids, values = changed.setdefault(name, [[], []])
            ids.append(row.fixed[0])
            values.append(value)


def _listed(rows: Iterable[_Row]) -> dict[str, list[Any]]:
    """Rows as columns; empty without any."""
    read = [row for row in rows if row.changing]
    if not read:
        return {}
    fixed, changing = zip(*(row.fixed for row in read), strict=True), zip(*(row.changing for row in read), strict=True)
    return {
        **{name: list(column) for name, column in zip(_FIXED, fixed, strict=True)},
        **{name: list(column) for name, column in zip(_CHANGING, changing, strict=True)},
    }


def _batches(keys: Collection[str]) -> Iterator[list[str]]:
    """*keys* as they are now, in lists that are looked at without a pause."""
    now = list(keys)
    return (now[begin : begin + _SCANNED_TOGETHER] for begin in range(0, len(now), _SCANNED_TOGETHER))


def _without_empty(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if part}
