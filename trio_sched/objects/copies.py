"""Copies of objects, which are immutable: changed ones, and plain ones as in JSON."""

from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from trio_sched.documents.json_values import encode

S = TypeVar("S", bound=Struct)


def replace_fields(one: S, **changes: object) -> S:
    """A copy of *one*, an object or a part of one, with the fields in *changes* replaced."""
    return structs.replace(one, **changes)


def encoded(one: Struct) -> bytes:
    """*one* as JSON; equal objects have equal texts if the entries of their dicts are in the same order."""
    return encode(one)


def to_builtins(one: Struct) -> dict[str, Any]:
    """*one*, an object or a part of one, as in JSON: dicts and lists, without fields that have their default."""
    plain: dict[str, Any] = msgspec.to_builtins(one)
    return plain
