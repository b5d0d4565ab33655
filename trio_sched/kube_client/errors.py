"""Errors of the client of an API server.

::

    KubeClientError
    ├── KubeconfigError      the settings cannot work; nothing was sent
    ├── WriteNotPermitted    this process may not write (any more); nothing was sent
    ├── CredentialsError     neither a token file nor an exec plugin gave credentials
    ├── ConnectionFailed     no (complete) response; says whether the request may have taken effect
    ├── UndecodableObject    an object without the shape of its kind; the others of its list are fine
    └── ApiError             the server refused; keeps its Status
        ├── Unauthorized (401) · Forbidden (403) · NotFound (404) · Conflict (409) · AlreadyExists (409)
        ├── Expired (410) · TooManyRequests (429)
        └── ServerError (5xx)
            └── NotAnApiServer     a web page, or a redirect to one
"""

import re

import msgspec
from msgspec import Struct

from trio_sched.errors import TrioSchedError
from trio_sched.go.text import printable


class KubeClientError(TrioSchedError):
    """A request that was not sent, got no response, or was refused."""


class KubeconfigError(KubeClientError):
    """The settings of the connection are unusable; the text is the one kube-scheduler prints."""


class WriteNotPermitted(KubeClientError):
    """The request was not sent, because this process must not change anything at the moment; the text says why."""


class CredentialsError(KubeClientError):
    """There are neither fresh credentials nor older valid ones."""


class ConnectionFailed(KubeClientError):
    """The request got no complete response; ``__cause__`` is the error of the socket.

    Args:
        server: its URL, ``https://10.0.0.1:6443``.
        problem: what happened, as a clause.
        may_have_reached_server: whether the server may have acted on the request. A bind that fails with this set must
            be looked up before it is tried again.
        timed_out: whether there was no response within the timeout, as opposed to a connection that broke.
        server_answers: whether it was silent while the server answered over another connection: the next try need not
            wait.
    """

    def __init__(
        self,
        server: str,
        problem: str,
        *,
        may_have_reached_server: bool = False,
        timed_out: bool = False,
        server_answers: bool = False,
    ) -> None:
        super().__init__(server, problem)
        self.server = server
        self.problem = problem
        self.may_have_reached_server = may_have_reached_server
        self.timed_out = timed_out
        self.server_answers = server_answers

    def __str__(self) -> str:
        return f"{self.server}: {self.problem}"


class ResponseTooLarge(ConnectionFailed):
    """The response is larger than is accepted; it would be so again."""


class UndecodableObject(KubeClientError):
    """One object of a list or watch does not have the shape of its kind; it is left out and the stream goes on.

    Args:
        resource: the plural name, ``pods``.
        namespace: empty if it is unknown or the kind is cluster-wide.
        name: empty if it could not be read.
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
    """``status.details``: the object and the fields that the refusal is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: int = 0


class ApiStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` Status: the result of a request."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


class ApiError(KubeClientError):
    """The server refused; the text is that of the server.

    Args:
        code: the HTTP status.
        reason: the machine-readable reason, ``Conflict``; may be empty.
        message: the server's text.
        details: which object, which fields, how long to wait.
    """

    retry_after_seconds: int = 0
    """When the same request may be sent again, by the header of the response; 0 if that was not said."""

    def __init__(self, *, code: int, reason: str, message: str, details: StatusDetails | None = None) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return self.message


class Unauthorized(ApiError):
    """401: the credentials were not accepted."""


class Forbidden(ApiError):
    """403: the user is not allowed to do this."""


class NotFound(ApiError):
    """404: no such object, or no such resource."""


class Conflict(ApiError):
    """409: the object was changed meanwhile, or its state does not allow the request."""


class AlreadyExists(ApiError):
    """409 on create: there is an object of that name."""


class Expired(ApiError):
    """410: the resource version or continue token is too old; list again."""


class TooManyRequests(ApiError):
    """429: the server is overloaded; try again later."""


class ServerError(ApiError):
    """5xx: the server failed; trying again may help."""


class NotAnApiServer(ServerError):
    """The response is a web page, or a redirect to one; the client has logged that, once for all requests."""


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


def error_from_reply(code: int, body: bytes, *, request: str, retry_after_seconds: int = 0) -> ApiError:
    """The error for a reply with *code*: from the Status in its body, or made from the code if there is none.

    Args:
        code: the HTTP status, 300 or more.
        body: of the reply.
        request: method and target, for the message if there is no Status.
        retry_after_seconds: what the header of that name says; 0 if there is none.
    """
    error = _error_from_body(code, body, request)
    error.retry_after_seconds = retry_after_seconds
    return error


def _error_from_body(code: int, body: bytes, request: str) -> ApiError:
    try:
        status = _status_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # a proxy's HTML page, or nothing at all
        status = ApiStatus()
    if status.kind == "Status":
        return error_from_status(status, code=code)
    reason, message = _SYNTHESISED.get(code, ("", f"the server responded with the status code {code}"))
    said = body[:200].decode("utf-8", "replace").strip()
    text = f"{message} ({request})" + (f": {said}" if said else "")
    return error_from_status(ApiStatus(message=text, reason=reason), code=code)


def error_from_html(code: int, *, request: str) -> NotAnApiServer:
    """The error for a web page in place of JSON, with which proxies ask for a login.

    Args:
        code: the HTTP status, which may be 200.
        request: method and URL.
    """
    message = f"{request}: the server answered with HTML instead of JSON: is it behind a login page?"
    return NotAnApiServer(code=code, reason="", message=message)


def error_from_redirect(code: int, location: str, *, request: str) -> NotAnApiServer:
    """The error for a redirect, which API servers do not send; it is not followed, since credentials would be, too.

    Args:
        code: the HTTP status.
        location: where it leads; shown without user, query and fragment, which may contain credentials.
        request: method and URL.
    """
    shown = re.sub(r"//[^/?#]*@", "//", re.split(r"[?#]", location, maxsplit=1)[0])
    message = f"{request}: the server redirects to {printable(shown)}: is it behind a login page?"
    return NotAnApiServer(code=code, reason="", message=message)


def is_html(content_type: bytes | None, body: bytes) -> bool:
    """Whether a response is a web page, by its type or its first character."""
    return b"html" in (content_type or b"").lower() or body[:100].lstrip()[:1] == b"<"
