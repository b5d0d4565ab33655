"""Just enough of the older OpenAPI document for kubectl to send a ``List``, in the protobuf form that it requires.

Before it creates from a file kubectl reads which operations take ``fieldValidation``; for lists it reads that here,
under the kind Namespace, whatever the list holds.

Source: the field numbers of ``openapi.v2.Document`` (gnostic).
"""

from trio_sched.simulator.storage.kubernetes_versions import git_version
from trio_sched.simulator.storage.resource_types import ResourceType, TypeRegistry

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_DOCUMENT_SWAGGER, _DOCUMENT_INFO, _DOCUMENT_PATHS = 1, 2, 8
_INFO_TITLE, _INFO_VERSION = 1, 2
_PATHS_PATH = 2
_NAMED_NAME, _NAMED_VALUE = 1, 2
_PATH_ITEM_PATCH = 8
_OPERATION_PARAMETERS, _OPERATION_EXTENSION = 8, 13
_ITEM_PARAMETER, _PARAMETER_NON_BODY, _NON_BODY_QUERY = 1, 2, 3
_QUERY_IN, _QUERY_NAME = 2, 4
_ANY_YAML = 2


def openapi_v2_document(types: TypeRegistry) -> bytes:
    """The answer to ``/openapi/v2``: the patch operation of every resource."""
    paths = b"".join(_field(_PATHS_PATH, _path(resource)) for resource in types)
    info = _field(_INFO_TITLE, b"Kubernetes") + _field(_INFO_VERSION, git_version(types.minor).encode())
    return _field(_DOCUMENT_SWAGGER, b"2.0") + _field(_DOCUMENT_INFO, info) + _field(_DOCUMENT_PATHS, paths)


def _path(resource: ResourceType) -> bytes:
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    inside = "/namespaces/{namespace}" if resource.namespaced else ""
    kind = f'group: "{resource.group}"\nkind: {resource.kind}\nversion: {resource.version}\n'
    extension = _named("x-kubernetes-group-version-kind", _field(_ANY_YAML, kind.encode()))
    query = _field(_QUERY_IN, b"query") + _field(_QUERY_NAME, b"fieldValidation")
    parameter = _field(_ITEM_PARAMETER, _field(_PARAMETER_NON_BODY, _field(_NON_BODY_QUERY, query)))
    operation = _field(_OPERATION_PARAMETERS, parameter) + _field(_OPERATION_EXTENSION, extension)
    return _named(f"{base}{inside}/{resource.plural}/{{name}}", _field(_PATH_ITEM_PATCH, operation))


def _named(name: str, value: bytes) -> bytes:
    return _field(_NAMED_NAME, name.encode()) + _field(_NAMED_VALUE, value)


def _field(number: int, value: bytes) -> bytes:
    """A length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)
