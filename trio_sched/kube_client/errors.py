"""What can go wrong between us and an API server.

::

    KubeClientError
    ├── KubeconfigError      the settings cannot work; nothing was sent
    ├── CredentialsError     a token file or an exec plugin gave us nothing to identify ourselves with
    ├── ConnectionFailed     no (complete) answer; says whether the request may have taken effect
    ├── UndecodableObject    an object that does not look like its kind; the others of its list are fine
    └── ApiError             the server said no; keeps its Status
        ├── Unauthorized (401) · Forbidden (403) · NotFound (404) · Conflict (409) · AlreadyExists (409)
        ├── Expired (410) · TooManyRequests (429)
        └── ServerError (5xx)
"""

import msgspec
from msgspec import Struct

from trio_sched.errors import TrioSchedError


class KubeClientError(TrioSchedError):
    """Anything that kept us from an answer, or the answer from being yes."""


class KubeconfigError(KubeClientError):
    """The settings of the connection are unusable; the text is the one kube-scheduler prints."""


class CredentialsError(KubeClientError):
    """Neither a fresh credential nor an older good one is there."""


class ConnectionFailed(KubeClientError):
    """The request got no complete answer; ``__cause__`` is what the socket said.

    Args:
        server: the address as people know it, ``https://10.0.0.1:6443``.
        problem: what happened, as a clause.
        may_have_reached_server: whether the server may have acted on the request. A bind that fails with this set must
            be looked up before it is tried again.
        timed_out: whether the answer was waited for in vain, as opposed to a connection that broke.
    """

    def __init__(
        self, server: str, problem: str, *, may_have_reached_server: bool = False, timed_out: bool = False
    ) -> None:
        super().__init__(server, problem)
        self.server = server
        self.problem = problem
        self.may_have_reached_server = may_have_reached_server
        self.timed_out = timed_out

    def __str__(self) -> str:
        return f"{self.server}: {self.problem}"


class UndecodableObject(KubeClientError):
    """One object of a list or watch is not of the shape its kind has; it is left out and the stream goes on.

    Args:
        resource: the plural name, ``pods``.
        namespace: empty when unknown or cluster-wide.
        name: empty when not even that could be read.
        problem: what was expected and found, and at which path.
    """

    def __init__(self, resource: str, namespace: str, name: str, problem: str) -> None:
        super().__init__(resource, namespace, name, problem)
        self.resource = resource
        self.namespace = namespace
        self.name = name
        self.problem = problem

    def __str__(self) -> str:
        which = "/".join(part for part in (self.namespace, self.name) if part) or "without a readable name"
        return f"{self.resource} {which} left out: {self.problem}"


class StatusCause(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``details.causes``."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What the refusal was about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: int = 0


class ApiStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` Status: how an API server says what became of a request."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


class ApiError(KubeClientError):
    """The server refused; the text is its own.

    Args:
        code: the HTTP status.
        reason: Kubernetes' machine-readable word for it, ``Conflict``; may be empty.
        message: the server's sentence.
        details: which object, which fields, how long to wait.
    """

    def __init__(self, *, code: int, reason: str, message: str, details: StatusDetails | None = None) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return self.message


class Unauthorized(ApiError):
    """401: who are you? The credentials were not accepted."""


class Forbidden(ApiError):
    """403: known, but not allowed to."""


class NotFound(ApiError):
    """404: no such object, or no such resource."""


class Conflict(ApiError):
    """409: somebody else was faster, or the object is in the wrong state."""


class AlreadyExists(ApiError):
    """409 on create: the name is taken."""


class Expired(ApiError):
    """410: the resource version or continue token is too old; list afresh."""


class TooManyRequests(ApiError):
    """429: come back later."""


class ServerError(ApiError):
    """5xx: the server's own trouble; trying again may help."""


_BY_CODE: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    429: TooManyRequests,
}
_SYNTHESISED: dict[int, tuple[str, str]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", "the server does not allow access to the requested resource"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Expired", "the resource version requested is no longer available"),
    415: ("UnsupportedMediaType", "the server does not accept the media type of our request"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "an error on the server has prevented the request from succeeding"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted, but may still be processing it"),
}
_status_decoder = msgspec.json.Decoder(ApiStatus)


def error_from_status(status: ApiStatus, *, code: int = 0) -> ApiError:
    """The error for *status*; *code* is used where the Status carries none."""
    number = status.code or code
    kind: type[ApiError] = _BY_CODE.get(number, ServerError if number >= 500 else ApiError)
    if status.reason == "AlreadyExists":
        kind = AlreadyExists
    elif status.reason in ("Expired", "Gone"):
        kind = Expired
    message = status.message or status.reason or f"HTTP status {number}"
    return kind(code=number, reason=status.reason, message=message, details=status.details)


def error_from_reply(code: int, body: bytes, *, request: str) -> ApiError:
    """The error for a reply with *code*: its Status as it is, or one made from the code when it has none.

    Args:
        code: the HTTP status, 300 or more.
        body: the reply's body.
        request: method and target, to say in a made-up message what was refused.
    """
    try:
        status = _status_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a proxy's HTML page, or nothing at all
        status = ApiStatus()
    if status.kind == "Status":
        return error_from_status(status, code=code)
    reason, message = _SYNTHESISED.get(code, ("", f"the server responded with the status code {code}"))
    said = body[:200].decode("utf-8", "replace").strip()
    text = f"{message} ({request})" + (f": {said}" if said else "")
    return error_from_status(ApiStatus(message=text, reason=reason), code=code)
