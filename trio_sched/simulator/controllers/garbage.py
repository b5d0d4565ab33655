"""A simulated garbage collector: what becomes of the dependents of objects that are deleted.

Only owners whose deletion was seen count: an owner that was never there, as in a dump of pods alone, is no reason to
delete anything.
"""

from functools import partial
from typing import Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.kubelets.pod_states import is_terminating
from trio_sched.simulator.registry.lifecycle import (
    FOREGROUND,
    ORPHAN,
    DeleteOptions,
    delete,
    drop_finalizer,
    write_fields,
)
from trio_sched.simulator.registry.served_definitions import DEFINITIONS
from trio_sched.simulator.storage.object_store import Change, StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType

_REACT_SECONDS: Final = 0.1
_LEFT_TO_OTHERS: Final = ("events", "resourceclaims.resource.k8s.io")
"""Claims of devices have a controller that deletes them."""


@define(eq=False)
class GarbageCollector(Controller):
    """Deletes or releases dependents."""

    _dependents: dict[str, dict[tuple[str, str], None]] = field(factory=dict, init=False)
    """UID of an owner → collections and keys of its dependents."""
    _followed: dict[str, ResourceType] = field(factory=dict, init=False)

    def start(self) -> None:
        """Follow the objects of all types, and types that are defined later."""
        self._follow_new_types()
        self.listen(DEFINITIONS, self._on_definition)

    def _on_definition(self, _change: Change) -> None:
        self._steps.plan(self._follow_defined, "", _REACT_SECONDS)

    def _follow_defined(self, _key: str) -> None:
        self._follow_new_types()

    def _follow_new_types(self) -> None:
        for resource in self.server.state.types.storages():
            if resource.collection in self._followed or resource.collection in _LEFT_TO_OTHERS:
                continue
            self._followed[resource.collection] = resource
            for stored in self.server.store.collection(resource.collection).objects.values():
                self._note(resource, stored)
            self.listen(resource.collection, partial(self._on_change, resource))

    def _on_change(self, resource: ResourceType, change: Change) -> None:
        current, previous = change.current, change.previous
        metadata = current.fields["metadata"]
        before = previous.fields["metadata"].get("ownerReferences") if previous is not None else None
        after = metadata.get("ownerReferences") if change.type != "DELETED" else None
        if before is not after and before != after:
            for reference in before or ():
                self._forget(reference.get("uid") or "", (resource.collection, current.key))
        uid = metadata.get("uid") or ""
        if change.type == "DELETED":
            if uid in self._dependents:
                self._steps.plan(self._collect, uid, _REACT_SECONDS)
            return
        self._note(resource, current)

    def _note(self, resource: ResourceType, stored: StoredObject) -> None:
        metadata = stored.fields["metadata"]
        for reference in metadata.get("ownerReferences") or ():
            place = (resource.collection, stored.key)
            self._dependents.setdefault(reference.get("uid") or "", {})[place] = None
        if "deletionTimestamp" in metadata and metadata.get("finalizers"):
            self._steps.plan(self._finalize, f"{resource.collection} {stored.key}", _REACT_SECONDS)

    def _forget(self, uid: str, place: tuple[str, str]) -> None:
        places = self._dependents.get(uid, {})
        places.pop(place, None)
        if not places:
            self._dependents.pop(uid, None)

    def _stored(self, uid: str) -> list[tuple[ResourceType, StoredObject]]:
        found = []
        for collection, key in self._dependents.get(uid, ()):
            stored = self.server.store.get(collection, key)
            if stored is not None:
                found.append((self._followed[collection], stored))
        return found

    # --- steps ------------------------------------------------------------------------------------------------------

    def _collect(self, uid: str) -> None:
        """Delete what has no other owner than the one that is gone."""
        for resource, stored in self._stored(uid):
            others = [one for one in stored.fields["metadata"]["ownerReferences"] if one.get("uid") != uid]
            if others:
                self._set_owners(resource, stored, others)
            elif not is_terminating(stored.fields):
                delete(self.server.state, resource, stored, DeleteOptions(propagation="Background"))

    def _finalize(self, place: str) -> None:
        """Let an object go whose dependents are gone, or have been released."""
        collection, _space, key = place.partition(" ")
        stored = self.server.store.get(collection, key)
        if stored is None:
            return
        finalizers = stored.fields["metadata"].get("finalizers") or ()
        uid, resource = stored.fields["metadata"]["uid"], self._followed[collection]
        if ORPHAN in finalizers:
            for kind, dependent in self._stored(uid):
                owners = [one for one in dependent.fields["metadata"]["ownerReferences"] if one.get("uid") != uid]
                self._set_owners(kind, dependent, owners)
            drop_finalizer(self.server.state, resource, stored, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = 0
            for kind, dependent in self._stored(uid):
                references = dependent.fields["metadata"]["ownerReferences"]
                blocking += any(one.get("uid") == uid and one.get("blockOwnerDeletion") for one in references)
                if not is_terminating(dependent.fields):
                    delete(self.server.state, kind, dependent, DeleteOptions(propagation="Foreground"))
            if blocking and self._stored(uid):
                self._steps.plan(self._finalize, place, _REACT_SECONDS * 5)
            else:
                drop_finalizer(self.server.state, resource, stored, FOREGROUND)

    def _set_owners(self, resource: ResourceType, stored: StoredObject, owners: list[Json]) -> None:
        metadata = {**stored.fields["metadata"], "ownerReferences": owners}
        if not owners:
            del metadata["ownerReferences"]
        write_fields(self.server.state, resource, stored, metadata=metadata)
