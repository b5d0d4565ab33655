"""Events expire, as an API server keeps them for an hour after they were written last (``--event-ttl``)."""

from collections import deque
from typing import Final

import trio
from attrs import define, field

from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.storage.object_store import Change, StoredObject

EVENT_SECONDS: Final = 3600.0


@define(eq=False)
class EventExpiry(Controller):
    """Removes the events that were not written for an hour."""

    _written: deque[tuple[float, str, int]] = field(factory=deque, init=False)
    """When events expire, their keys and versions, the first at the front; an event may have been written since."""

    @property
    def is_busy(self) -> bool:
        """A cluster waits for no event to expire."""
        return False

    def start(self) -> None:
        """Note the events that there are, and follow them."""
        for one in self.server.store.collection("events").objects.values():
            self._note(one)
        self.listen("events", self._on_event)

    def _on_event(self, change: Change) -> None:
        if change.type != "DELETED":
            self._note(change.current)

    def _note(self, event: StoredObject) -> None:
        self._written.append((trio.current_time() + EVENT_SECONDS, event.key, event.version))
        self._steps.plan(self._remove_expired, "", EVENT_SECONDS)

    def _remove_expired(self, _key: str) -> None:
        while self._written and self._written[0][0] <= trio.current_time():
            _due, key, version = self._written.popleft()
            stored = self.server.store.get("events", key)
            if stored is not None and stored.version == version:
                self.server.store.delete("events", stored)
        if self._written:
            self._steps.plan(self._remove_expired, "", self._written[0][0] - trio.current_time())
