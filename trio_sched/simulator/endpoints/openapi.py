"""OpenAPI for kubectl: which operations take ``fieldValidation``, and the fields of every kind.

kubectl reads it before it creates or applies, and for ``explain``; only custom resources have descriptions.
"""

from functools import cache
from typing import Final
from zlib import crc32

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.simulator.storage.kubernetes_versions import git_version
from trio_sched.simulator.storage.resource_types import ResourceType, TypeRegistry
from trio_sched.simulator.validation.meta.shapes import fields_of, raw_table


def openapi_index(types: TypeRegistry) -> Json:
    """The answer to ``/openapi/v3``."""
    paths = {}
    custom = [(one.collection, one.version, one.schema.keywords) for one in types if one.schema is not None]
    # kubectl caches the document as long as the hash stays the same.
    digest = f"{types.minor:X}-{sum(1 for _ in types):X}-{crc32(msgspec.json.encode(custom)):X}"
    for group, versions in types.groups().items():
        for version in versions:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def openapi_document(types: TypeRegistry, group: str, version: str) -> Json | None:
    """The answer to ``/openapi/v3/api/v1`` and the like; ``None`` if the version is not served."""
    resources = types.groups().get(group, {}).get(version)
    if resources is None:
        return None
    paths: Json = {}
    for resource in resources:
        base = f"/apis/{group}/{version}" if group else f"/api/{version}"
        if resource.namespaced:
            base += "/namespaces/{namespace}"
        paths[f"{base}/{resource.plural}"] = {"post": _operation(resource, "post")}
        paths[f"{base}/{resource.plural}/{{name}}"] = {
            "put": _operation(resource, "put"),
            "patch": _operation(resource, "patch"),
        }
    info = {"title": "Kubernetes", "version": git_version(types.minor)}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": _schemas(resources)}}


_SCALARS: Final[dict[str, Json]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "micro_time": {"type": "string", "format": "date-time"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "int_or_string": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "raw": {"type": "object"},
}


def _schemas(resources: list[ResourceType]) -> Json:
    """The schemas of *resources* and of all that they are made of, by name."""
    schemas: Json = {}
    for resource in resources:
        message = resource.message
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        if resource.custom:
            for needed in _reachable(_METADATA):
                schemas.setdefault(needed, _schema(needed))
            schemas[message] = {**_custom_schema(resource), "x-kubernetes-group-version-kind": [kind]}
            continue
        for needed in _reachable(message):
            schemas.setdefault(needed, _schema(needed))
        schemas[message] = {**_schema(message), "x-kubernetes-group-version-kind": [kind]}
    return schemas


@cache
def _reachable(message: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = [message]
    while waiting:
        one = waiting.pop()
        if one in raw_table() and one not in found:
            found.add(one)
            waiting += (field.type.split()[-1] for field in fields_of(one).values())
    return frozenset(found)


@cache
def _schema(message: str) -> Json:
    properties = {}
    for name, field in fields_of(message).items():
        shown = dict(_type(field.type))
        if field.patch_strategy:
            shown["x-kubernetes-patch-strategy"] = field.patch_strategy
        if field.merge_key:
            shown["x-kubernetes-patch-merge-key"] = field.merge_key
        properties[name] = shown
    return {"type": "object", "properties": properties}


_METADATA: Final = "meta.v1.ObjectMeta"


def _custom_schema(resource: ResourceType) -> Json:
    given: Json = {"type": "object"} if resource.schema is None else resource.schema.keywords
    texts = {name: _SCALARS["string"] for name in ("apiVersion", "kind")}
    return {**given, "properties": {**(given.get("properties") or {}), **texts, "metadata": _type(_METADATA)}}


def _type(type_: str) -> Json:
    container, _, inner = type_.partition(" ")
    if container == "list":
        return {"type": "array", "items": _type(inner)}
    if container == "map":
        return {"type": "object", "additionalProperties": _type(inner)}
    return _SCALARS.get(type_) or {"allOf": [{"$ref": f"#/components/schemas/{type_}"}]}


def _operation(resource: ResourceType, action: str) -> Json:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
    }
