"""Objects with versions, and the history that watches are fed from. Pure: no I/O, no clock, no waiting.

Objects are plain dicts without ``kind`` and ``apiVersion`` (those belong to the version of the API that shows them) and
are never changed once stored: a write brings a new dict. Each is encoded once, when it is shown for the first time;
lists, answers and every watcher share those bytes.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
from attrs import define, field

from trio_sched.documents.json_values import Json, encode
from trio_sched.errors import TrioSchedError

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

_CHANGES_WITH_LINES = 64
"""How many changes keep the lines that watchers are given; encoding one again copies the object."""


class HistoryLost(TrioSchedError):
    """The requested version is older than the history that is kept."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(asked, oldest)
        self.asked, self.oldest = asked, oldest

    def __str__(self) -> str:
        return f"too old resource version: {self.asked} ({self.oldest})"


class VersionConflict(TrioSchedError):
    """A write expected another version of the object than the one that is stored."""

    def __init__(self, key: str, expected: int, found: int) -> None:
        super().__init__(key, expected, found)
        self.key, self.expected, self.found = key, expected, found

    def __str__(self) -> str:
        return f"{self.key} is at version {self.found}, not {self.expected}"


class KeyTaken(TrioSchedError):
    """A creation found an object under its key."""


@define(eq=False)
class StoredObject:
    """One object at one version.

    Attributes:
        key: ``namespace/name``, or the name alone where there are no namespaces.
        version: the store's version when it was written.
        fields: everything but ``kind`` and ``apiVersion``; not to be changed.
    """

    key: str
    version: int
    fields: Json
    _tail: bytes = field(default=b"", init=False)

    @property
    def tail(self) -> bytes:
        """*fields* as JSON without the opening brace; any ``{"kind":…,"apiVersion":…,`` may stand before it."""
        if not self._tail:
            self._tail = encode(self.fields)[1:]
        return self._tail

    def show(self, fields: Json) -> None:
        """Have other *fields* from now on, in the same version: a server of another version reads what is stored."""
        self.fields, self._tail = fields, b""

    def encoded(self, prefix: bytes) -> bytes:
        """The whole object as JSON, *prefix* with kind and version."""
        return prefix + self.tail


@define(eq=False)
class Change:
    """One step of a collection's history; for a deletion, *current* is the last state at the deletion's version."""

    type: ChangeType
    current: StoredObject
    previous: StoredObject | None
    _lines: dict[tuple[str, bytes], bytes] = field(factory=dict, init=False)
    _departed: StoredObject | None = field(default=None, init=False)

    @property
    def deselected(self) -> StoredObject:
        """The object for a watch whose selector it no longer matches: its state before, at this change's version."""
        if self.type == "DELETED" or self.previous is None:
            return self.current
        if self._departed is None:
            fields = {**self.previous.fields, "metadata": dict(self.previous.fields["metadata"])}
            self._departed = versioned(self.current.key, self.current.version, fields)
        return self._departed

    def line(self, kind_of_change: ChangeType, prefix: bytes) -> bytes:
        """The watch event as a line of JSON; encoded once for all watchers of the same version."""
        key = (kind_of_change, prefix)
        line = self._lines.get(key)
        if line is None:
            shown = self.deselected if kind_of_change == "DELETED" else self.current
            line = b'{"type":"%s","object":%s%s}\n' % (kind_of_change.encode(), prefix, shown.tail)
            self._lines[key] = line
        return line

    def forget_lines(self) -> None:
        """Free what was encoded for watchers, all of whom have it by now; it is encoded again for one that has not."""
        self._lines = {}


Listener = Callable[[Change], None]


def copied(value: Json) -> Json:
    """A deep copy of fields that came as JSON."""
    copy: Json = msgspec.json.decode(msgspec.json.encode(value))
    return copy


def versioned(key: str, version: int, fields: Json) -> StoredObject:
    """The object of *fields*, whose metadata must be the caller's own and receive *version* (0: none)."""
    if version:
        fields["metadata"]["resourceVersion"] = str(version)
    return StoredObject(key, version, fields)


@define(eq=False)
class Collection:
    """All objects of one resource, its listeners, and its recent past."""

    history_limit: int
    objects: dict[str, StoredObject] = field(factory=dict, init=False)
    history: deque[Change] = field(factory=deque, init=False)
    oldest: int = field(default=0, init=False)
    listeners: dict[int, Listener] = field(factory=dict, init=False)
    _sorted_keys: list[str] | None = field(default=None, init=False)
    _next_listener: int = field(default=0, init=False)

    def sorted_keys(self) -> list[str]:
        """Every key in the order lists are given in."""
        if self._sorted_keys is None:
            self._sorted_keys = sorted(self.objects)
        return self._sorted_keys

    def in_order(self, namespace: str = "") -> Iterator[StoredObject]:
        """The objects in key order; only those of *namespace*, if one is named."""
        objects = self.objects
        if not objects:  # as most kinds have none, which are asked for with every pod
            return iter(())
        keys = self.sorted_keys()
        if not namespace:
            return (objects[key] for key in keys)
        # "0" follows "/" in ASCII: the keys between them are exactly the namespace's.
        first, last = bisect_left(keys, f"{namespace}/"), bisect_left(keys, f"{namespace}0")
        return (objects[key] for key in keys[first:last])

    def record(self, change: Change) -> None:
        """Apply *change*, add it to the history, and call every listener."""
        current = change.current
        if change.type == "DELETED":
            del self.objects[current.key]
            self._sorted_keys = None
        else:
            if change.type == "ADDED":
                self._sorted_keys = None
            self.objects[current.key] = current
        history = self.history
        history.append(change)
        if len(history) > _CHANGES_WITH_LINES:
            history[-_CHANGES_WITH_LINES - 1].forget_lines()
        if len(history) > self.history_limit:
            self.oldest = history.popleft().current.version
        for listener in list(self.listeners.values()):
            listener(change)

    def since(self, version: int) -> list[Change]:
        """What happened after *version*.

        Raises:
            HistoryLost: some of it is no longer kept.
        """
        if version < self.oldest:
            raise HistoryLost(version, self.oldest)
        recent: list[Change] = []
        for change in reversed(self.history):
            if change.current.version <= version:
                break
            recent.append(change)
        recent.reverse()
        return recent

    def as_of(self, version: int) -> dict[str, StoredObject]:
        """The objects as they were at *version*.

        Raises:
            HistoryLost: the history does not reach back so far.
        """
        changes = self.since(version)
        if not changes:
            return self.objects
        objects = dict(self.objects)
        for change in reversed(changes):
            if change.previous is None:
                objects.pop(change.current.key, None)
            else:
                objects[change.current.key] = change.previous
        return objects

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call *listener* for every change from now on; the returned function ends that."""
        number = self._next_listener
        self._next_listener += 1
        self.listeners[number] = listener

        def stop() -> None:
            self.listeners.pop(number, None)

        return stop


@define(eq=False)
class ObjectStore:
    """Every collection, under one counter of versions.

    Args:
        history_limit: how many changes each collection keeps for watches that resume.
    """

    history_limit: int = 20_000
    version: int = field(default=1, init=False)
    _collections: dict[str, Collection] = field(factory=dict, init=False)

    def collection(self, name: str) -> Collection:
        """The collection of that name, made if need be."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(self.history_limit)
        return found

    def get(self, collection: str, key: str) -> StoredObject | None:
        """The object under *key*, if there is one."""
        found = self._collections.get(collection)
        return None if found is None else found.objects.get(key)

    def create(self, collection: str, key: str, fields: Json) -> StoredObject:
        """Store a new object; its ``metadata`` receives the version.

        Raises:
            KeyTaken: there is one already.
        """
        where = self.collection(collection)
        if key in where.objects:
            raise KeyTaken(f"{collection} {key} exists")
        self.version += 1
        stored = versioned(key, self.version, fields)
        where.record(Change("ADDED", stored, None))
        return stored

    def replace(self, collection: str, previous: StoredObject, fields: Json) -> StoredObject:
        """Store *fields* in place of *previous*, which must be what is stored.

        Raises:
            VersionConflict: it is not.
        """
        where = self.collection(collection)
        self._check_current(where, previous)
        self.version += 1
        stored = versioned(previous.key, self.version, fields)
        where.record(Change("MODIFIED", stored, previous))
        return stored

    def delete(self, collection: str, previous: StoredObject) -> StoredObject:
        """Remove *previous*, which must be what is stored; the answer is its last state at the deletion's version.

        Raises:
            VersionConflict: something else is stored, or nothing.
        """
        where = self.collection(collection)
        self._check_current(where, previous)
        self.version += 1
        fields = {**previous.fields, "metadata": dict(previous.fields["metadata"])}
        stored = versioned(previous.key, self.version, fields)
        where.record(Change("DELETED", stored, previous))
        return stored

    def compact(self) -> None:
        """Drop all history: watches and pages that start from an older version are refused from now on."""
        for collection in self._collections.values():
            collection.history.clear()
            collection.oldest = self.version

    def _check_current(self, where: Collection, previous: StoredObject) -> None:
        found = where.objects.get(previous.key)
        if found is not previous:
            raise VersionConflict(previous.key, previous.version, found.version if found else 0)
