"""Objects besides pods and nodes, as the watches show them: what plugins read through their handle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

import trio
from attrs import define, field

from trio_sched.engine.kind_dependencies import KindDependencies

_NO_OBJECTS: Mapping[tuple[str, str], Any] = {}


@define(eq=False)
class ObjectCache:
    """Objects by kind, namespace and name, with a version per kind; the event handlers write, plugins read."""

    dependencies: KindDependencies = field(factory=KindDependencies)
    """Notes which kinds are read for results that will be cached."""
    check_kind: Callable[[str], None] | None = field(default=None, init=False)
    """Raises `KindNotWatched` for kinds that will never be watched; None as long as it is not known which these are."""
    _objects: dict[str, dict[tuple[str, str], Any]] = field(factory=dict)
    _versions: Counter[str] = field(factory=Counter)
    _awaited: dict[tuple[str, str, str], trio.Event] = field(factory=dict)
    """Set at the next change of the object (kind, namespace, name)."""

    # --- plugins read -----------------------------------------------------------------------------------------------

    def objects(self, kind: str) -> Collection[Any]:
        """All known objects of *kind*.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        return self._of_kind(kind).values()

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        """One known object, or None.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        return self._of_kind(kind).get((namespace, name))

    def version(self, kind: str) -> int:
        """Grows with every batch of events in which an object of *kind* changed in more than its versions.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        self._of_kind(kind)
        return self._versions[kind]

    def _of_kind(self, kind: str) -> Mapping[tuple[str, str], Any]:
        self.dependencies.note(kind)
        found = self._objects.get(kind)
        if found is None:
            if self.check_kind is not None:
                self.check_kind(kind)
            return _NO_OBJECTS
        return found

    async def wait_changed(self, kind: str, name: str, namespace: str, timeout_seconds: float) -> bool:
        """Wait for the next change of one object; False if that took too long.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        self._of_kind(kind)
        key = kind, namespace, name
        event = self._awaited.setdefault(key, trio.Event())
        try:
            with trio.move_on_after(timeout_seconds):
                await event.wait()
        finally:
            if not event.is_set() and event.statistics().tasks_waiting == 0 and self._awaited.get(key) is event:
                del self._awaited[key]
        return event.is_set()

    @property
    def kinds(self) -> Collection[str]:
        """The kinds that are watched."""
        return self._objects.keys()

    # --- event handlers write ----------------------------------------------------------------------------------------

    def add_kind(self, kind: str) -> None:
        """Objects of *kind* are watched from now on."""
        self._objects.setdefault(kind, {})

    def drop_kind(self, kind: str) -> None:
        """Objects of *kind* are watched no longer."""
        self._objects.pop(kind, None)

    def count_change(self, kind: str) -> bool:
        """Objects of *kind* have changed; returns whether cached results depend on it."""
        self._versions[kind] += 1
        return kind in self.dependencies.kinds

    def put(self, kind: str, name: str, namespace: str, obj: Any) -> None:
        """An object is new, or has changed."""
        self._objects[kind][namespace, name] = obj
        self._wake(kind, name, namespace)

    def remove(self, kind: str, name: str, namespace: str) -> None:
        """An object is gone."""
        self._objects[kind].pop((namespace, name), None)
        self._wake(kind, name, namespace)

    def _wake(self, kind: str, name: str, namespace: str) -> None:
        event = self._awaited.pop((kind, namespace, name), None)
        if event is not None:
            event.set()
