"""Refusals as Kubernetes' Status objects, in the form that the client accepts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from trio_sched.config.dump import write_yaml
from trio_sched.daemon.serving.messages import NOSNIFF, Request, Response
from trio_sched.daemon.serving.negotiation import Accepted, negotiate
from trio_sched.go.text import json_text, quote

JSON_TYPE: Final = "application/json"
YAML_TYPE: Final = "application/yaml"
PROTOBUF_TYPE: Final = "application/vnd.kubernetes.protobuf"
_FORMS: Final = (JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE)
_PROTOBUF_MAGIC: Final = b"k8s\x00"


def unauthorized(request: Request) -> Response:
    """401, the same for every reason: who presents a bad credential learns nothing from it."""
    response = status_response(request, 401, "Unauthorized", "Unauthorized")
    response.closes = True
    return response


def forbidden(request: Request, *, user: str, verb: str, path: str, reason: str) -> Response:
    """403 for *user*, with what the authorizer said if it said anything."""
    message = f"forbidden: {without_markup(f'User {quote(user)} cannot {verb} path {quote(path)}')}"
    response = status_response(request, 403, "Forbidden", f"{message}: {reason}" if reason else message, details={})
    response.headers.append(NOSNIFF)
    return response


def not_acceptable(request: Request, offered: Sequence[str]) -> Response:
    """406: the client accepts none of *offered*."""
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return status_response(request, 406, "NotAcceptable", message, forms=offered)


def without_markup(text: str) -> str:
    """*text* with what could be taken for HTML escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def status_response(
    request: Request,
    code: int,
    reason: str,
    message: str,
    *,
    details: dict[str, Any] | None = None,
    forms: Sequence[str] = _FORMS,
) -> Response:
    """A failure as a Status; as indented JSON if the client accepts none of *forms*."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details is not None:
        status["details"] = details
    status["code"] = code
    accepted = negotiate(request, forms)
    if accepted is None:
        return Response(status=code, headers=[("content-type", JSON_TYPE)], body=indented_json(status))
    return Response(status=code, headers=[("content-type", accepted.media_type)], body=encode(status, accepted))


def encode(value: dict[str, Any], accepted: Accepted) -> bytes:
    """*value* in the form that was *accepted*; protobuf only if it is a Status."""
    match accepted.media_type:
        case "application/yaml":
            return write_yaml(value).encode()
        case "application/vnd.kubernetes.protobuf":
            return _status_as_protobuf(value)
        case _:
            return indented_json(value) if accepted.pretty else json_text(value).encode() + b"\n"


def indented_json(value: Any) -> bytes:
    """*value* as Go's ``json.MarshalIndent`` writes it."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace")


def _status_as_protobuf(status: dict[str, Any]) -> bytes:
    """A Status in the envelope of Kubernetes; source of the numbers: ``generated.proto`` of meta/v1 and runtime."""
    metadata = _field(1, b"") + _field(2, b"") + _field(3, b"")
    body = _field(1, metadata)
    for number, key in ((2, "status"), (3, "message"), (4, "reason")):
        body += _field(number, status[key].encode())
    if "details" in status:
        details = _field(1, b"") + _field(2, b"") + _field(3, b"") + _varint(5 << 3) + _varint(0) + _field(6, b"")
        body += _field(5, details)
    body += _varint(6 << 3) + _varint(status["code"])
    type_meta = _field(1, status["apiVersion"].encode()) + _field(2, status["kind"].encode())
    return _PROTOBUF_MAGIC + _field(1, type_meta) + _field(2, body) + _field(3, b"") + _field(4, b"")


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
