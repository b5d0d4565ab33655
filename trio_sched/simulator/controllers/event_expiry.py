"""Events expire, as an API server keeps them for an hour after they were written last (``--event-ttl``)."""

import math
from collections import deque
from typing import Final

import trio
from attrs import define, field

from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.storage.object_store import Change

EVENT_SECONDS: Final = 3600.0


@define(eq=False)
class EventExpiry:
    """Removes the events that were not written for an hour."""

    server: ApiServer
    _written: deque[tuple[float, str, int]] = field(factory=deque, init=False)
    """When events expire, their keys and versions, the first at the front; an event may have been written since."""
    _wake: trio.Event = field(factory=trio.Event, init=False)

    @property
    def is_busy(self) -> bool:
        """A cluster waits for no event to expire."""
        return False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run it; never returns."""
        events = self.server.store.collection("events")
        now = trio.current_time()
        self._written.extend((now + EVENT_SECONDS, one.key, one.version) for one in events.objects.values())
        stop = events.listen(self._on_event)
        task_status.started()
        try:
            while True:
                self._wake = trio.Event()
                self._remove_expired()
                with trio.move_on_at(self._written[0][0] if self._written else math.inf):
                    await self._wake.wait()
        finally:
            stop()

    def _on_event(self, change: Change) -> None:
        if change.type == "DELETED":
            return
        first = not self._written
        self._written.append((trio.current_time() + EVENT_SECONDS, change.current.key, change.current.version))
        if first:
            self._wake.set()

    def _remove_expired(self) -> None:
        while self._written and self._written[0][0] <= trio.current_time():
            _due, key, version = self._written.popleft()
            stored = self.server.store.get("events", key)
            if stored is not None and stored.version == version:
                self.server.store.delete("events", stored)
