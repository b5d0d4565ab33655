"""From annotations to `ArgumentType`; classes of attrs, dataclasses and msgspec are mappings in the file."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set,
)
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Final

import attrs
import msgspec

from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.engine.registry.argument_records import Argument, Record, RecordUnion
from trio_sched.engine.registry.argument_types import (
    SCALARS,
    Anything,
    ArgumentType,
    Constrained,
    ListOf,
    MapOf,
    OneOf,
    Scalar,
    Union,
    Written,
    shown,
)
from trio_sched.interrupts import raise_interrupt
from trio_sched.plugin_api.argument_types import NOTATIONS, WrittenAs

_COLLECTIONS: Final[Mapping[Any, Callable[[list[Any]], Any]]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    Sequence: tuple,
    MutableSequence: list,
    Set: frozenset,
    MutableSet: set,
    Iterable: tuple,
    Collection: tuple,
}
_MAPPINGS: Final = (dict, Mapping, MutableMapping)
_KEYS: Final = (str, int)
NAME: Final = "name"
"""The key of an attribute's metadata that says what the argument is called in the file."""
DESCRIPTION: Final = "description"
"""The key of an attribute's metadata with a text for the JSON schema; else the text below the attribute is used."""


class UnreadableArgs(Exception):
    """A class of arguments that cannot be read from a file; the text begins with the path of the attribute."""


# --- from annotations -----------------------------------------------------------------------------------------------


def record_of(cls: type[Any]) -> Record:
    """What reads *cls*, a class of attrs, a dataclass or a ``msgspec.Struct``.

    Raises:
        UnreadableArgs: it is none, or an attribute of it, however deep, has a type that cannot be read, or a default
            that is wrong.
    """
    if not _is_record(cls):
        raise UnreadableArgs("Args must be a class of attrs, a dataclass or a msgspec.Struct")
    return _checked_record(cls)  # type: ignore[arg-type]  # a metaclass might have made it unhashable


@lru_cache(maxsize=64)
def _checked_record(cls: type[Any]) -> Record:
    """See `record_of`; every profile that is built asks for that of each plugin several times."""
    made: dict[type[Any], Record] = {}
    record = _record(cls, "args", made)
    for one in made.values():
        _check_defaults(one)
    return record


def _is_record(wanted: Any) -> bool:
    if not inspect.isclass(wanted):
        return False
    return attrs.has(wanted) or dataclasses.is_dataclass(wanted) or issubclass(wanted, msgspec.Struct)


def _record(cls: type[Any], path: str, made: dict[type[Any], Record]) -> Record:
    known = made.get(cls)
    if known is not None:
        return known
    config = getattr(cls, "__struct_config__", None)
    tag = (config.tag_field, config.tag) if config is not None and config.tag is not None else None
    record = made[cls] = Record(cls, tag)
    hints = _hints(cls, path)
    for name, key, parameter, default, attribute in _attributes(cls):
        place = f"{path}.{key}"
        metadata: Mapping[str, Any] = getattr(attribute, "metadata", None) or {}
        if name not in hints:
            raise UnreadableArgs(f"{place}: {cls.__name__}.{name} has no type annotation")
        wanted = hints[name]
        description = metadata.get(DESCRIPTION) or _meta_description(wanted)
        validator = attribute.validator if isinstance(attribute, attrs.Attribute) else None
        type_ = _type(wanted, place, made)
        record.arguments.append(Argument(key, name, parameter, type_, default, validator, attribute, description))
    keys = record.keys
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UnreadableArgs(f"{path}.{twice}: two attributes of {cls.__name__} have this name in the file")
    return record


def _hints(cls: type[Any], path: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except BaseException as error:  # a name that only type checkers import, or a text that is no expression
        raise_interrupt(error)
        raise UnreadableArgs(
            f"{path}: the annotations of {cls.__name__} cannot be evaluated: {describe_error(error)}; import at run "
            "time what they name"
        ) from error


_Attribute = tuple[str, str, str, Callable[[], Any] | None, Any]
"""The name, the key in the file, the parameter of the constructor, what makes the default, and the attribute itself."""


def _attributes(cls: type[Any]) -> Iterable[_Attribute]:
    if issubclass(cls, msgspec.Struct):
        for one in msgspec.structs.fields(cls):
            default = None if one.required else _maker(one.default, one.default_factory, msgspec.NODEFAULT)
            yield one.name, one.encode_name if one.encode_name != one.name else camel(one.name), one.name, default, None
    elif attrs.has(cls):
        for attribute in attrs.fields(cls):
            if attribute.init:
                default = _default_of_attrs(cls, attribute)
                key = attribute.metadata.get(NAME) or camel(attribute.alias)
                yield attribute.name, key, attribute.alias, default, attribute
    else:
        for part in dataclasses.fields(cls):
            if part.init:
                missing = part.default is dataclasses.MISSING and part.default_factory is dataclasses.MISSING
                default = None if missing else _maker(part.default, part.default_factory, dataclasses.MISSING)
                yield part.name, part.metadata.get(NAME) or camel(part.name), part.name, default, part


def _default_of_attrs(cls: type[Any], attribute: attrs.Attribute[Any]) -> Callable[[], Any] | None:
    default: Any = attribute.default
    if default is attrs.NOTHING:
        return None
    if not isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # its stub makes it a function
        return lambda: default
    if not default.takes_self:
        return default.factory  # type: ignore[no-any-return]
    # One that is computed from other attributes: these may be required, and then there is nothing to be shown.
    return lambda: _computed(cls, attribute.name)


def _computed(cls: type[Any], name: str) -> Any:
    try:
        return getattr(cls(), name)
    except BaseException as error:
        raise_interrupt(error)
        return None


def _maker(default: Any, factory: Any, missing: Any) -> Callable[[], Any]:
    return (lambda: default) if factory is missing else factory


def _type(wanted: Any, path: str, made: dict[type[Any], Record]) -> ArgumentType:
    """What reads values of the annotation *wanted*.

    Raises:
        UnreadableArgs: nothing does.
    """
    if wanted is None:
        return Scalar(type(None))
    if wanted in (Any, object):
        return Anything()
    if hasattr(wanted, "__value__"):  # type X = ...
        return _type(wanted.__value__, path, made)
    if hasattr(wanted, "__supertype__"):  # NewType
        return _type(wanted.__supertype__, path, made)
    origin, parameters = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is typing.Annotated:
        return _annotated(wanted, path, made)
    if origin in (typing.Final, typing.Required, typing.NotRequired):
        return _type(parameters[0], path, made)
    if origin is typing.Literal:
        return OneOf(tuple((one.value if isinstance(one, Enum) else one, one) for one in parameters))
    if origin in (typing.Union, types.UnionType):
        return _union([_type(one, path, made) for one in parameters])
    return _plain_type(origin or wanted, parameters, wanted, path, made)


def _plain_type(
    kind: Any, parameters: tuple[Any, ...], wanted: Any, path: str, made: dict[type[Any], Record]
) -> ArgumentType:
    if kind in SCALARS:
        return Scalar(kind)
    if kind in NOTATIONS:
        return Written(NOTATIONS[kind])
    if kind in _COLLECTIONS:
        has_any_length = kind is not tuple or not parameters or parameters[-1] is Ellipsis
        items = (parameters or (Any,))[:1] if has_any_length else parameters
        return ListOf(_COLLECTIONS[kind], tuple(_type(one, f"{path}[]", made) for one in items), has_any_length)
    if kind in _MAPPINGS:
        key, value = parameters or (str, Any)
        return MapOf(_key_type(key, path, made), _type(value, f"{path}[]", made))
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return OneOf(tuple((member.value, member) for member in kind))
    if _is_record(kind) and not parameters:
        return _record(kind, path, made)
    raise UnreadableArgs(
        f"{path}: values of the type {_type_text(wanted)} cannot be read from a configuration; use numbers, texts, "
        "lists, mappings, Literal, enums, classes of attrs, dataclasses, or the types of trio_sched.plugin_api"
    )


def _key_type(wanted: Any, path: str, made: dict[type[Any], Record]) -> ArgumentType:
    type_ = _type(wanted, path, made)
    if isinstance(type_, Anything | OneOf) or (isinstance(type_, Scalar) and type_.type in _KEYS):
        return type_
    raise UnreadableArgs(f"{path}: the keys of a mapping must be texts, not {_type_text(wanted)}")


def _annotated(wanted: Any, path: str, made: dict[type[Any], Record]) -> ArgumentType:
    base, *notes = typing.get_args(wanted)
    for note in notes:
        if isinstance(note, WrittenAs):
            return Written(note)
    type_ = _type(base, path, made)
    constraining = tuple(note for note in notes if _constrains(note))
    if not constraining:
        return type_
    # What is inside of a list or mapping has been read by then, and may be of types that msgspec does not know.
    plain: Any = list[Any] if isinstance(type_, ListOf) else dict[Any, Any] if isinstance(type_, MapOf) else base
    if not isinstance(type_, ListOf | MapOf | Scalar):
        raise UnreadableArgs(f"{path}: msgspec.Meta can constrain numbers, texts, lists and mappings only")
    return Constrained(type_, Annotated[(plain, *constraining)])


def _constrains(note: Any) -> bool:
    names = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")
    return isinstance(note, msgspec.Meta) and any(getattr(note, name) is not None for name in names)


def _meta_description(wanted: Any) -> str:
    notes = typing.get_args(wanted)[1:] if typing.get_origin(wanted) is typing.Annotated else ()
    return next((note.description for note in notes if isinstance(note, msgspec.Meta) and note.description), "")


def _union(members: list[ArgumentType]) -> ArgumentType:
    records = [one for one in members if isinstance(one, Record)]
    if len(records) > 1:
        members = [one for one in members if not isinstance(one, Record)] + [RecordUnion(tuple(records))]
    return members[0] if len(members) == 1 else Union(tuple(members))


def _type_text(wanted: Any) -> str:
    return wanted.__qualname__ if inspect.isclass(wanted) and not typing.get_args(wanted) else str(wanted)


def _check_defaults(record: Record) -> None:
    """Whether every default could stand in the file.

    Raises:
        UnreadableArgs: one could not.
    """
    for argument in record.arguments:
        if argument.default is None:
            continue
        place = f"{record.cls.__name__}.{argument.name}"
        try:
            value = argument.default()
        except BaseException as error:
            raise_interrupt(error)
            raise UnreadableArgs(f"{place}: its default cannot be made: {describe_error(error)}") from error
        attribute = argument.attribute
        if getattr(attribute, "converter", None) is not None or _is_computed(attribute):
            continue  # what is read is not what the attribute holds
        problems: list[str] = []
        read = argument.type.read(argument.type.write(value), place, problems)
        if isinstance(value, str) and not problems and not isinstance(read, str):
            problems.append(f"{place}: write {read!r}, which is what {shown(value)} means")
        if not problems and argument.validator is not None:
            record.validate({argument.parameter: value}, record.cls.__name__, problems)
        if problems:
            raise UnreadableArgs(f"{problems[0]} (the default)")


def _is_computed(attribute: Any) -> bool:
    return bool(getattr(getattr(attribute, "default", None), "takes_self", False))


def camel(name: str) -> str:
    """``start_time`` as files write it: ``startTime``."""
    first, *rest = name.lstrip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
