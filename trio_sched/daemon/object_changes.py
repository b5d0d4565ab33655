"""Who waits for the next version of which object."""

from __future__ import annotations

import trio
from attrs import define, field

ObjectKey = tuple[str, str, str]
"""Kind, namespace and name."""


@define(eq=False)
class ObjectChanges:
    """Told of every change of the further kinds; wakes those who wait for it."""

    _awaited: dict[ObjectKey, trio.Event] = field(factory=dict)

    def note(self, key: ObjectKey) -> None:
        """An object is there in another version, or is there no longer."""
        event = self._awaited.pop(key, None)
        if event is not None:
            event.set()

    async def wait(self, key: ObjectKey, timeout_seconds: float) -> bool:
        """Wait for the next change of one object; False if that took too long."""
        event = self._awaited.setdefault(key, trio.Event())
        try:
            with trio.move_on_after(timeout_seconds):
                await event.wait()
        finally:
            if not event.is_set() and event.statistics().tasks_waiting == 0 and self._awaited.get(key) is event:
                del self._awaited[key]
        return event.is_set()
