"""Static types, and when one fits another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

from attrs import define, field, frozen

from trio_sched.cel.errors import CompileError

_MAX_SIZE: Final = 1_000


@frozen
class Type:
    """A type by its name, with its parameters if it has any; names that begin with ``?`` are of type parameters.

    Raises:
        CompileError: it has more than 1,000 parts: maps of maps to themselves double with every level
    """

    name: str
    parameters: tuple[Type, ...] = ()
    size: int = field(init=False, eq=False, repr=False)

    @size.default
    def _count(self) -> int:
        size = 1 + sum(parameter.size for parameter in self.parameters)
        if size > _MAX_SIZE:
            raise CompileError(f"compilation failed: a type has more than {_MAX_SIZE:,} parts")
        return size

    is_parameter: bool = field(init=False, eq=False, repr=False)
    """Whether it stands for any one type."""
    is_generic: bool = field(init=False, eq=False, repr=False)
    """Whether it is a type parameter, or has one in it."""

    @is_parameter.default
    def _stands_for_others(self) -> bool:
        return self.name.startswith("?")

    @is_generic.default
    def _has_parameters(self) -> bool:
        return self.is_parameter or any(parameter.is_generic for parameter in self.parameters)

    def __str__(self) -> str:
        """As in messages about types that do not fit."""
        return self.written({})

    def written(self, names: dict[str, str]) -> str:
        """Its text, with some *names* replaced."""
        name = names.get(self.name, self.name)
        if not self.parameters:
            return name
        return f"{name}({', '.join(parameter.written(names) for parameter in self.parameters)})"


DYN: Final = Type("dyn")
"""Whatever it is, which is found out when the expression is evaluated."""
ANY: Final = Type("any")
"""What attributes of devices are: like `DYN` beside most types, but not the same."""
ERROR: Final = Type("!error!")
NULL: Final = Type("null")
BOOL: Final = Type("bool")
"""True or False."""
INT: Final = Type("int")
"""A whole number of 64 bits."""
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
"""A float."""
STRING: Final = Type("string")
"""A text."""
BYTES: Final = Type("bytes")
"""Bytes."""
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
"""What lists are sorted by."""
_LONG_NAMES: Final = {
    "any": "google.protobuf.Any",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "null": "null_type",
}
_NOT_NULL: Final = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"})


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """``optional_type(value)``."""
    return Type("optional_type", (value,))


def type_of(instance: Type) -> Type:
    """``type(instance)``."""
    return Type("type", (instance,))


def wrapper_of(wrapped: Type) -> Type:
    """A message with one value, or null."""
    return Type("wrapper", (wrapped,))


def long_name(of: Type) -> str:
    """Its name in messages about the result of an expression."""
    return of.written(_LONG_NAMES)


@define(eq=False)
class Substitution:
    """What type parameters stand for; found out while expressions are checked."""

    types: dict[str, Type] = field(factory=dict)
    _numbers: Iterator[int] = field(factory=count)
    _changes: list[tuple[str, Type | None]] = field(factory=list)
    """What parameters stood for before the question whether something fits was asked."""

    def new_parameter(self) -> Type:
        """A type parameter that stands for nothing yet."""
        return Type(f"?{next(self._numbers)}")

    def instance(self, declared: Iterable[Type], result: Type) -> tuple[list[Type], Type]:
        """Declared types with new parameters in place of their own."""
        fresh: dict[str, Type] = {}

        def instantiated(one: Type) -> Type:
            if one.is_parameter:
                return fresh.setdefault(one.name, self.new_parameter())
            return Type(one.name, tuple(map(instantiated, one.parameters))) if one.is_generic else one

        return [instantiated(one) for one in declared], instantiated(result)

    def resolved(self, one: Type, *, free_is_dyn: bool = False) -> Type:
        """*one* with parameters replaced by what they stand for; with *free_is_dyn* all of them."""
        if not one.is_generic:
            return one
        if one.is_parameter:
            known = self.types.get(one.name)
            if known is not None:
                return self.resolved(known, free_is_dyn=free_is_dyn)
            return DYN if free_is_dyn else one
        return Type(one.name, tuple(self.resolved(part, free_is_dyn=free_is_dyn) for part in one.parameters))

    def fits(self, given: Iterable[Type], wanted: Iterable[Type]) -> bool:
        """Whether every one of *given* fits into that of *wanted*; what parameters stand for is kept only then."""
        if all(self._fits(one, other) for one, other in zip(given, wanted, strict=True)):
            self._changes.clear()
            return True
        while self._changes:
            name, before = self._changes.pop()
            if before is None:
                del self.types[name]
            else:
                self.types[name] = before
        return False

    def _set(self, parameter: Type, found: Type) -> None:
        self._changes.append((parameter.name, self.types.get(parameter.name)))
        self.types[parameter.name] = found

    def _fits(self, given: Type, wanted: Type) -> bool:
        if given is wanted:
            return True
        if wanted.is_parameter:
            is_valid, is_known = self._stands_for(given, wanted)
            if is_valid:
                return True
            if is_known:
                return False
        if given.is_parameter:
            return self._stands_for(wanted, given)[0]
        if DYN in (given, wanted) or ERROR in (given, wanted) or ANY in (given, wanted):
            return True
        if NULL in (given, wanted):
            return (given if wanted == NULL else wanted).name not in _NOT_NULL
        if "wrapper" in (given.name, wanted.name):
            return self._fits(_unwrapped(given), _unwrapped(wanted))
        if given.name != wanted.name:
            return False
        if given.name == "type":
            return True
        return len(given.parameters) == len(wanted.parameters) and all(
            self._fits(one, other) for one, other in zip(given.parameters, wanted.parameters, strict=True)
        )

    def _stands_for(self, one: Type, parameter: Type) -> tuple[bool, bool]:
        """Whether *parameter* can stand for *one*, and whether it was known before what it stands for."""
        if one == parameter:
            return True, True
        known = self.types.get(parameter.name)
        if known is not None:
            if not self._fits(one, known):
                return False, True
            general = more_general(one, known)
            if not self._mentions(general, parameter):
                self._set(parameter, general)
            return True, True
        if self._mentions(one, parameter):
            return False, False
        self._set(parameter, one)
        return True, False

    def _mentions(self, one: Type, parameter: Type) -> bool:
        one = self.resolved(one)
        return one == parameter or any(self._mentions(part, parameter) for part in one.parameters)


def _unwrapped(one: Type) -> Type:
    return one.parameters[0] if one.name == "wrapper" else one


def more_general(one: Type, other: Type) -> Type:
    """The one of two that fits more: `DYN` and `ANY` do, at any depth."""
    return one if _is_at_least_as_general(one, other) else other


def _is_at_least_as_general(one: Type, other: Type) -> bool:
    if one in (DYN, ANY) or one.is_parameter:
        return True
    if other in (DYN, ANY) or other.is_parameter:
        return False
    if one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    return all(map(_is_at_least_as_general, one.parameters, other.parameters))
