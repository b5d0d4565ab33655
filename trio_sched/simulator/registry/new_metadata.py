"""What the server gives to new objects: names, UIDs and times, in namespaces that exist."""

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.errors.status_errors import bad_request, forbidden, not_found
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.resource_types import ResourceType

_NOT_TAKEN: Final = frozenset({"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"})
"""Metadata of a creator that are left out."""
NAMED_BY_THE_SERVER: Final = frozenset({"limitranges"})
"""Collections whose objects get a UUID for a name if they have none."""


def new_metadata(state: ClusterState, resource: ResourceType, namespace: str, fields: Json) -> Json:
    """The metadata of a new object, which become those of *fields*: with a name, a UID, and the time.

    Raises:
        ApiError: 400, the object has a version, or is of another namespace.
    """
    given = fields.get("metadata")
    metadata: Json = {}
    if isinstance(given, dict):
        metadata = {name: value for name, value in given.items() if value is not None and name not in _NOT_TAKEN}
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = state.new_name(metadata["generateName"])
    if not metadata.get("name") and resource.collection in NAMED_BY_THE_SERVER:
        metadata["name"] = state.new_uid()
    if namespace:
        if metadata.get("namespace") not in (None, "", namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    metadata["uid"] = state.new_uid()
    metadata["creationTimestamp"] = state.timestamp()
    if resource.counts_generations:
        metadata["generation"] = 1
    # First of all fields, as the API server writes it.
    rest = dict(fields)
    for name in ("metadata", "kind", "apiVersion"):
        rest.pop(name, None)
    fields.clear()
    fields["metadata"] = metadata
    fields.update(rest)
    return metadata


def check_namespace(state: ClusterState, resource: ResourceType, namespace: str, name: str) -> None:
    """Check that the namespace of a new object can take it.

    Raises:
        ApiError: 404, it does not exist; 403, it is being deleted.
    """
    if state.store.get("namespaces", namespace) is None:
        raise not_found(state.types.core("namespaces"), namespace)
    if namespace in state.terminating:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise forbidden(resource, name, why, [cause])
