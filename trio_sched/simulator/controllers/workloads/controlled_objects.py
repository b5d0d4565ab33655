"""Which objects of one kind belong to which controller: an index that is kept up to date."""

from collections.abc import Callable, Iterator

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.storage.object_store import Change, StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType

Follower = Callable[[str, Change], None]
"""Is called with the key of the controller, and the change of an object that it has or had."""


def controller_of(fields: Json) -> Json | None:
    """The owner reference of the controller, if the object has one."""
    for reference in fields["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: Json = reference
            return found
    return None


@define(eq=False)
class ControlledObjects(Controller):
    """The objects of a kind by the uid of their controller; those without one by their namespace.

    Args:
        resource: the kind.
    """

    resource: ResourceType
    _of: dict[str, dict[str, None]] = field(factory=dict, init=False)
    _orphans: dict[str, dict[str, None]] = field(factory=dict, init=False)
    _followers: dict[str, list[Follower]] = field(factory=dict, init=False)
    _of_orphans: list[Callable[[Change], None]] = field(factory=list, init=False)

    def start(self) -> None:
        """Index the objects that there are, and follow them."""
        for stored in self.server.store.collection(self.resource.collection).objects.values():
            self._add(stored)
        self.listen(self.resource.collection, self._on_change)

    def follow(self, kind: str, follower: Follower) -> None:
        """Call *follower* for every change of an object that a controller of *kind* has or had."""
        self._followers.setdefault(kind, []).append(follower)

    def follow_orphans(self, follower: Callable[[Change], None]) -> None:
        """Call *follower* for every object that comes, changes its labels or loses its controller, and has none."""
        self._of_orphans.append(follower)

    def of(self, uid: str) -> list[StoredObject]:
        """The objects of the controller *uid*, the oldest index entries first."""
        return list(self._stored(self._of.get(uid, ())))

    def orphans(self, namespace: str) -> list[StoredObject]:
        """The objects without a controller."""
        return list(self._stored(self._orphans.get(namespace, ())))

    def uids(self) -> list[str]:
        """Those of all controllers that have objects."""
        return list(self._of)

    def _stored(self, keys: dict[str, None] | tuple[()]) -> Iterator[StoredObject]:
        objects = self.server.store.collection(self.resource.collection).objects
        return (objects[key] for key in keys if key in objects)

    def _on_change(self, change: Change) -> None:
        current, previous = change.current, change.previous
        gone = change.type == "DELETED"
        owner = before = controller_of(current.fields)
        if previous is None:
            before = None
            self._add(current)
        elif gone:
            before = controller_of(previous.fields)
            self._remove(previous)
        elif previous.fields["metadata"].get("ownerReferences") != current.fields["metadata"].get("ownerReferences"):
            before = controller_of(previous.fields)
            self._remove(previous)
            self._add(current)
        if owner is not None:
            self._call(owner, change)
        elif not gone and (
            previous is None
            or before is not None
            or previous.fields["metadata"].get("labels") != current.fields["metadata"].get("labels")
        ):
            for orphan_follower in self._of_orphans:
                orphan_follower(change)
        if before is not None and (owner is None or owner.get("uid") != before.get("uid")):
            self._call(before, change)

    def _call(self, owner: Json, change: Change) -> None:
        followers = self._followers.get(owner.get("kind") or "")
        if followers:
            key = f"{change.current.fields['metadata'].get('namespace')}/{owner.get('name')}"
            for follower in followers:
                follower(key, change)

    def _place(self, stored: StoredObject) -> tuple[dict[str, dict[str, None]], str]:
        owner = controller_of(stored.fields)
        if owner is None:
            return self._orphans, stored.fields["metadata"].get("namespace") or ""
        return self._of, owner.get("uid") or ""

    def _add(self, stored: StoredObject) -> None:
        index, name = self._place(stored)
        index.setdefault(name, {})[stored.key] = None

    def _remove(self, stored: StoredObject) -> None:
        index, name = self._place(stored)
        keys = index.get(name, {})
        keys.pop(stored.key, None)
        if not keys:
            index.pop(name, None)
