"""What a value of plugin arguments can be: how it is read from the file, written to it, and described by JSON Schema.

Each kind of type is a class with the members of `ArgumentType`; `argument_classes` makes them from annotations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Protocol

import msgspec
from attrs import field, frozen

from trio_sched.engine.hooks.hook_failure import error_text
from trio_sched.go.text import shortened
from trio_sched.plugin_api.argument_types import WrittenAs

WRONG: Final = object()
"""What `ArgumentType.read` returns for a value that cannot be read."""

MAX_PROBLEMS: Final = 100
"""More problems than this are not looked for."""

Definitions = dict[str, Any]
"""The ``$defs`` of a schema."""


class ArgumentType(Protocol):
    """The type of a value in the file."""

    @property
    def words(self) -> str:
        """What is expected, for errors: "a whole number" for instance."""

    def takes(self, value: Any) -> bool:
        """Whether *value* has the form of this type: number, text, list or mapping; what is in it may be wrong."""

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """The value for the plugin; `WRONG` if it is none, and then *problems* has got why, each with its path."""

    def write(self, value: Any) -> Any:
        """*value*, which the plugin has, as a file would have it; what is of another type is returned as it is."""

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        """As JSON Schema; classes that it refers to are put into *definitions*."""


def expected(words: str, value: Any, path: str, problems: list[str]) -> Any:
    """Add to *problems* that *words* were expected and not *value*; returns `WRONG`."""
    return wrong(f"expected {words}, got {shown(value)}", path, problems)


def wrong(text: str, path: str, problems: list[str]) -> Any:
    """Add *text* to *problems*; returns `WRONG`."""
    if len(problems) < MAX_PROBLEMS:
        problems.append(f"{path}: {text}")
    return WRONG


def shown(value: Any) -> str:
    """*value* from a file, for an error."""
    return shortened(repr(value))


@frozen
class Anything:
    """Whatever stands in the file: texts, numbers, lists and mappings."""

    words: str = "anything"

    def takes(self, _value: Any) -> bool:
        """Every value."""
        return True

    def read(self, value: Any, _path: str, _problems: list[str]) -> Any:
        """As it is."""
        return value

    def write(self, value: Any) -> Any:
        """As it is."""
        return value

    def schema(self, _definitions: Definitions) -> dict[str, Any]:
        """No restriction."""
        return {}


_SCALARS: Final[dict[type, tuple[str, str]]] = {
    int: ("a whole number", "integer"),
    float: ("a number", "number"),
    str: ("a text", "string"),
    bool: ("true or false", "boolean"),
    type(None): ("null", "null"),
}
SCALARS: Final = frozenset(_SCALARS)
"""The types that JSON has itself."""


@frozen
class Scalar:
    """A number, a text, true or false, or null."""

    type: type

    @property
    def words(self) -> str:
        """See `ArgumentType`."""
        return _SCALARS[self.type][0]

    def takes(self, value: Any) -> bool:
        """Whether it is of just this type; a whole number is a number too."""
        return type(value) is self.type or (self.type is float and type(value) is int)

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """The value."""
        if not self.takes(value):
            return expected(self.words, value, path, problems)
        if self.type is not float:
            return value
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        return number if math.isfinite(number) else wrong(f"{shown(value)} is no finite number", path, problems)

    def write(self, value: Any) -> Any:
        """As it is."""
        return value

    def schema(self, _definitions: Definitions) -> dict[str, Any]:
        """Its JSON type."""
        return {"type": _SCALARS[self.type][1]}


@frozen
class OneOf:
    """One of some values: a ``Literal``, or the values of an ``Enum``."""

    choices: tuple[tuple[Any, Any], ...]
    """What the file has, and what the plugin gets."""

    @property
    def words(self) -> str:
        """See `ArgumentType`."""
        *first, last = [repr(written) for written, _value in self.choices] or ["nothing"]
        return f"{', '.join(first)} or {last}" if first else last

    def takes(self, value: Any) -> bool:
        """Whether it is of the type of one of them."""
        return any(type(value) is type(written) for written, _value in self.choices)

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """The one that *value* stands for."""
        for written, made in self.choices:
            if type(value) is type(written) and value == written:
                return made
        return expected(self.words, value, path, problems)

    def write(self, value: Any) -> Any:
        """The value of an enum, else as it is."""
        return value.value if isinstance(value, Enum) else value

    def schema(self, _definitions: Definitions) -> dict[str, Any]:
        """All of them."""
        return {"enum": [written for written, _value in self.choices]}


@frozen
class Written:
    """A value with a notation of its own: a duration, a quantity, a time of day."""

    form: WrittenAs

    @property
    def words(self) -> str:
        """See `ArgumentType`."""
        return self.form.words

    def takes(self, value: Any) -> bool:
        """Whether it is a text, or a number where that is allowed."""
        return type(value) is str or (self.form.takes_numbers and type(value) in (int, float))

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """What *value* means."""
        if not self.takes(value) or (type(value) is float and not math.isfinite(value)):
            return expected(self.words, value, path, problems)
        try:
            return self.form.read(value)
        except (ValueError, OverflowError) as error:
            return wrong(f"expected {self.words}, got {shown(value)}: {error_text(error)}", path, problems)

    def write(self, value: Any) -> Any:
        """*value* in this notation."""
        try:
            return self.form.write(value)
        except (TypeError, ValueError, AttributeError, ArithmeticError):  # a default of another type
            return value

    def schema(self, _definitions: Definitions) -> dict[str, Any]:
        """A text with its pattern, or a number."""
        text = {"type": "string", **({"pattern": self.form.pattern} if self.form.pattern else {})}
        return {"anyOf": [text, {"type": "number"}]} if self.form.takes_numbers else text


@frozen
class ListOf:
    """A list of any length, or of just as many items as there are *types*."""

    make: Callable[[list[Any]], Any]
    """Makes the collection."""
    types: tuple[ArgumentType, ...]
    has_any_length: bool = True
    words: str = "a list"

    def takes(self, value: Any) -> bool:
        """Whether it is a list."""
        return isinstance(value, list | tuple)

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """The items."""
        if not self.takes(value):
            return expected(self.words, value, path, problems)
        if not self.has_any_length and len(value) != len(self.types):
            return wrong(f"expected a list of {len(self.types)} items, got {len(value)}", path, problems)
        types = self.types * len(value) if self.has_any_length else self.types
        items = [
            type_.read(item, f"{path}[{i}]", problems) for i, (item, type_) in enumerate(zip(value, types, strict=True))
        ]
        if any(item is WRONG for item in items):
            return WRONG
        try:
            return self.make(items)
        except TypeError as error:  # a set of what cannot be hashed
            return wrong(error_text(error), path, problems)

    def write(self, value: Any) -> Any:
        """The items, those of a set in order."""
        if isinstance(value, str | bytes) or not isinstance(value, Sequence | set | frozenset):
            return value
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)
        if self.has_any_length:
            return [self.types[0].write(item) for item in items]
        if len(items) != len(self.types):
            return items
        return [type_.write(item) for type_, item in zip(self.types, items, strict=True)]

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        """An array."""
        if self.has_any_length:
            return {"type": "array", "items": self.types[0].schema(definitions)}
        items = [type_.schema(definitions) for type_ in self.types]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}


@frozen
class MapOf:
    """A mapping with keys of the plugin's choice."""

    key: ArgumentType
    value: ArgumentType
    words: str = "a mapping"

    def takes(self, value: Any) -> bool:
        """Whether it is a mapping."""
        return isinstance(value, Mapping)

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """The entries."""
        if not self.takes(value):
            return expected(self.words, value, path, problems)
        entries: dict[Any, Any] = {}
        is_wrong = False
        for key, item in value.items():
            place = f"{path}[{shown(key)}]"
            read_key, read_item = self.key.read(key, place, problems), self.value.read(item, place, problems)
            is_wrong |= read_key is WRONG or read_item is WRONG
            if not is_wrong:
                entries[read_key] = read_item
        return WRONG if is_wrong else entries

    def write(self, value: Any) -> Any:
        """The entries."""
        if not isinstance(value, Mapping):
            return value
        return {self.key.write(key): self.value.write(item) for key, item in value.items()}

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        """An object with any keys."""
        keys = self.key.schema(definitions)
        names = {"propertyNames": keys} if isinstance(self.key, OneOf) else {}
        return {"type": "object", **names, "additionalProperties": self.value.schema(definitions)}


@frozen
class Constrained:
    """A type with the constraints of a ``msgspec.Meta``."""

    type: ArgumentType
    annotation: Any

    @property
    def words(self) -> str:
        """See `ArgumentType`."""
        return self.type.words

    def takes(self, value: Any) -> bool:
        """As the type."""
        return self.type.takes(value)

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """The value, if it keeps the constraints."""
        read = self.type.read(value, path, problems)
        if read is WRONG:
            return WRONG
        try:
            msgspec.convert(read, self.annotation)
        except msgspec.ValidationError as error:
            return wrong(f"{error_text(error)}, got {shown(value)}", path, problems)
        return read

    def write(self, value: Any) -> Any:
        """As the type."""
        return self.type.write(value)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        """The schema of the type, with the constraints."""
        return self.type.schema(definitions) | msgspec.json.schema(self.annotation)


_NULL: Final = Scalar(type(None))


@frozen
class Union:
    """One of several types, told apart by the form of the value."""

    types: tuple[ArgumentType, ...] = field()

    @property
    def words(self) -> str:
        """See `ArgumentType`."""
        *first, last = dict.fromkeys(type_.words for type_ in self.types)
        return f"{', '.join(first)} or {last}" if first else last

    def takes(self, value: Any) -> bool:
        """Whether one of them does."""
        return any(type_.takes(value) for type_ in self.types)

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """As the first type that can; if only one has the form of *value*, what is wrong is said in its words."""
        fitting = [type_ for type_ in self.types if type_.takes(value)] or [t for t in self.types if t != _NULL]
        if len(fitting) == 1:
            return fitting[0].read(value, path, problems)
        for type_ in fitting:
            if (read := type_.read(value, path, [])) is not WRONG:
                return read
        return expected(self.words, value, path, problems)

    def write(self, value: Any) -> Any:
        """As the first type that reads it again."""
        for type_ in self.types:
            written = type_.write(value)
            if type_.takes(written) and type(type_.read(written, "", [])) is type(value):
                return written
        return value

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        """Any of them."""
        return {"anyOf": [type_.schema(definitions) for type_ in self.types]}
