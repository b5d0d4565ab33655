"""Pods that are being scheduled, and what happened meanwhile.

One list holds both, in order: a marker where each pod was popped, and every event since. When a pod is requeued as
rejected, the events behind its marker say whether something has changed that its rejector waits for.

Events have the objects in them, so they are limited: a plugin can keep a pod waiting for a quarter of an hour. In the
place of those that are dropped one says that anything may have happened, which costs the pods an attempt at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from attrs import define, frozen

from trio_sched.plugin_api.cluster_events import Action, ClusterEvent, Resource

MAX_EVENTS: Final = 2000
TOO_MANY_EVENTS: Final = ClusterEvent(Resource.WILDCARD, Action.ALL, "TooManyEvents")


@frozen(eq=False)
class InFlightEvent:
    """An event with the object before and after."""

    event: ClusterEvent
    old: Any = None
    new: Any = None


@define(eq=False)
class _Link:
    content: str | InFlightEvent
    """A pod's UID, or an event."""
    key: str = ""
    previous: _Link | None = None
    next: _Link | None = None


class InFlight:
    """The list of markers and events; events before the first marker concern no pod and are dropped."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        """Label of an event → how many are recorded."""
        self._event_count = 0
        self._markers: dict[str, _Link] = {}
        self._first: _Link | None = None
        self._last: _Link | None = None

    def __len__(self) -> int:
        """How many pods are in flight."""
        return len(self._markers)

    def __contains__(self, uid: str) -> bool:
        return uid in self._markers

    def start(self, uid: str, key: str) -> None:
        """The pod *uid* was popped."""
        link = _Link(uid, key)
        self._markers[uid] = link
        self._append(link)

    def add_event(self, event: InFlightEvent) -> None:
        """Record *event* for the pods in flight."""
        if self._event_count >= MAX_EVENTS:
            self._drop_older_half()
        self._append(_Link(event))
        self._count(event, 1)

    def _drop_older_half(self) -> None:
        link = self._first
        while link is not None:
            if isinstance(link.content, InFlightEvent):
                self._count(link.content, -1)
                if self._event_count < MAX_EVENTS // 2:  # pods whose marker is before this one miss something
                    link.content = InFlightEvent(TOO_MANY_EVENTS)
                    self._count(link.content, 1)
                    return
                self._unlink(link)
            link = link.next

    def _count(self, event: InFlightEvent, change: int) -> None:
        self._event_count += change
        self.events[event.event.label] += change

    def done(self, uid: str) -> None:
        """The attempt of the pod *uid* is over; no matter if it was already."""
        link = self._markers.pop(uid, None)
        if link is None:
            return
        self._unlink(link)
        while self._first is not None and isinstance(self._first.content, InFlightEvent):
            self._count(self._first.content, -1)
            self._unlink(self._first)

    def since(self, uid: str) -> Iterator[InFlightEvent]:
        """The events since the pod *uid* was popped."""
        link = self._markers[uid].next
        while link is not None:
            if isinstance(link.content, InFlightEvent):
                yield link.content
            link = link.next

    def clear_markers(self) -> None:
        """No pod is in flight any more."""
        for uid in list(self._markers):
            self.done(uid)

    def __iter__(self) -> Iterator[tuple[str, str] | ClusterEvent]:
        """(key, uid) of every marker, and every event, in order."""
        link = self._first
        while link is not None:
            yield link.content.event if isinstance(link.content, InFlightEvent) else (link.key, link.content)
            link = link.next

    def _append(self, link: _Link) -> None:
        link.previous = self._last
        if self._last is None:
            self._first = link
        else:
            self._last.next = link
        self._last = link

    def _unlink(self, link: _Link) -> None:
        if link.previous is None:
            self._first = link.next
        else:
            link.previous.next = link.next
        if link.next is None:
            self._last = link.previous
        else:
            link.next.previous = link.previous
