"""Changed copies of objects, which are immutable."""

from typing import TypeVar

from msgspec import Struct, structs

S = TypeVar("S", bound=Struct)


def replace_fields(one: S, **changes: object) -> S:
    """A copy of *one*, an object or a part of one, with the fields in *changes* replaced."""
    return structs.replace(one, **changes)
