"""Requests that create, change and delete objects."""

from typing import Any

import msgspec

from trio_sched.simulator.applying import apply_configuration
from trio_sched.simulator.cluster_state import ClusterState
from trio_sched.simulator.lifecycle import DeleteOptions, change, create, delete, require
from trio_sched.simulator.messages import Request
from trio_sched.simulator.negotiation import media_type, read_body, read_object
from trio_sched.simulator.object_store import StoredObject
from trio_sched.simulator.other_versions import from_stored, to_stored
from trio_sched.simulator.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchError,
    json_patch,
    merge_patch,
)
from trio_sched.simulator.reading import predicate_of
from trio_sched.simulator.resource_types import ResourceType
from trio_sched.simulator.status_errors import (
    ApiError,
    FieldProblem,
    bad_request,
    invalid,
    not_found,
    unsupported_media_type,
)
from trio_sched.simulator.strategic_merge import StrategicMergeError, strategic_merge
from trio_sched.simulator.targets import Target
from trio_sched.simulator.validation.decoding import decode, decode_custom
from trio_sched.simulator.validation.shapes import fields_of, message_of_kind

Json = dict[str, Any]

_SHOWN_UNKNOWN = 20
"""As many errors the API server's strict decoder shows at most."""
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)

_decode = msgspec.json.Decoder().decode


def read_fields(resource: ResourceType, request: Request) -> Json:
    """The object in *request*'s body, in the shape it is stored in.

    Raises:
        ApiError: the body is unreadable or of another kind.
    """
    fields = read_object(request.body, request.headers.get("content-type", ""))
    kind, api_version = fields.get("kind"), fields.get("apiVersion")
    if kind not in (None, "", resource.kind) or api_version not in (None, "", resource.api_version):
        group, _, version = (api_version or "").rpartition("/")
        message = (
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
            if kind == resource.kind
            else f'{kind} in version "{version or group}" cannot be handled as a {resource.kind}'
        )
        raise bad_request(message)
    fields = understood(resource, fields, request)
    return to_stored(resource, fields)


def understood(resource: ResourceType, fields: Json, request: Request) -> Json:
    """*fields* without what *resource* does not have; the request's ``fieldValidation`` says what becomes of that.

    Raises:
        ApiError: 400, a value has the wrong type, or a field is not known and that is an error.
    """
    message = message_of_kind(resource.api_version, resource.kind)
    decoded = decode(fields, message) if fields_of(message) else decode_custom(fields)
    if not decoded.wrong and not decoded.unknown:
        return decoded.fields
    refused = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
    if decoded.wrong:
        raise bad_request(refused + decoded.wrong[0].decoder_text)
    texts = [one.decoder_text for one in decoded.unknown[:_SHOWN_UNKNOWN]]
    match request.parameters.get("fieldValidation", "Warn"):
        case "Strict":
            raise bad_request(f"{refused}strict decoding error: {', '.join(texts)}")
        case "Warn" | "":
            request.warnings += texts
    return decoded.fields


def create_object(state: ClusterState, target: Target, request: Request) -> StoredObject:
    """Carry out a POST to a collection."""
    fields = read_fields(target.resource, request)
    return create(state, target.resource, target.namespace, fields, dry_run=request.dry_run)


def update_object(state: ClusterState, target: Target, request: Request) -> tuple[int, StoredObject]:
    """Carry out a PUT; the answer is the HTTP status and the object."""
    resource = target.resource
    fields = read_fields(resource, request)
    metadata = fields.get("metadata") or {}
    if metadata.get("name") != target.name:
        if not metadata.get("name"):
            problem = FieldProblem("FieldValueRequired", "metadata.name", "Required value: name is required")
            raise invalid(resource, "", [problem])
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    if target.namespace and metadata.get("namespace") not in (None, "", target.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    stored = state.get(resource, target.namespace, target.name)
    if stored is None:
        if resource.collection not in _CREATED_BY_PUT or target.subresource:
            raise not_found(resource, target.name)
        return 201, create(state, resource, target.namespace, fields, dry_run=request.dry_run)
    return 200, change(state, resource, stored, fields, subresource=target.subresource, dry_run=request.dry_run)


_CREATED_BY_PUT = frozenset({"events", "leases.coordination.k8s.io", "endpoints", "limitranges", "services"})


def patch_object(state: ClusterState, target: Target, request: Request) -> tuple[int, StoredObject]:
    """Carry out a PATCH; the answer is the HTTP status and the object.

    Raises:
        ApiError: 404 no such object, 415 an unknown type of patch, 400 or 422 one that cannot be applied to the object.
    """
    resource = target.resource
    kind = media_type(request.headers.get("content-type", ""))
    if kind not in PATCH_TYPES or (kind == STRATEGIC_MERGE_PATCH and resource.custom):
        raise unsupported_media_type(PATCH_TYPES)
    patch = read_body(request.body, kind)
    if kind == APPLY_PATCH:
        manager = request.parameters.get("fieldManager")
        if not manager:
            problem = FieldProblem("FieldValueRequired", "fieldManager", "Required value: is required for apply patch")
            raise _invalid_patch_options(problem)
        if not isinstance(patch, dict):
            raise bad_request("the request's body is no object")
        return apply_configuration(state, target, patch, manager, force=request.flag("force"), dry_run=request.dry_run)
    stored = require(state, resource, target.namespace, target.name)
    current = _shown(resource, stored)
    fields = patched(resource, target.name, current, patch, kind)
    fields = understood(resource, fields, request)
    fields = to_stored(resource, fields)
    _check_identity(resource, target.name, fields)
    # A patch without a version is applied to the stored version, which was read in this same step.
    fields["metadata"].setdefault("resourceVersion", str(stored.version))
    return 200, change(state, resource, stored, fields, subresource=target.subresource, dry_run=request.dry_run)


def _shown(resource: ResourceType, stored: StoredObject) -> Json:
    """A copy of an object's fields in the shape of *resource*'s version, for a patch to work on."""
    copied: Json = _decode(b"{" + stored.tail)
    return from_stored(resource, copied)


def patched(resource: ResourceType, name: str, current: Json, patch: Any, kind: str) -> Json:
    """What *patch* of the media type *kind* makes of *current*.

    Raises:
        ApiError: 400 or 422, the patch cannot be applied.
    """
    try:
        if kind == JSON_PATCH:
            return json_patch(current, patch)
        if not isinstance(patch, dict):
            raise bad_request("a patch of this type is an object")
        if kind == MERGE_PATCH:
            merged: Json = merge_patch(current, patch)
            return merged
        return strategic_merge(current, patch, message_of_kind(resource.api_version, resource.kind))
    except StrategicMergeError as error:
        raise bad_request(str(error)) from error
    except PatchError as error:
        details = {"kind": resource.kind, "name": name} | ({"group": resource.group} if resource.group else {})
        shown = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
        raise ApiError(422, "Invalid", f'{shown} "{name}" is invalid: {error}', details) from error


def _check_identity(resource: ResourceType, name: str, fields: Json) -> None:
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict):
        raise bad_request("the patch leaves no metadata")
    if metadata.get("name") != name:
        message = f"the name of the object ({metadata.get('name') or ''}) does not match the name on the URL ({name})"
        raise bad_request(message)


def _invalid_patch_options(problem: FieldProblem) -> ApiError:
    details = {"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [problem.as_cause()]}
    message = f'PatchOptions.meta.k8s.io "" is invalid: {problem.field}: {problem.message}'
    return ApiError(422, "Invalid", message, details)


def delete_options(body: Any, request: Request) -> DeleteOptions:
    """The options of a deletion: from its body, else from the query.

    Raises:
        ApiError: 400, an option is no number.
    """
    given = body if isinstance(body, dict) else {}
    grace = given.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in request.parameters:
        grace = request.parameters["gracePeriodSeconds"]
    try:
        seconds = None if grace is None else int(grace)
    except (TypeError, ValueError):
        raise bad_request(f"gracePeriodSeconds is no number: {grace}") from None
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        grace_seconds=seconds,
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        dry_run=request.dry_run or given.get("dryRun") == ["All"],
    )


def read_delete_options(request: Request) -> DeleteOptions:
    """The options of a DELETE request."""
    body = read_body(request.body, request.headers.get("content-type", "")) if request.body else None
    return delete_options(body, request)


def delete_object(state: ClusterState, target: Target, request: Request) -> tuple[StoredObject, bool]:
    """Carry out a DELETE; the answer is the object, and whether it is gone."""
    resource = target.resource
    stored = require(state, resource, target.namespace, target.name)
    last = delete(state, resource, stored, read_delete_options(request))
    return last, state.get(resource, target.namespace, target.name) is None


def delete_collection(state: ClusterState, target: Target, request: Request) -> list[StoredObject]:
    """Carry out a DELETE of a collection: everything the selectors select."""
    resource, options = target.resource, read_delete_options(request)
    predicate = predicate_of(resource, request)
    found = list(state.store.collection(resource.collection).in_order(target.namespace))
    chosen = [stored for stored in found if predicate is None or predicate(stored.fields)]
    return [delete(state, resource, stored, options) for stored in chosen]
