"""Changed copies of objects, which themselves never change."""

from typing import TypeVar

from msgspec import Struct, structs

S = TypeVar("S", bound=Struct)


def replace_fields(one: S, **changes: object) -> S:
    """A copy of *one*, an object or a part of one, in which the named fields are *changes*."""
    return structs.replace(one, **changes)
