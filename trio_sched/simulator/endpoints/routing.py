"""From the method and path of a request to its target."""

from trio_sched.simulator.endpoints.subresources.table import SUBRESOURCES
from trio_sched.simulator.errors.status_errors import PageNotFound, method_not_allowed, path_not_found
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.storage.resource_types import ResourceType, TypeRegistry

_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACES = TypeRegistry().core("namespaces").subresources


def resolve(types: TypeRegistry, method: str, path: str) -> Target:
    """What a request for a resource is about.

    Raises:
        ApiError: 404, nothing is served there; 405, not with this method.
    """
    parts = path.split("/")
    if parts[-1] == "":
        parts.pop()
    # ["", "api", version, …] or ["", "apis", group, version, …]
    if len(parts) > 3 and parts[1] == "api":
        group, version, rest = "", parts[2], parts[3:]
    elif len(parts) > 4 and parts[1] == "apis":
        group, version, rest = parts[2], parts[3], parts[4:]
    else:
        raise PageNotFound()
    namespace = ""
    # /namespaces/<name>/<subresource> is about the namespace, /namespaces/<name>/<plural> about what is in it.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
    resource = types.find(group, version, rest[0])
    if resource is None and not types.serves_version(group, version):
        raise PageNotFound()
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise path_not_found()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if resource.namespaced and not namespace and name:
        raise path_not_found()
    return Target(resource, _verb(resource, method, name, subresource, namespace), namespace, name, subresource)


def _verb(resource: ResourceType, method: str, name: str, subresource: str, namespace: str) -> str:
    if subresource:
        if subresource not in resource.subresources:
            raise path_not_found()
        verbs = SUBRESOURCES[subresource].verbs
    else:
        verbs = _OBJECT_VERBS if name else _COLLECTION_VERBS
    verb = verbs.get(method)
    if verb is None or (verb == "create" and resource.namespaced and not namespace):
        raise method_not_allowed(resource)
    return verb
