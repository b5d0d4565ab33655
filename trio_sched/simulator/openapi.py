"""Just enough OpenAPI for kubectl: which operations take ``fieldValidation``.

kubectl reads it before it creates or applies. There are no schemas, so it builds patches from those compiled in.
"""

from typing import Any

from trio_sched.simulator.resource_types import ResourceType, TypeRegistry

Json = dict[str, Any]

_INFO = {"title": "Kubernetes", "version": "v1.36.2"}


def openapi_index(types: TypeRegistry) -> Json:
    """The answer to ``/openapi/v3``."""
    paths = {}
    for group, versions in types.groups().items():
        for version in versions:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            # kubectl caches the document as long as the hash stays the same.
            digest = f"{sum(1 for _ in types):X}"
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
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": {}}}


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
