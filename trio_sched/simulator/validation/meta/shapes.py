"""The fields of every kind and their types, and whether an object is made of them.

``shapes.json`` says of each message which fields it has: name in JSON → number in protobuf, type, and for fields that
patches merge the key of their items and the strategy, then how server-side apply takes it. ``contrib/api_shapes``
writes it from a tree of Kubernetes 1.36. ``shapes_1_37.json`` has what came with 1.37, which older servers do not know.
``shapes_by_hand.json`` has what neither tree has: kinds of 1.35 that 1.36 dropped, and fields that are only stored.
Templates of composite pod groups contain others; there they have a message per level, down to the last one allowed, so
that objects of any depth are read in a bounded number of steps.

Nearly all objects are right, so they are first converted to structs that msgspec makes of the table, in C; only what
that refuses is walked through for messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Final

import msgspec
from attrs import frozen

from trio_sched.documents.json_values import Json

_INT32: Final = (-(1 << 31), (1 << 31) - 1)
_INT64: Final = (-(1 << 63), (1 << 63) - 1)
_DAY: Final = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_SCALARS: Final[Mapping[str, Any]] = {
    "string": str,
    "bool": bool,
    "int32": Annotated[int, msgspec.Meta(ge=_INT32[0], le=_INT32[1])],
    "int64": Annotated[int, msgspec.Meta(ge=_INT64[0], le=_INT64[1])],
    "double": float,
    "bytes": bytes,
    # The server writes null for moments that are not known.
    "time": Annotated[str, msgspec.Meta(pattern=_DAY + r"(\.\d{1,9})?(Z|[+-](0\d|1[0-4]):[0-5]\d)$")] | None,
    "micro_time": Annotated[str, msgspec.Meta(pattern=_DAY + r"\.\d{6}Z$")] | None,
    "quantity": Annotated[str, msgspec.Meta(pattern=r"^\d{1,18}(\.\d{1,9})?([KMGT]i|[mkMGT])?$")]
    | Annotated[int, msgspec.Meta(ge=_INT64[0], le=_INT64[1])],
    "int_or_string": Annotated[int, msgspec.Meta(ge=_INT32[0], le=_INT32[1])] | str,
    "raw": Any,
}
"""Types of which everything that they accept is right; some right values they refuse."""


@frozen
class Field:
    """One field of a message in JSON.

    Attributes:
        type: ``string``, ``list core.v1.Container``, ``map quantity``…; a scalar's name or a message's, perhaps nested.
        merge_key: by what the items of the list are told apart in patches; empty for texts that are merged; None: the
            list is replaced.
        patch_strategy: ``merge``, ``retainKeys``, both, or empty: as OpenAPI documents tell clients.
        applied: how server-side apply takes it: the keys that tell items apart, ``set``, or ``atomic``; empty: lists
            without keys are atomic, all else is merged.
    """

    type: str
    merge_key: str | None = None
    patch_strategy: str = ""
    applied: tuple[str, ...] | str = ""


ADDED_SINCE: Final = 37
"""The minor version of Kubernetes that has all fields."""
_NO_PATCH: Final[tuple[Any, ...]] = (None, "", "")


_Table = Mapping[str, Mapping[str, list[Any]]]


def _read(name: str) -> Any:
    return msgspec.json.decode(files("trio_sched.simulator.validation.meta").joinpath(name).read_bytes())


@cache
def raw_table(newest: bool = True) -> _Table:
    """Message → name in JSON → number in protobuf, type, perhaps merge key and strategy; inlined ones are fields.

    Args:
        newest: with the fields that only servers of `ADDED_SINCE` and newer have.
    """
    by_hand = _read("shapes_by_hand.json")
    if not newest:
        return _with(_read("shapes.json"), by_hand["1.35"])
    return _with(raw_table(newest=False), _read("shapes_1_37.json"), by_hand["1.37"])


def _with(table: _Table, *additions: _Table) -> _Table:
    """*table* with more messages, and more fields of those that it has."""
    for added in additions:
        table = {**table, **{message: {**table.get(message, {}), **fields} for message, fields in added.items()}}
    return table


@cache
def fields_of(message: str, newest: bool = True) -> Mapping[str, Field]:
    """The fields that JSON shows of *message*, by name; empty if the table does not have it; see `raw_table`."""
    fields: dict[str, Field] = {}
    for name, (_, type_, *key) in raw_table(newest).get(message, {}).items():
        if type_.startswith("inline "):
            fields |= fields_of(type_.removeprefix("inline "), newest)
        else:
            merge_key, strategy, applied = (*key, *_NO_PATCH[len(key) :])
            fields[name] = Field(type_, merge_key, strategy, tuple(applied) if isinstance(applied, list) else applied)
    return fields


def message_of_kind(api_version: str, kind: str) -> str:
    """The name of the message that objects of *kind* are; the table need not have it."""
    group, _, version = api_version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}.{version}.{kind}"


def is_well_formed(value: Json, message: str, newest: bool = True) -> bool:
    """Whether *value* is of *message*'s shape beyond doubt: every field known, of its type and not null.

    False does not say that it is not: `read_fields` decides.
    """
    try:
        msgspec.convert(value, _struct_of(message, newest))
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


@cache
def _struct_of(message: str, newest: bool) -> Any:
    """A struct that has the fields of *message*; they have names of their own, since some are keywords of Python."""
    fields = fields_of(message, newest)
    names = {f"field_{number}": name for number, name in enumerate(fields)}
    return msgspec.defstruct(
        message.replace(".", "_"),
        [
            (own, _python_type(fields[name].type, newest) | msgspec.UnsetType, msgspec.UNSET)
            for own, name in names.items()
        ],
        rename=names,
        forbid_unknown_fields=True,
    )


def _python_type(type_: str, newest: bool) -> Any:
    container, _, inner = type_.partition(" ")
    if container == "list":
        return list.__class_getitem__(_python_type(inner, newest))
    if container == "map":
        return dict.__class_getitem__((str, _python_type(inner, newest)))
    return _SCALARS[type_] if type_ in _SCALARS else _struct_of(type_, newest)
