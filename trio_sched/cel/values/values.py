"""Values of expressions, as Python has them.

========================  ==========================================
int, double, bool         ``int``, ``float``, ``bool``
string, bytes, null       ``str``, ``bytes``, ``None``
list                      ``list``; never changed once it is a value
uint, map, optional …     `Uint`, `CelMap`, `Optional`, `TypeValue` …
========================  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from attrs import frozen

from trio_sched.cel.errors import Aborted
from trio_sched.cel.values.network import Cidr, Ip
from trio_sched.cel.values.quantity import CelQuantity
from trio_sched.cel.values.semver import Semver
from trio_sched.cel.values.times import Duration, Timestamp
from trio_sched.cel.values.urls import Url

Value = Any
MISSING: Final = object()
"""No value: what a map does not have."""


class Uint(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()


@frozen(eq=False)
class Optional:
    """A value, or none."""

    value: Value = MISSING

    @property
    def is_none(self) -> bool:
        """Whether there is no value."""
        return self.value is MISSING


NONE: Final = Optional()


class EmptyMessage:
    """What ``google.protobuf.Empty{}`` is."""


EMPTY: Final = EmptyMessage()


@frozen(eq=False)
class Failed:
    """What stands for a value that could not be evaluated or read.

    It has the text of the error, since an error itself would keep the functions alive through which it came.
    """

    problem: str = ""


FAILED: Final = Failed()
"""An argument of which only the size counts."""


@frozen
class TypeValue:
    """A type as a value; types are equal if their names are."""

    name: str


@frozen(eq=False)
class NamedFormat:
    """A format that strings can be validated against; *key* is its name in ``format.named``."""

    key: str
    name: str


class Identity:
    """A key that equals itself only."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class CelMap:
    """A map; keys of different types are different even where Python takes them for equal.

    Args:
        entries: the values.
        default: what keys stand for that are not there: domains that a device does not have are empty maps.
        has_text_keys: it came from outside, where keys are text; any other key is not there, whatever its type is.
    """

    __slots__ = ("default", "entries", "has_text_keys")

    def __init__(self, entries: dict[Any, Value], default: Value = MISSING, *, has_text_keys: bool = False) -> None:
        self.entries = entries
        """By `map_key`."""
        self.default = default
        self.has_text_keys = has_text_keys

    def __len__(self) -> int:
        return len(self.entries)

    def items(self) -> Iterator[tuple[Value, Value]]:
        """Keys and values."""
        for key, value in self.entries.items():
            kind = type(key)
            yield (key[1] if kind is tuple else key.value if kind is Identity else key), value

    def __contains__(self, key: Value) -> bool:
        return self._find(key) is not MISSING

    def find(self, key: Value) -> Value:
        """The value of *key*, or `MISSING`; whole numbers are found whatever their type.

        Raises:
            Aborted: keys of this type cannot be looked up.
        """
        found = self._find(key)
        return self.default if found is MISSING else found

    def _find(self, key: Value) -> Value:
        entries = self.entries
        kind = type(key)
        if not entries or (self.has_text_keys and kind is not str):
            return MISSING
        found = entries.get(map_key(key), MISSING)
        if found is not MISSING:
            return found
        if kind is float:
            whole = lossless_int(key)
            if whole is not None:
                found = entries.get(whole, MISSING)
                if found is not MISSING:
                    return found
            if key.is_integer() and 0 <= key < 2.0**64:
                found = entries.get((Uint, Uint(key)), MISSING)
        elif kind is int:
            if key >= 0:
                found = entries.get((Uint, Uint(key)), MISSING)
        elif kind is Uint and key < 1 << 63:
            found = entries.get(int(key), MISSING)
        return found


def lossless_int(number: float) -> int | None:
    """The 64-bit int that *number* is."""
    return int(number) if number.is_integer() and -(2.0**63) < number < 2.0**63 else None


def map_key(key: Value) -> Any:
    """What *key* has in the place of a key in `CelMap.entries`: text and ints themselves, others with their type.

    Raises:
        Aborted: it can be no key.
    """
    kind = type(key)
    if kind is str or kind is int:
        return key
    if kind in _UNHASHABLE:
        raise Aborted(f"internal error: runtime error: hash of unhashable type {go_type(key)}")
    return (kind, key) if kind in _BY_VALUE and key == key else Identity(key)  # NaN is never found again


_UNHASHABLE: Final = frozenset({Semver, bytes, NamedFormat})
_BY_VALUE: Final = frozenset({bool, float, Uint, type(None), TypeValue, Timestamp, Duration, Ip, Cidr})
_NAMES: Final[dict[type, tuple[str, str, str]]] = {
    str: ("string", "types.String", "unsupported native conversion from string to 'bool'"),
    int: ("int", "types.Int", "unsupported type conversion from 'int' to bool"),
    Uint: ("uint", "types.Uint", "unsupported type conversion from 'uint' to bool"),
    float: ("double", "types.Double", "type conversion error from Double to 'bool'"),
    bool: ("bool", "types.Bool", ""),
    bytes: ("bytes", "types.Bytes", "type conversion error from Bytes to 'bool'"),
    type(None): ("null_type", "types.Null", "type conversion error from 'null_type' to 'bool'"),
    list: ("list", "*types.baseList", "type conversion error from list to 'bool'"),
    CelMap: ("map", "*types.baseMap", "type conversion error from map to 'bool'"),
    Optional: ("optional_type", "*types.Optional", "optional.none() dereference"),
    TypeValue: ("type", "*types.Type", "type conversion not supported for 'type'"),
    Timestamp: ("google.protobuf.Timestamp", "types.Timestamp", "type conversion error from 'Timestamp' to 'bool'"),
    Duration: ("google.protobuf.Duration", "types.Duration", "type conversion error from 'Duration' to 'bool'"),
    CelQuantity: ("kubernetes.Quantity", "cel.Quantity", "type conversion error from 'Quantity' to 'bool'"),
    Semver: ("kubernetes.Semver", "cel.Semver", "type conversion error from 'Semver' to 'bool'"),
    Url: ("kubernetes.URL", "cel.URL", "type conversion error from 'URL' to 'bool'"),
    NamedFormat: ("kubernetes.NamedFormat", "cel.Format", "type conversion error from 'Format' to 'bool'"),
    EmptyMessage: (
        "google.protobuf.Empty",
        "*types.protoObj",
        "type conversion error from 'google.protobuf.Empty' to 'bool'",
    ),
    Failed: ("error", "*types.Err", ""),
    Ip: ("net.IP", "cel.IP", "type conversion error from 'IP' to 'bool'"),
    Cidr: ("net.CIDR", "cel.CIDR", "type conversion error from 'CIDR' to 'bool'"),
}
"""Each type: its name, what Go calls it, and why it is no bool."""
_BY_NAME: Final = {names[0]: kind for kind, names in _NAMES.items()}


def type_name(value: Value) -> str:
    """The name of the type of *value*."""
    return _NAMES[type(value)][0]


def go_type(value: Value) -> str:
    """What some messages call the type of *value*."""
    return "*cel.Quantity" if type(value) is CelQuantity and value.is_sum else _NAMES[type(value)][1]


def not_bool(value: Value) -> str:
    """Why *value* is no bool."""
    return _NAMES[type(value)][2]


def python_type(name: str) -> type | None:
    """The Python class of values of the type that is called *name*."""
    return _BY_NAME.get(
        {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}.get(name, name)
    )


def size_of(value: Value) -> int:
    """How large *value* is, for what operations cost; scalars have the size 1."""
    kind = type(value)
    if kind is str or kind is list or kind is bytes or kind is CelMap:
        return len(value)
    if kind is Ip or kind is Cidr:
        return int(value.size)
    if kind is Optional and not value.is_none:
        return size_of(value.value)
    return 1
