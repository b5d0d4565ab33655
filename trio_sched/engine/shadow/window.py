"""The changes shortly before and after a decision, of which another scheduler may have known more, or less."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from attrs import define, field, frozen

from trio_sched.engine.shadow.altered_view import Crossing, matters
from trio_sched.objects.changes import Change
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched

WINDOW_SECONDS: Final = 2.0
"""So long a shadow holds back what its watches show: how long after a decision a change can have crossed it, that is
what a binding or the patch of a status takes."""
LAG_SECONDS: Final = 5.0
"""How long before a decision: by so much the watches of a scheduler can lag behind that has much to do."""
MAX_CROSSINGS: Final = 1000
"""So many changes are looked at on each side, the nearest."""


@frozen(eq=False)
class Arrival:
    """A change as a watch has shown it."""

    kind: Watched
    change: Change[Any]
    at: float
    """When, by the scheduler's clock in seconds."""
    is_relisted: bool = False
    """Whether it is the difference between two lists: what was in between has been missed."""
    matters: bool = field(init=False)
    """Whether it can be a reason to decide otherwise."""

    @matters.default
    def _find_out(self) -> bool:
        return matters(self.kind, self.change)


@define(eq=False)
class Window:
    """Changes in the order of their arrival: those that the cache has, and those that are still to come."""

    behind: deque[Arrival] = field(factory=deque)
    """Only those that matter."""
    ahead: deque[Arrival] = field(factory=deque)
    _places: dict[str, int] = field(factory=dict)
    """UID → the place of a pod in the order in which pods without a node were shown."""
    _retried: set[str] = field(factory=set)
    _shown: int = 0

    def next(self, now: float) -> Arrival | None:
        """The first change that the cache does not have, if nothing can cross it any more at the time *now*."""
        return self.ahead[0] if self.ahead and self.ahead[0].at + WINDOW_SECONDS <= now else None

    def applied(self) -> None:
        """The cache has got the first change that was ahead."""
        arrival = self.ahead.popleft()
        if arrival.kind == "Pod":
            self._note_pod(arrival.change)
        if arrival.matters:
            self.behind.append(arrival)
        else:
            self._forget_place(arrival)
        while self.behind and (self.behind[0].at < arrival.at - LAG_SECONDS or len(self.behind) > MAX_CROSSINGS):
            self._forget_place(self.behind.popleft())

    def _note_pod(self, change: Change[Pod]) -> None:
        pod = change.subject
        if pod.node_name or change.type == "DELETED":
            return
        if change.type == "ADDED":
            self._shown += 1
            self._places[pod.uid] = self._shown
        if pod.status.conditions:
            self._retried.add(pod.uid)

    def first_place(self, uid: str) -> int | None:
        """The place of a pod in the order in which pods were created that are tried for the first time.

        None if it was created before this process has started, or has been tried before.
        """
        return None if uid in self._retried else self._places.get(uid)

    def may_be_known(self, crossing: Crossing) -> bool:
        """Whether *crossing* is ahead only because its watch is slower: it happened before the decision was stored."""
        stored = self.ahead[0].change.subject.metadata.resource_version
        happened = crossing.change.subject.metadata.resource_version
        if crossing.kind == "Pod" or not (stored.isdecimal() and happened.isdecimal()):
            return False
        return int(happened) < int(stored)

    def _forget_place(self, arrival: Arrival) -> None:
        change = arrival.change
        if arrival.kind == "Pod" and (change.type == "DELETED" or change.subject.node_name):
            self._places.pop(change.subject.uid, None)
            self._retried.discard(change.subject.uid)

    def crossings(self, uid: str) -> Iterator[Crossing]:
        """What may have crossed a decision on the pod *uid*, the nearest first: one behind, one ahead, and so on.

        The change that shows the decision is the first one ahead, and is left out like all others of that pod.
        """
        shown_at = self.ahead[0].at
        behind = _of_others(reversed(self.behind), uid, shown_at, is_ahead=False)
        ahead = _of_others(islice(self.ahead, 1, None), uid, shown_at, is_ahead=True)
        yield from _alternating(behind, ahead)


def _of_others(arrivals: Iterable[Arrival], uid: str, shown_at: float, *, is_ahead: bool) -> Iterator[Crossing]:
    unborn: set[str] = set()
    for arrival in islice(arrivals, MAX_CROSSINGS):
        other = arrival.change.subject.metadata.uid
        if is_ahead and arrival.kind == "Pod" and arrival.change.type == "ADDED":
            unborn.add(other)  # nobody can have decided on it before
        if not is_ahead and arrival.at < shown_at - LAG_SECONDS:
            return
        if arrival.matters and other != uid and other not in unborn:
            yield Crossing(arrival.kind, arrival.change, is_ahead, abs(arrival.at - shown_at))


def _alternating(*iterators: Iterator[Crossing]) -> Iterator[Crossing]:
    left = list(iterators)
    while left:
        for iterator in list(left):
            found = next(iterator, None)
            if found is None:
                left.remove(iterator)
            else:
                yield found
