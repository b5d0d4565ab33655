"""Objects as the watches show them: what plugins read through their handle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

import trio
from attrs import define, field

from trio_sched.daemon.watching.watched_kinds import Watched
from trio_sched.engine.evaluation.kind_dependencies import KindDependencies

_NO_OBJECTS: Mapping[tuple[str, str], Any] = {}


@define(eq=False)
class ObjectCache:
    """Objects by kind, namespace and name, with a version per kind; the event handlers write, plugins read."""

    dependencies: KindDependencies = field(factory=KindDependencies)
    """Notes which kinds are read for results that will be cached."""
    pods_and_nodes: Mapping[str, Callable[[], Mapping[tuple[str, str], Any]]] = field(factory=dict, init=False)
    """Give by namespace and name what the watches of ``Pod`` and ``Node`` have shown."""
    check_kind: Callable[[Watched], None] | None = field(default=None, init=False)
    """Raises `KindNotWatched` for kinds that will never be watched; None as long as it is not known which these are."""
    _objects: dict[Watched, dict[tuple[str, str], Any]] = field(factory=dict)
    _versions: Counter[Watched] = field(factory=Counter)
    _awaited: dict[tuple[Watched, str, str], trio.Event] = field(factory=dict)
    """Set at the next change of the object (kind, namespace, name); (kind, "", ""): of any of the kind."""

    # --- plugins read -----------------------------------------------------------------------------------------------

    def objects(self, kind: Watched) -> Collection[Any]:
        """All known objects of *kind*.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        return self._of_kind(kind).values()

    def get(self, kind: Watched, name: str, namespace: str = "") -> Any | None:
        """One known object, or None.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        return self._of_kind(kind).get((namespace, name))

    def version(self, kind: Watched) -> int:
        """Grows with every batch of events in which an object of *kind* changed in more than its versions.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        self._of_kind(kind)
        return self._versions[kind]

    def _of_kind(self, kind: Watched) -> Mapping[tuple[str, str], Any]:
        self.dependencies.note(kind)
        found = self._objects.get(kind)
        if found is None:
            if kind in self.pods_and_nodes:
                return self.pods_and_nodes[kind]()  # type: ignore[index]  # only texts are in there
            if self.check_kind is not None:
                self.check_kind(kind)
            return _NO_OBJECTS
        return found

    async def wait_changed(self, kind: Watched, name: str, namespace: str, timeout_seconds: float) -> bool:
        """Wait for the next change of one object, or without *name* of any; False if that took too long.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        self._of_kind(kind)
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
    def kinds(self) -> Collection[Watched]:
        """The kinds that are watched."""
        return self._objects.keys()

    # --- event handlers write ----------------------------------------------------------------------------------------

    def add_kind(self, kind: Watched) -> None:
        """Objects of *kind* are watched from now on."""
        self._objects.setdefault(kind, {})

    def drop_kind(self, kind: Watched) -> None:
        """Objects of *kind* are watched no longer."""
        self._objects.pop(kind, None)

    def count_change(self, kind: Watched) -> bool:
        """Objects of *kind* have changed; returns whether cached results depend on it."""
        self._versions[kind] += 1
        return kind in self.dependencies.kinds

    def put(self, kind: Watched, name: str, namespace: str, obj: Any) -> None:
        """An object is new, or has changed."""
        self._objects[kind][namespace, name] = obj
        self.changed(kind, name, namespace)

    def remove(self, kind: Watched, name: str, namespace: str) -> None:
        """An object is gone."""
        self._objects[kind].pop((namespace, name), None)
        self.changed(kind, name, namespace)

    @property
    def is_awaited(self) -> bool:
        """Whether any task waits for a change."""
        return bool(self._awaited)

    def changed(self, kind: Watched, name: str, namespace: str) -> None:
        """Wake the tasks that wait for a change of this object."""
        for key in ((kind, namespace, name), (kind, "", "")):
            event = self._awaited.pop(key, None)
            if event is not None:
                event.set()
