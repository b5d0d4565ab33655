"""What an expression can refer to: variables, objects, and the messages and types that are always there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from trio_sched.cel.values.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    type_of,
    wrapper_of,
)

_PROTOBUF: Final = "google.protobuf."
MESSAGES: Final[Mapping[str, tuple[Type, Mapping[str, Type]]]] = {
    f"{_PROTOBUF}{name}": (made, fields)
    for name, made, fields in (
        ("BoolValue", wrapper_of(BOOL), {"value": BOOL}),
        ("BytesValue", wrapper_of(BYTES), {"value": BYTES}),
        ("DoubleValue", wrapper_of(DOUBLE), {"value": DOUBLE}),
        ("FloatValue", wrapper_of(DOUBLE), {"value": DOUBLE}),
        ("Int32Value", wrapper_of(INT), {"value": INT}),
        ("Int64Value", wrapper_of(INT), {"value": INT}),
        ("StringValue", wrapper_of(STRING), {"value": STRING}),
        ("UInt32Value", wrapper_of(UINT), {"value": UINT}),
        ("UInt64Value", wrapper_of(UINT), {"value": UINT}),
        ("Timestamp", TIMESTAMP, {"seconds": INT, "nanos": INT}),
        ("Duration", DURATION, {"seconds": INT, "nanos": INT}),
        ("Any", ANY, {"type_url": STRING, "value": BYTES}),
        ("Struct", map_of(STRING, DYN), {"fields": map_of(STRING, DYN)}),
        ("ListValue", list_of(DYN), {"values": list_of(DYN)}),
        ("Empty", Type(f"{_PROTOBUF}Empty"), {}),
        (
            "Value",
            DYN,
            {
                "null_value": INT,
                "number_value": DOUBLE,
                "string_value": STRING,
                "bool_value": BOOL,
                "struct_value": map_of(STRING, DYN),
                "list_value": list_of(DYN),
            },
        ),
    )
}
"""Messages: what a literal of one is, and its fields."""
TYPE_NAMES: Final = {
    **{one.name: type_of(one) for one in (BOOL, INT, UINT, DOUBLE, STRING, BYTES)},
    "list": type_of(list_of(DYN)),
    "map": type_of(map_of(DYN, DYN)),
    "null_type": type_of(NULL),
    "type": type_of(Type("type")),
    "optional_type": type_of(Type("optional_type")),
    "timestamp": type_of(TIMESTAMP),
    "duration": type_of(DURATION),
    **{name: type_of(made) for name, (made, _fields) in MESSAGES.items()},
    **{name: type_of(Type(name)) for name in (*("kubernetes.Quantity", "net.IP", "net.CIDR"),)},
}
"""Types as values."""


@frozen
class Environment:
    """What an expression can refer to."""

    variables: Mapping[str, Type]
    objects: Mapping[str, Mapping[str, Type]]
    """Types of objects, and their fields."""
