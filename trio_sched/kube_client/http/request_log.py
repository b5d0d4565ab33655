"""Logs requests and responses from ``-v=6`` on, and never what is secret in them.

Level 6 has a line per response; 7 one per request with its headers, too; 8 the headers of responses and the bodies; 9
the request as a command instead.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

import msgspec
import trio
from attrs import define

from trio_sched.kube_client.http.http1 import Headers, Reply
from trio_sched.verbosity import V6, V7, V8, V9

log = logging.getLogger(__name__)

_MASK: Final = "<masked>"
_AUTH_TYPES: Final = frozenset({"bearer", "basic", "negotiate"})
_SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_SECRET_KEYS: Final = re.compile(r"token|password|secret|keydata|privatekey", re.I)
_USER: Final = re.compile(r"(?<=://)[^/@]*(?=@)")
_BODY_CHARACTERS: Final = {V8: 1024, V9: 10240}
_MAX_BODY_BYTES: Final = 256 * 1024
"""Larger bodies are not decoded, so that nothing can be masked in them; their size is logged."""


def begin(server: str, method: bytes, path: bytes, headers: bytes, body: bytes = b"") -> RequestRecord | None:
    """Log that a request is about to be sent; None if requests are not logged.

    Args:
        server: its URL; a path in it is left out.
        method: ``b"GET"``.
        path: all of it, with the query.
        headers: as lines.
        body: empty if there is none.
    """
    if not log.isEnabledFor(V6):
        return None
    origin = _USER.sub(_MASK, "/".join(server.split("/", 3)[:3]))
    record = RequestRecord(method.decode(), origin + path.decode("utf-8", "replace"), trio.current_time())
    lines = (line.partition(b": ") for line in headers.split(b"\r\n") if line)
    record.log_request([(name, value) for name, _, value in lines], body)
    return record


@define
class RequestRecord:
    """A request that is logged, for its response."""

    method: str
    url: str
    sent_at: float

    def log_request(self, headers: Headers, body: bytes) -> None:
        """Log the request as the verbosity in force demands."""
        if log.isEnabledFor(V9):
            lines = " ".join(f'-H "{name}: {value}"' for name, value in shown_headers(headers).items())
            log.log(V9, "Request", extra={"curlCommand": f"curl -v -X{self.method} {lines} '{self.url}'"})
        elif log.isEnabledFor(V7):
            fields = {"verb": self.method, "url": self.url, "headers": shown_headers(headers)}
            log.log(V8 if log.isEnabledFor(V8) else V7, "Request", extra=fields)
        if body:
            _log_body("Request Body", body)

    def answered(self, status: int, headers: Headers, body: bytes | None = None) -> None:
        """Log the response; *body* is None if it is not read yet."""
        level = next((level for level in (V9, V8, V7) if log.isEnabledFor(level)), V6)
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
        fields: dict[str, Any] = {"verb": self.method, "url": self.url} if level in (V6, V9) else {}
        fields["status"] = f"{status} {phrase}".rstrip()
        if level <= V8:
            fields["headers"] = shown_headers(headers)
        fields["milliseconds"] = self._milliseconds()
        log.log(level, "Response", extra=fields)
        if body:
            _log_body("Response Body", body)

    def replied(self, reply: Reply) -> None:
        """Log a response that is complete."""
        self.answered(reply.status, reply.headers, reply.body)

    def failed(self, problem: BaseException) -> None:
        """Log that there was no response."""
        fields = {"verb": self.method, "url": self.url, "status": "", "milliseconds": self._milliseconds()}
        log.log(V6, "Response", extra=fields | {"err": str(problem)})

    def _milliseconds(self) -> int:
        return int((trio.current_time() - self.sent_at) * 1000)


def shown_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """*headers* without credentials: of an authorization only the type is left."""
    shown: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name.lower() in _SECRET_HEADERS:
            kind = value.partition(" ")[0]
            value = f"{kind} {_MASK}" if kind.lower() in _AUTH_TYPES else _MASK
        shown[name] = value
    return shown


def _log_body(message: str, body: bytes) -> None:
    level = next((level for level in (V9, V8) if log.isEnabledFor(level)), None)
    if level is None:
        return
    text, limit = shown_body(body), _BODY_CHARACTERS[level]
    if len(text) > limit:
        text = f"{text[:limit]} [truncated {len(text) - limit} chars]"
    log.log(level, message, extra={"body": text})


def shown_body(body: bytes) -> str:
    """*body*, if it is a JSON document of moderate size, with everything masked that can be secret; else its size."""
    if len(body) > _MAX_BODY_BYTES:
        return f"<{len(body)} bytes>"
    try:
        return msgspec.json.encode(_masked(msgspec.json.decode(body))).decode()
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return f"<{len(body)} bytes, no JSON>"


def _masked(value: Any) -> Any:
    """A JSON value without credentials, contents of Secrets, and environments of containers."""
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    is_secret = value.get("kind") == "Secret"
    masked: dict[str, Any] = {}
    for key, inner in value.items():
        if (is_secret and key in ("data", "stringData")) or (inner and isinstance(inner, str) and _is_secret(key)):
            masked[key] = _MASK
        elif key == "env" and isinstance(inner, list):
            masked[key] = [_without_value(variable) for variable in inner]
        else:
            masked[key] = _masked(inner)
    return masked


def _is_secret(key: str) -> bool:
    return _SECRET_KEYS.search(key.replace("-", "").replace("_", "")) is not None and not key.endswith("Name")


def _without_value(variable: Any) -> Any:
    return variable | {"value": _MASK} if isinstance(variable, dict) and "value" in variable else _masked(variable)
