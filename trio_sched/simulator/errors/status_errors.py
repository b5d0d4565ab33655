"""Errors in the exact shape of the API server: objects of kind ``Status``."""

from collections.abc import Iterable, Sequence

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.errors import TrioSchedError
from trio_sched.go.text import quote
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.validation.meta.field_problems import FieldProblem


class ApiError(TrioSchedError):
    """A request the API server refuses; ``status()`` is the body of the answer.

    Args:
        code: the HTTP status code.
        reason: the machine-readable reason, for example ``NotFound``; empty where Kubernetes gives none.
        message: the text, in Kubernetes' own words.
        details: ``kind``, ``name``, ``group``, ``causes`` and ``retryAfterSeconds`` as far as they apply.
    """

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def status(self) -> Json:
        """The ``Status`` object of this error."""
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status

    def body(self) -> bytes:
        """The ``Status`` object as JSON."""
        return msgspec.json.encode(self.status())


def _details(resource: ResourceType, name: str, *, kind: str = "") -> Json:
    details: Json = {}
    if name:
        details["name"] = name
    if resource.group:
        details["group"] = resource.group
    details["kind"] = kind or resource.plural
    return details


def not_found(resource: ResourceType, name: str) -> ApiError:
    """No object of that name exists."""
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def path_not_found() -> ApiError:
    """The version of the group that is asked has no such resource."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


class PageNotFound(ApiError):
    """Nothing is served under this path, not even another resource; servers up to 1.37 answer so in plain text."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found", {})


def already_exists(resource: ResourceType, name: str) -> ApiError:
    """An object of that name exists and may not be created again."""
    return ApiError(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', _details(resource, name))


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"  # kube's own words
)


def conflict(resource: ResourceType, name: str, why: str = MODIFIED, *, subresource: str = "") -> ApiError:
    """The request is fine, but not against the object as it is now."""
    path = f"{resource.plural}/{subresource}" if subresource else resource.plural
    shown = f"{path}.{resource.group}" if resource.group else path
    details = _details(resource, name, kind=path)
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {shown} "{name}": {why}', details)


def precondition_failed(resource: ResourceType, key: str, name: str, field: str, wanted: str, found: str) -> ApiError:
    """A precondition on uid or resourceVersion does not hold; the wording is that of the storage."""
    folder = f"{resource.group}/{resource.plural}" if resource.group else resource.plural
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{folder}/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}"
    )
    return conflict(resource, name, why)


def invalid(resource: ResourceType, name: str, problems: Sequence[FieldProblem]) -> ApiError:
    """The object breaks one or more rules."""
    texts = [f"{problem.field}: {problem.message}" for problem in problems]
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(resource, name, kind=resource.kind)
    details["causes"] = [problem.as_cause() for problem in problems]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {shown}', details)


def forbidden(resource: ResourceType, name: str, why: str, causes: Iterable[Json] = ()) -> ApiError:
    """Admission refuses the request."""
    details = _details(resource, name)
    listed = list(causes)
    if listed:
        details["causes"] = listed
    return ApiError(403, "Forbidden", f'{resource.qualified} "{name}" is forbidden: {why}', details)


class QuotaExceeded(ApiError):
    """There is no room for the object in a quota; it may be created when others are gone."""


def quota_exceeded(resource: ResourceType, name: str, why: str) -> QuotaExceeded:
    """A quota refuses a new object."""
    refusal = forbidden(resource, name, why)
    return QuotaExceeded(refusal.code, refusal.reason, refusal.message, refusal.details)


def no_version(text: str) -> ApiError:
    """What should be a version of an object is no number."""
    return ApiError(500, "", f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")


def bad_request(message: str) -> ApiError:
    """The request is malformed."""
    return ApiError(400, "BadRequest", message)


def no_containers() -> ApiError:
    """The request needs a container, and the pods of a simulated cluster have none."""
    return bad_request(
        "the pods of this cluster are pretended: no container runs, so there is none to log, attach to or connect with"
    )


def too_large(limit: int) -> ApiError:
    """The body is longer than bodies may be."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def internal_error(error: Exception) -> ApiError:
    """The server has failed."""
    message = f"Internal error occurred: {type(error).__name__}: {error}"
    return ApiError(500, "InternalError", message)


def expired(message: str) -> ApiError:
    """The requested version is older than the history that is kept."""
    return ApiError(410, "Expired", message)


def too_large_version(asked: int, current: int) -> ApiError:
    """The requested version is in the future."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return ApiError(504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {current}", details)


def method_not_allowed(resource: ResourceType) -> ApiError:
    """The resource is there, but not for this verb."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, _details(resource, ""))


def not_acceptable(offered: Sequence[str]) -> ApiError:
    """The client accepts no encoding that this server can write."""
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return ApiError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """The body is in an encoding this server does not read here."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", message)
