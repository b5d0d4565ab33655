"""Requests that create, change and delete objects."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.go.text import shortened
from trio_sched.simulator.conversion.other_versions import as_checked, as_stored, from_stored
from trio_sched.simulator.endpoints.duplicate_fields import duplicate_fields
from trio_sched.simulator.endpoints.messages import Request
from trio_sched.simulator.endpoints.negotiation import (
    JSON_TYPE,
    TOO_DEEP,
    YAML_TYPE,
    is_too_deep,
    mapping,
    media_type,
    read_body,
    read_object,
)
from trio_sched.simulator.endpoints.patches.applying import apply_configuration, note_update, unusable
from trio_sched.simulator.endpoints.patches.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchError,
    json_patch,
    merge_patch,
)
from trio_sched.simulator.endpoints.patches.strategic_merge import StrategicMergeError, strategic_merge
from trio_sched.simulator.endpoints.reading import predicate_of
from trio_sched.simulator.errors.not_simulated import notice
from trio_sched.simulator.errors.status_errors import ApiError, bad_request, invalid, not_found, unsupported_media_type
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.registry.lifecycle import DeleteOptions, change, create, delete, require
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.validation.apiextensions.custom_schemas import decode_custom
from trio_sched.simulator.validation.meta.decoding import Decoded, decode
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value
from trio_sched.simulator.validation.meta.shapes import fields_of

_SHOWN_CHARACTERS = 1000
_SHOWN_UNKNOWN = 20
"""As many errors the API server's strict decoder shows at most."""
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)

_decode = msgspec.json.Decoder().decode


def read_fields(resource: ResourceType, request: Request, minor: int) -> Json:
    """The object in *request*'s body, in the shape it is stored in.

    Raises:
        ApiError: the body is unreadable or of another kind.
    """
    fields = read_object(request.body, request.headers.get("content-type", ""))
    _check_kind(resource, fields)
    if request.parameters.get("fieldValidation") in ("Strict", "Warn"):  # only these are worth a second reading
        _check_duplicates(resource, request)
    fields = understood(resource, as_checked(resource, fields), request, minor)
    return as_stored(resource, fields)


def _check_duplicates(resource: ResourceType, request: Request) -> None:
    content_type = media_type(request.headers.get("content-type", "")) or JSON_TYPE
    if content_type not in (JSON_TYPE, YAML_TYPE):
        return
    found, text = duplicate_fields(request.body, content_type)
    if found and request.parameters["fieldValidation"] == "Strict":
        raise _unreadable(resource, f"strict decoding error: {text}")
    request.warnings += found


def _unreadable(resource: ResourceType, why: str) -> ApiError:
    return bad_request(f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}')


def _check_kind(resource: ResourceType, fields: Json) -> None:
    kind, api_version = fields.get("kind"), fields.get("apiVersion")
    if kind == resource.kind and api_version == resource.api_version:
        return
    for name, value in (("kind", kind), ("apiVersion", api_version)):
        if not isinstance(value, str | None):
            raise bad_request(f"{name} must be a text, not {shortened(repr(value))}")
    if kind not in (None, "", resource.kind) or api_version not in (None, "", resource.api_version):
        group, _, version = (api_version or "").rpartition("/")
        message = (
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
            if kind == resource.kind
            else f'{kind} in version "{version or group}" cannot be handled as a {resource.kind}'
        )
        raise bad_request(message)


def _decoded(resource: ResourceType, fields: Json, minor: int) -> Decoded:
    """*fields* as those of an object of *resource*, to a server of the *minor* version."""
    known = fields_of(resource.message)
    return decode(fields, resource.message, minor) if known else decode_custom(fields, resource.schema)


def understood(
    resource: ResourceType,
    fields: Json,
    request: Request,
    minor: int,
    refusal: Callable[[str], ApiError] | None = None,
) -> Json:
    """*fields* without what *resource* does not have in the *minor* version of the server.

    The request's ``fieldValidation`` says what becomes of the rest.

    Raises:
        ApiError: 400 or as *refusal* says, a value has the wrong type, or a field is not known and that is an error.
    """
    decoded = _decoded(resource, fields, minor)
    if not decoded.wrong and not decoded.unknown:
        return decoded.fields
    if refusal is None:
        refusal = partial(_unreadable, resource)
    if decoded.wrong:
        raise refusal(decoded.wrong[0].decoder_text)
    texts = [one.decoder_text for one in decoded.unknown[:_SHOWN_UNKNOWN]]
    match request.parameters.get("fieldValidation", "Warn"):
        case "Strict":
            raise refusal(f"strict decoding error: {', '.join(texts)}")
        case "Warn" | "":
            request.warnings += texts
    return decoded.fields


def create_object(state: ClusterState, target: Target, request: Request) -> StoredObject:
    """Carry out a POST to a collection."""
    fields = read_fields(target.resource, request, state.types.minor)
    told = notice(target.resource.kind)
    if told is not None:
        request.warnings.append(told)
    return create(state, target.resource, target.namespace, fields, dry_run=request.dry_run)


def update_object(state: ClusterState, target: Target, request: Request) -> tuple[int, StoredObject]:
    """Carry out a PUT; the answer is the HTTP status and the object."""
    resource = target.resource
    fields = read_fields(resource, request, state.types.minor)
    metadata = fields.get("metadata") or {}
    if metadata.get("name") != target.name:
        if not metadata.get("name"):
            raise bad_request(
                f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
            )
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    _check_own_namespace(target, metadata)
    stored = state.get(resource, target.namespace, target.name)
    if stored is None:
        if resource.collection not in _CREATED_BY_PUT or target.subresource:
            raise not_found(resource, target.name)
        return 201, create(state, resource, target.namespace, fields, dry_run=request.dry_run)
    note_update(state, target, stored, fields, request, target.subresource)
    return 200, change(state, resource, stored, fields, subresource=target.subresource, dry_run=request.dry_run)


_CREATED_BY_PUT = frozenset({"events", "leases.coordination.k8s.io", "endpoints", "limitranges", "services"})


def patch_object(state: ClusterState, target: Target, request: Request) -> tuple[int, StoredObject]:
    """Carry out a PATCH; the answer is the HTTP status and the object.

    Raises:
        ApiError: 404 no such object, 415 an unknown type of patch, 400 or 422 one that cannot be applied to the object.
    """
    resource = target.resource
    kind = patch_type(resource, request.headers.get("content-type", ""))
    patch = read_body(request.body, kind)
    if kind == APPLY_PATCH:
        manager = request.parameters.get("fieldManager")
        if not manager:
            problem = FieldProblem("FieldValueRequired", "fieldManager", "Required value: is required for apply patch")
            raise _invalid_patch_options(problem)
        if not isinstance(patch, dict):
            raise bad_request("the request's body is no object")
        patch = as_stored(resource, _applied(target, patch, state.types.minor))
        return apply_configuration(state, target, patch, manager, force=request.flag("force"), dry_run=request.dry_run)
    stored = require(state, resource, target.namespace, target.name)
    current = _shown(resource, stored)
    fields = patched(resource, target.name, current, patch, kind)
    if kind != STRATEGIC_MERGE_PATCH:
        _check_patched_kind(resource, fields)
    minor = state.types.minor
    fields = understood(resource, as_checked(resource, fields), request, minor, partial(_unfit_patch, fields))
    fields = as_stored(resource, fields)
    _check_identity(target, fields)
    if fields["metadata"].get("uid") not in (None, "", stored.fields["metadata"]["uid"]):
        immutable = bad_value("metadata.uid", fields["metadata"]["uid"], "field is immutable")
        raise invalid(resource, target.name, [immutable])
    # A patch without a version is applied to the stored version, which was read in this same step.
    fields["metadata"].setdefault("resourceVersion", str(stored.version))
    note_update(state, target, stored, fields, request, target.subresource)
    return 200, change(state, resource, stored, fields, subresource=target.subresource, dry_run=request.dry_run)


def _applied(target: Target, configuration: Json, minor: int) -> Json:
    """*configuration* as it was understood; unlike elsewhere, fields that are not known are refused.

    Raises:
        ApiError: 400, it is of another kind; 500, a value has the wrong type, or a field is not known.
    """
    resource = target.resource
    kind, api_version = configuration.get("kind"), configuration.get("apiVersion")
    if (kind, api_version) != (resource.kind, resource.api_version):
        group, _, version = str(api_version or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={shortened(str(kind or ''))}")
    decoded = _decoded(resource, as_checked(resource, configuration), minor)
    for wrong in decoded.wrong:
        raise unusable(target, f".{wrong.path}: {wrong.text}")
    for unknown in decoded.unknown:
        raise unusable(target, f".{unknown.path}: field not declared in schema")
    return decoded.fields


def patch_type(resource: ResourceType, content_type: str) -> str:
    """The media type of a patch for objects of *resource*.

    Raises:
        ApiError: 415, it is none.
    """
    kind = media_type(content_type)
    if kind not in PATCH_TYPES or (kind == STRATEGIC_MERGE_PATCH and resource.custom):
        raise unsupported_media_type(
            [one for one in PATCH_TYPES if one != STRATEGIC_MERGE_PATCH or not resource.custom]
        )
    return kind


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
            outcome = json_patch(current, patch)
            if is_too_deep(outcome):
                raise bad_request(TOO_DEEP)
            return outcome
        if not isinstance(patch, dict):
            raise bad_request("a patch of this type is an object")
        if kind == MERGE_PATCH:
            merged: Json = merge_patch(current, patch)
            return merged
        return strategic_merge(current, patch, resource.message)
    except RecursionError:
        raise bad_request(TOO_DEEP) from None
    except StrategicMergeError as error:
        raise ApiError(error.code, "BadRequest" if error.code == 400 else "", str(error)) from error
    except PatchError as error:
        details = {"kind": resource.kind, "name": name} | ({"group": resource.group} if resource.group else {})
        shown = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
        raise ApiError(422, "Invalid", f'{shown} "{name}" is invalid: {error}', details) from error


def _check_patched_kind(resource: ResourceType, fields: Json) -> None:
    kind, api_version = fields.get("kind", resource.kind), fields.get("apiVersion", resource.api_version)
    if (kind, api_version) != (resource.kind, resource.api_version):
        raise _unfit_patch(fields, f'no kind "{kind}" is registered for version "{api_version}"')


def _unfit_patch(fields: Json, why: str) -> ApiError:
    """A patch makes *fields* of the object, which are none of its kind."""
    problem = bad_value("patch", shortened(msgspec.json.encode(fields).decode(), _SHOWN_CHARACTERS), why)
    details = {"causes": [problem.as_cause()]}
    return ApiError(422, "Invalid", f' "" is invalid: patch: {problem.message}', details)


def _check_identity(target: Target, fields: Json) -> None:
    metadata, name = fields.get("metadata"), target.name
    if not isinstance(metadata, dict):
        raise bad_request("the patch leaves no metadata")
    if metadata.get("name") != name:
        message = f"the name of the object ({metadata.get('name') or ''}) does not match the name on the URL ({name})"
        raise bad_request(message)
    _check_own_namespace(target, metadata)


def _check_own_namespace(target: Target, metadata: Json) -> None:
    if target.namespace and metadata.get("namespace") not in (None, "", target.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


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
        seconds = None if grace is None else min(int(grace), _LONGEST_GRACE_SECONDS)
    except (TypeError, ValueError, OverflowError):
        raise bad_request(f"gracePeriodSeconds is no number: {shortened(repr(grace))}") from None
    preconditions = mapping(given, "preconditions")
    return DeleteOptions(
        grace_seconds=seconds,
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        propagation=_propagation(given, request),
        dry_run=request.dry_run or given.get("dryRun") == ["All"],
    )


_LONGEST_GRACE_SECONDS = 100 * 365 * 86_400
"""Later than that nothing is compared with; times have an end."""
_PROPAGATIONS = ("Background", "Foreground", "Orphan")


def _propagation(given: Json, request: Request) -> str | None:
    policy = given.get("propagationPolicy") or request.parameters.get("propagationPolicy")
    orphans = given.get("orphanDependents")
    if orphans is None and "orphanDependents" in request.parameters:
        orphans = request.flag("orphanDependents")
    if policy is None:
        return None if orphans is None else "Orphan" if orphans else "Background"
    if policy in _PROPAGATIONS:
        return str(policy)
    supported = ", ".join(f'"{one}"' for one in (*_PROPAGATIONS, "nil"))
    detail = f"Unsupported value: {policy!r}: supported values: {supported}"
    problem = FieldProblem("FieldValueNotSupported", "propagationPolicy", detail)
    details = {"group": "meta.k8s.io", "kind": "DeleteOptions", "causes": [problem.as_cause()]}
    message = f'DeleteOptions.meta.k8s.io "" is invalid: {problem.field}: {problem.message}'
    raise ApiError(422, "Invalid", message, details)


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
