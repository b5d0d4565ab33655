"""What the controllers of all kinds of workloads have in common."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import trio
from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.controllers.events import EventRecorder
from trio_sched.simulator.controllers.work_queue import WorkQueue
from trio_sched.simulator.controllers.workloads.controlled_objects import ControlledObjects
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.kubelets.pod_states import is_terminating
from trio_sched.simulator.label_matching import matches_labels
from trio_sched.simulator.registry.defaults import pod_defaults
from trio_sched.simulator.registry.lifecycle import DeleteOptions, create, delete, write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject, copied
from trio_sched.simulator.storage.resource_types import ResourceType

REACT_SECONDS = 0.1
"""How long a controller takes to notice a change."""
_LONGEST_POD_STEM = 253 - 5


def owner_reference(resource: ResourceType, owner: StoredObject) -> Json:
    """The reference to a controller."""
    metadata = owner.fields["metadata"]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def without_zeros(status: Json, *kept: str) -> Json:
    """*status* without empty fields, as Go writes it; those *kept* are always there."""
    return {name: value for name, value in status.items() if value or name in kept}


@define(eq=False)
class WorkloadController(Controller):
    """A controller of one kind: `sync` brings what an object asks for about.

    Args:
        pods: the cluster's pods by their controllers.
    """

    api_version: ClassVar[str]
    kind: ClassVar[str]
    component: ClassVar[str]
    """The source of its events."""
    retry_seconds: ClassVar[tuple[float, float]] = (0.005, 1000.0)
    """How long it waits before it tries again what was refused: the first time, and at most."""

    pods: ControlledObjects
    _waits: WorkQueue = field(factory=WorkQueue, init=False)
    """Steps that do not keep the cluster busy."""
    _refusals: dict[str, int] = field(factory=dict, init=False)
    """Key of an object → how often in a row something was refused that it asks for."""
    resource: ResourceType = field(init=False)
    """The kind."""
    _events: EventRecorder = field(init=False)

    @resource.default
    def _resource(self) -> ResourceType:
        return self.resource_of(self.api_version, self.kind)

    @_events.default
    def _recorder(self) -> EventRecorder:
        return EventRecorder(self.server, self.component)

    def __attrs_post_init__(self) -> None:
        self.pods.follow(self.kind, lambda key, _change: self.plan(key))
        self.pods.follow_orphans(self._on_orphan)

    @abstractmethod
    def sync(self, key: str) -> None:
        """Bring about what the object asks for, which may be gone.

        Raises:
            ApiError: something was refused; it is tried again later.
        """

    async def _work(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._steps.run)
            nursery.start_soon(self._waits.run)

    def start(self) -> None:
        """Look at all objects of the kind, and follow them."""
        for key in self.server.store.collection(self.resource.collection).objects:
            self.plan(key)
        self.listen(self.resource.collection, self._on_object)

    # --- for the kinds ----------------------------------------------------------------------------------------------

    def plan(self, key: str) -> None:
        """Look at an object soon."""
        self._steps.plan(self._take, key, REACT_SECONDS)

    def plan_after(self, key: str, seconds: float) -> None:
        """Look at an object when *seconds* have passed, which does not keep the cluster busy."""
        self._waits.plan(self._take, key, max(seconds, REACT_SECONDS))

    def resource_of(self, api_version: str, kind: str) -> ResourceType:
        """A built-in kind."""
        return self.server.state.types.built_in(api_version, kind)

    def stored(self, key: str) -> StoredObject | None:
        """The object of the kind under *key*, if there is one."""
        return self.server.store.get(self.resource.collection, key)

    def now(self) -> float:
        """The cluster's time as a Unix time, in whole seconds, as timestamps have it."""
        return float(int(self.server.state.now().timestamp()))

    def claim(
        self,
        owner: StoredObject,
        selector: Json | None,
        objects: ControlledObjects,
        *,
        considered: Callable[[Json], bool] | None = None,
        member: Callable[[Json], bool] | None = None,
    ) -> list[StoredObject]:
        """The objects that *owner* controls and selects: orphans are adopted, others are released.

        Args:
            owner: the controller.
            selector: which objects it selects by their labels.
            objects: of its namespace.
            considered: which of them are looked at; None: all.
            member: what else one has to be to be selected.
        """
        metadata = owner.fields["metadata"]
        leaves = is_terminating(owner.fields)

        def selects(one: StoredObject) -> bool:
            labels = one.fields["metadata"].get("labels") or {}
            return matches_labels(selector, labels) and (member is None or member(one.fields))

        mine = []
        for one in objects.of(metadata["uid"]):
            if considered is not None and not considered(one.fields):
                continue
            if selects(one):
                mine.append(one)
            elif not leaves:
                self.release(objects, one, metadata["uid"])
        if leaves:
            return mine
        for one in objects.orphans(metadata["namespace"]):
            if is_terminating(one.fields) or not one.fields["metadata"].get("labels"):
                continue
            if (considered is None or considered(one.fields)) and selects(one):
                mine.append(self.adopt(objects, one, owner))
        return mine

    def adopt(self, objects: ControlledObjects, one: StoredObject, owner: StoredObject) -> StoredObject:
        """Make *owner* the controller of an object."""
        return self._set_owners(objects, one, [*_owners(one), owner_reference(self.resource, owner)])

    def release(self, objects: ControlledObjects, one: StoredObject, uid: str) -> None:
        """Take the reference to the controller *uid* from an object."""
        self._set_owners(objects, one, [r for r in _owners(one) if r.get("uid") != uid])

    def create_pod(
        self, owner: StoredObject, template: Json, *, name: str = "", stem: str = "", checked: bool = False
    ) -> StoredObject:
        """Create a pod of *owner*.

        Args:
            owner: its controller.
            template: the pod template, whose metadata and spec become the pod's.
            name: of the pod; one is made up without it.
            stem: how a name that is made up begins; without it, as the owner's.
            checked: a pod of this template was created already.

        Raises:
            ApiError: it is refused.
        """
        metadata = owner.fields["metadata"]
        given = template.get("metadata") or {}
        made: Json = {part: given[part] for part in ("labels", "annotations", "finalizers") if given.get(part)}
        made["generateName"] = f"{(stem or metadata['name'])[:_LONGEST_POD_STEM]}-"
        if name:
            made["name"] = name
        made["ownerReferences"] = [owner_reference(self.resource, owner)]
        fields = copied({"metadata": made, "spec": template.get("spec") or {}})
        if checked:
            pod_defaults(fields)
        state = self.server.state
        try:
            pod = create(state, state.types.core("pods"), metadata["namespace"], fields, checked=checked)
        except ApiError as error:
            if metadata["namespace"] not in state.terminating:
                self.tell_of_pod(owner, "Create", name or made["generateName"], error)
            raise
        self.tell_of_pod(owner, "Create", pod.fields["metadata"]["name"])
        return pod

    def tell_of_pod(self, owner: StoredObject, verb: str, name: str, error: ApiError | None = None) -> None:
        """Write the event that a pod of *owner* was created or deleted, or why it was not."""
        if error is not None:
            doing = {"Create": "creating", "Delete": "deleting"}[verb]
            self.warn(owner, f"Failed{verb}", f"Error {doing}: {error.message}")
        else:
            self.tell(owner, f"Successful{verb}", f"{verb}d pod: {name}")

    def tell(self, about: StoredObject, reason: str, message: str) -> None:
        """Write an event of the type ``Normal`` about an object of the kind."""
        self._events.normal(self.resource, about, reason, message)

    def warn(self, about: StoredObject, reason: str, message: str) -> None:
        """Write an event of the type ``Warning`` about an object of the kind."""
        self._events.warning(self.resource, about, reason, message)

    def delete(self, resource: ResourceType, stored: StoredObject) -> bool:
        """Delete an object as it is stored now, unless it is being deleted; whether it was not."""
        current = self.server.store.get(resource.collection, stored.key)
        if current is None or is_terminating(current.fields):
            return False
        delete(self.server.state, resource, current, DeleteOptions())
        return True

    def delete_pod(self, owner: StoredObject, pod: StoredObject) -> None:
        """Delete a pod of *owner* unless it is being deleted."""
        if self.delete(self.server.state.types.core("pods"), pod):
            self.tell_of_pod(owner, "Delete", pod.fields["metadata"]["name"])

    def write_status(self, stored: StoredObject, status: Json, *, resource: ResourceType | None = None) -> None:
        """Write the status of an object unless it has it already."""
        kind = resource or self.resource
        current = self.server.store.get(kind.collection, stored.key)
        if current is not None and current.fields.get("status") != status:
            write_fields(self.server.state, kind, current, status=status)

    def write_spec(
        self, resource: ResourceType, stored: StoredObject, spec: Json, metadata: Json | None = None
    ) -> StoredObject:
        """Write the spec of an object, which is one more generation, and metadata with it."""
        current = self.server.store.get(resource.collection, stored.key) or stored
        written = dict(metadata or current.fields["metadata"])
        if spec != current.fields["spec"]:
            written["generation"] = written.get("generation", 0) + 1
        return write_fields(self.server.state, resource, current, metadata=written, spec=spec)

    # --- changes ----------------------------------------------------------------------------------------------------

    def _on_object(self, change: Change) -> None:
        if change.type == "DELETED":
            self._refusals.pop(change.current.key, None)
        self.plan(change.current.key)

    def _on_orphan(self, change: Change) -> None:
        labels = change.current.fields["metadata"].get("labels")
        if not labels:
            return
        namespace = change.current.fields["metadata"].get("namespace") or ""
        for stored in self.server.store.collection(self.resource.collection).in_order(namespace):
            if matches_labels(self.selector_of(stored.fields), labels):
                self.plan(stored.key)

    def selector_of(self, fields: Json) -> Json | None:
        """Which pods an object of the kind selects."""
        selector: Json | None = (fields.get("spec") or {}).get("selector")
        return selector

    def _set_owners(self, objects: ControlledObjects, one: StoredObject, owners: list[Json]) -> StoredObject:
        metadata = {**one.fields["metadata"], "ownerReferences": owners}
        if not owners:
            del metadata["ownerReferences"]
        return write_fields(self.server.state, objects.resource, one, metadata=metadata)

    def _take(self, key: str) -> None:
        try:
            self.sync(key)
        except ApiError:
            refused = self._refusals[key] = self._refusals.get(key, 0) + 1
            first, most = self.retry_seconds
            self.plan_after(key, min(first * 2.0 ** min(refused - 1, 30), most))
        else:
            self._refusals.pop(key, None)


def _owners(stored: StoredObject) -> list[Json]:
    return list(stored.fields["metadata"].get("ownerReferences") or ())
