"""Bodies in protobuf, as ``kubectl create namespace`` and its like send them, decoded to JSON.

Only read, never written: every client that sends protobuf takes JSON for an answer.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from struct import error as struct_error
from struct import unpack
from typing import Any

from trio_sched.objects.timestamps import format_time
from trio_sched.simulator.errors.status_errors import bad_request
from trio_sched.simulator.validation.meta.shapes import message_of_kind, raw_table

PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TWO_TO_63, _TWO_TO_64 = 1 << 63, 1 << 64


class _Malformed(ValueError):
    """The bytes are no protobuf message."""


@cache
def _numbered_fields(message: str) -> Mapping[int, tuple[str, str]]:
    """Number → name and type of the fields of *message*."""
    return {number: (name, type_) for name, (number, type_, *_) in raw_table()[message].items() if number}


def read_protobuf(body: bytes) -> dict[str, Any] | None:
    """The object in *body*, or None if its kind is not supported.

    Raises:
        ApiError: 400, the bytes are malformed.
    """
    try:
        if not body.startswith(_MAGIC):
            raise _Malformed("the body does not begin as Kubernetes' protobuf does")
        envelope = dict(_split(body[len(_MAGIC) :]))
        type_meta = {number: _text(value) for number, value in _split(_bytes(envelope.get(1, b"")))}
        api_version, kind = type_meta.get(1, ""), type_meta.get(2, "")
        message = "meta.v1.DeleteOptions" if kind == "DeleteOptions" else message_of_kind(api_version, kind)
        if message not in raw_table() or message.startswith("apiextensions."):
            return None  # the schema in a CustomResourceDefinition is a message that the table does not have
        return {"apiVersion": api_version, "kind": kind, **_read(_bytes(envelope.get(2, b"")), message)}
    except (ValueError, IndexError, OverflowError, OSError, struct_error, RecursionError) as error:
        raise bad_request(f"error decoding request body as protobuf: {error}") from error


def _read(data: bytes, message: str) -> dict[str, Any]:
    """A message as JSON; unknown fields are left out, as are empty strings, which Go's JSON does not show either."""
    known = _numbered_fields(message)
    found: dict[str, Any] = {}
    for number, value in _split(data):
        field = known.get(number)
        if field is None:
            continue
        name, type_ = field
        if type_.startswith("list "):
            found.setdefault(name, []).append(_value(value, type_.removeprefix("list ")))
        elif type_.startswith("map "):
            entry = dict(_split(_bytes(value)))
            key = _text(entry.get(1, b""))
            found.setdefault(name, {})[key] = _value(entry.get(2, b""), type_.removeprefix("map "))
        elif type_.startswith("inline "):
            found |= _read(_bytes(value), type_.removeprefix("inline "))
        else:
            converted = _value(value, type_)
            if converted not in ("", None):
                found[name] = converted
    return found


def _value(value: int | bytes, type_: str) -> Any:
    match type_:
        case "string":
            return _text(value)
        case "bool":
            return bool(value)
        case "int32" | "int64":
            return _signed(value)
        case "double":
            return unpack("<d", _bytes(value))[0]
        case "bytes":
            return b64encode(_bytes(value)).decode()
        case "quantity":
            return _text(dict(_split(_bytes(value))).get(1, b""))
        case "int_or_string":
            parts = dict(_split(_bytes(value)))
            return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))
        case "list string":
            return [_text(item) for _, item in _split(_bytes(value))]
        case "time" | "micro_time":
            seconds = _signed(dict(_split(_bytes(value))).get(1, 0))
            return format_time(datetime.fromtimestamp(seconds, UTC)) if seconds else None
        case "raw":
            raw = _bytes(dict(_split(_bytes(value))).get(1, b""))
            return json.loads(raw) if raw else None
    return _read(_bytes(value), type_)


def _signed(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise _Malformed("a number was expected")
    return value - _TWO_TO_64 if value >= _TWO_TO_63 else value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise _Malformed("bytes were expected")
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()


def _split(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, number or bytes) of every field of a message."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == _BYTES:
            size, position = _varint(data, position)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise _Malformed(f"wire type {wire_type} of field {number}")
        if position + size > len(data):
            raise _Malformed(f"field {number} ends after the message")
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise _Malformed("a number of more than 64 bits")
