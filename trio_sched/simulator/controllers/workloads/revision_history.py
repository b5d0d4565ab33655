"""ControllerRevisions: the history of the pod templates of a StatefulSet or a DaemonSet."""

from typing import Final

from attrs import define

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.controlled_objects import ControlledObjects
from trio_sched.simulator.controllers.workloads.revisions import normal_template, template_hash
from trio_sched.simulator.controllers.workloads.workload_controller import WorkloadController, owner_reference
from trio_sched.simulator.registry.lifecycle import create, write_fields
from trio_sched.simulator.storage.object_store import StoredObject, copied

REVISION_LABEL: Final = "controller-revision-hash"
_HASH_LABEL: Final = "controller.kubernetes.io/hash"


def number_of(revision: StoredObject) -> int:
    """The number of a revision in the history."""
    return int(revision.fields.get("revision", 0))


def template_of(revision: StoredObject) -> Json:
    """The pod template of a revision."""
    data = revision.fields.get("data") or {}
    template: Json = (data.get("spec") or {}).get("template") or {}
    return {name: value for name, value in template.items() if name != "$patch"}


@define(eq=False)
class RevisionHistory:
    """The revisions of all objects of one kind.

    Args:
        controller: of the kind.
        revisions: by their owners.
        hash_label: the label of a revision that has the hash.
    """

    controller: WorkloadController
    revisions: ControlledObjects
    hash_label: str = _HASH_LABEL

    def of(self, owner: StoredObject) -> list[StoredObject]:
        """The revisions of *owner*, the oldest first; those that another owner left behind are adopted."""
        claimed = self.controller.claim(owner, owner.fields["spec"].get("selector"), self.revisions)
        return sorted(claimed, key=lambda one: (number_of(one), one.key))

    def latest(self, owner: StoredObject) -> StoredObject:
        """The revision of the pod template, which is created unless there is one.

        Raises:
            ApiError: the creation is refused.
        """
        known, template = self.of(owner), owner.fields["spec"]["template"]
        wanted = normal_template(template)
        equal = [one for one in known if normal_template(template_of(one)) == wanted]
        if equal and equal[-1] is known[-1]:
            return equal[-1]
        number = 1 + (number_of(known[-1]) if known else 0)
        state, resource = self.controller.server.state, self.controller.resource_of("apps/v1", "ControllerRevision")
        if equal:
            return write_fields(state, resource, equal[-1], revision=number)
        collisions, namespace = 0, owner.fields["metadata"]["namespace"]
        while True:
            digest = template_hash(template, collisions)
            name = f"{owner.fields['metadata']['name'][:223]}-{digest}"
            if state.store.get(resource.collection, f"{namespace}/{name}") is None:
                return self.restore(owner, name, digest, number)
            collisions += 1

    def restore(self, owner: StoredObject, name: str, digest: str, number: int) -> StoredObject:
        """Create the revision *name* of the pod template.

        Raises:
            ApiError: it is refused.
        """
        state, resource = self.controller.server.state, self.controller.resource_of("apps/v1", "ControllerRevision")
        template = copied(owner.fields["spec"]["template"])
        labels = {**((template.get("metadata") or {}).get("labels") or {}), self.hash_label: digest}
        fields: Json = {
            "metadata": {
                "name": name,
                "labels": labels,
                "ownerReferences": [owner_reference(self.controller.resource, owner)],
            },
            "data": {"spec": {"template": {**template, "$patch": "replace"}}},
            "revision": number,
        }
        return create(state, resource, owner.fields["metadata"]["namespace"], fields)

    def truncate(self, owner: StoredObject, current: set[str], in_use: set[str]) -> None:
        """Delete the oldest revisions beyond the limit of those that are not *current*, but none of those *in_use*."""
        limit = owner.fields["spec"].get("revisionHistoryLimit", 10)
        past = [one for one in self.of(owner) if one.fields["metadata"]["name"] not in current]
        unused = [one for one in past if one.fields["metadata"]["name"] not in in_use]
        resource = self.controller.resource_of("apps/v1", "ControllerRevision")
        for one in unused[: max(len(past) - limit, 0)]:
            self.controller.delete(resource, one)
