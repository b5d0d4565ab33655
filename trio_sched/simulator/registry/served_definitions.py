"""The resources that CustomResourceDefinitions name are served as long as the definitions are there."""

from typing import Final

from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.simulator.storage.resource_types import custom_types

DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
"""The collection of the definitions."""


def serve_definition(state: ClusterState, stored: StoredObject) -> None:
    """Serve the resources that a CustomResourceDefinition names, and set its conditions if it has none."""
    spec = stored.fields["spec"]
    state.types.remove(spec["group"], spec["names"]["plural"])
    for resource in custom_types(stored.fields):
        state.types.add(resource)
    if (stored.fields.get("status") or {}).get("conditions"):
        return  # of a dump, or of the one that is changed
    moment = state.timestamp()
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": moment}
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    status = {
        "conditions": conditions,
        "acceptedNames": spec["names"],
        "storedVersions": [version["name"] for version in spec.get("versions", ())],
    }
    fields = {**stored.fields, "metadata": dict(stored.fields["metadata"]), "status": status}
    state.store.replace(DEFINITIONS, stored, fields)


def withdraw_definition(state: ClusterState, stored: StoredObject) -> None:
    """Serve the resources of a definition that is gone no more, and remove their objects."""
    spec = stored.fields["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    collection = state.store.collection(f"{plural}.{group}")
    for found in list(collection.in_order()):
        state.store.delete(f"{plural}.{group}", found)
    state.types.remove(group, plural)
