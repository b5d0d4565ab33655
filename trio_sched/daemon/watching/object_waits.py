"""Tasks of plugins that wait for an object to change."""

from __future__ import annotations

import trio
from attrs import define, field

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.plugin_api.custom_resources import Watched


@define(eq=False)
class ObjectWaits:
    """An event per object that is waited for."""

    _awaited: dict[tuple[Watched, str, str], trio.Event] = field(factory=dict)
    """Set at the next change of the object (kind, namespace, name); (kind, "", ""): of any of the kind."""

    async def wait(self, kind: Watched, name: str, namespace: str, timeout_seconds: float) -> bool:
        """Wait for the next change of one object, or without *name* of any; False if that took too long."""
        key = (kind, namespace, name) if name else (kind, "", "")
        event = self._awaited.setdefault(key, trio.Event())
        try:
            with trio.move_on_after(timeout_seconds):
                await event.wait()
        finally:
            if not event.is_set() and event.statistics().tasks_waiting == 0 and self._awaited.get(key) is event:
                del self._awaited[key]
        return event.is_set()

    @property
    def is_awaited(self) -> bool:
        """Whether any task waits for a change."""
        return bool(self._awaited)

    def changed(self, kind: Watched, metadata: ObjectMeta) -> None:
        """Wake the tasks that wait for a change of this object."""
        for key in ((kind, metadata.namespace, metadata.name), (kind, "", "")):
            event = self._awaited.pop(key, None)
            if event is not None:
                event.set()
