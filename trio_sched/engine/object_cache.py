"""Objects as the watches show them: what plugins read through their handle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from attrs import define, field

from trio_sched.engine.evaluation.kind_dependencies import KindDependencies
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.snapshot.devices.device_table import KINDS as DEVICE_KINDS
from trio_sched.snapshot.devices.device_table import DeviceTable

_NO_OBJECTS: Mapping[tuple[str, str], Any] = {}


@define(eq=False)
class ObjectCache:
    """Objects by kind, namespace and name, with a version per kind; the event handlers write, plugins read."""

    devices: DeviceTable = field(factory=DeviceTable)
    """Is told of the objects that devices are made of."""
    dependencies: KindDependencies = field(factory=KindDependencies)
    """Notes which kinds are read for results that will be cached."""
    pods_and_nodes: Mapping[str, Callable[[], Mapping[tuple[str, str], Any]]] = field(factory=dict)
    """Give by namespace and name what the watches of ``Pod`` and ``Node`` have shown."""
    check_kind: Callable[[Watched], None] | None = field(default=None, init=False)
    """Raises `KindNotWatched` for kinds that will never be watched; None as long as it is not known which these are."""
    _objects: dict[Watched, dict[tuple[str, str], Any]] = field(factory=dict)
    _versions: Counter[Watched] = field(factory=Counter)

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
        if kind in DEVICE_KINDS:
            self.devices.put(obj)

    def remove(self, kind: Watched, name: str, namespace: str) -> None:
        """An object is gone."""
        self._objects[kind].pop((namespace, name), None)
        if kind in DEVICE_KINDS:
            self.devices.remove(str(kind), name, namespace)
