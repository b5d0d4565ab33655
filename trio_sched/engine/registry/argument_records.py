"""Classes of plugin arguments as mappings: how one is read, written and described."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from attrs import define, field, frozen

from trio_sched.engine.hooks.hook_failure import describe_error, error_text
from trio_sched.engine.registry.argument_checks import OBJECT_CHECKS
from trio_sched.engine.registry.argument_descriptions import attribute_docstrings, class_description, constraints
from trio_sched.engine.registry.argument_types import (
    MAX_PROBLEMS,
    WRONG,
    ArgumentType,
    Definitions,
    OneOf,
    expected,
    shown,
    wrong,
)
from trio_sched.errors import nearest_name
from trio_sched.interrupts import raise_interrupt


@frozen
class Argument:
    """One attribute of a class of arguments."""

    key: str
    """What it is called in the file."""
    name: str
    """What it is called in the class, for getattr."""
    parameter: str
    """What the constructor calls it."""
    type: ArgumentType
    default: Callable[[], Any] | None
    """Makes the default; None: it must be given."""
    validator: Callable[[Any, Any, Any], Any] | None = None
    attribute: Any = None
    """What its validator gets."""
    description: str = ""
    """For the schema; if empty, the text below the attribute is used."""


@define(eq=False)
class Record:
    """A mapping with the keys of a class."""

    cls: type[Any]
    tag: tuple[str, Any] | None = None
    """The key and value that a tagged msgspec class has in the file."""
    arguments: list[Argument] = field(factory=list)
    """Filled once the types of the attributes are known, which may contain this one."""

    @property
    def words(self) -> str:
        """See `ArgumentType`."""
        return "a mapping"

    @property
    def keys(self) -> list[str]:
        """Every key that it may have."""
        return [*((self.tag[0],) if self.tag else ()), *(argument.key for argument in self.arguments)]

    @property
    def required(self) -> list[str]:
        """The keys that it must have."""
        return [argument.key for argument in self.arguments if argument.default is None]

    def takes(self, value: Any) -> bool:
        """Whether it is a mapping."""
        return isinstance(value, Mapping)

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """An instance."""
        if not self.takes(value):
            return expected(self.words, value, path, problems)
        before = len(problems)
        keys = self.keys
        for key in value:
            if len(problems) >= MAX_PROBLEMS:  # looking for near names takes time
                break
            if key not in keys:
                near = nearest_name(str(key), keys)
                fix = f"did you mean {near!r}?" if near else f"known are {', '.join(keys) or 'none'}"
                wrong(f"unknown field; {fix}", f"{path}.{shown(key)[1:-1] if isinstance(key, str) else key}", problems)
        given: dict[str, Any] = {}
        for argument in self.arguments:
            place = f"{path}.{argument.key}"
            if argument.key in value:
                read = argument.type.read(value[argument.key], place, problems)
                if read is not WRONG:
                    given[argument.parameter] = read
            elif argument.default is None:
                wrong("required field missing", place, problems)
        self.validate(given, path, problems)
        if len(problems) > before:
            return WRONG
        try:
            made = self.cls(**given)
        except BaseException as error:  # what converters, validators and __attrs_post_init__ raise
            raise_interrupt(error)
            return wrong(text_of(error), path, problems)
        for problem in OBJECT_CHECKS[self.cls](made, path) if self.cls in OBJECT_CHECKS else ():
            problems.append(str(problem))
        return made if len(problems) == before else WRONG

    def validate(self, given: Mapping[str, Any], path: str, problems: list[str]) -> None:
        """Call the validators of attributes that are *given*: each says what it has to say, not only the first."""
        validated = [argument for argument in self.arguments if argument.validator and argument.parameter in given]
        if not validated:
            return
        partial = self._partial(given)
        for argument in validated:
            assert argument.validator is not None
            try:
                argument.validator(partial, argument.attribute, getattr(partial, argument.name))
            except AttributeError:  # it looks at an attribute that could not be read; the constructor asks it again
                continue
            except BaseException as error:
                raise_interrupt(error)
                text = text_of(error).removeprefix(f"'{argument.name}' ")
                wrong(text, f"{path}.{argument.key}", problems)

    def _partial(self, given: Mapping[str, Any]) -> Any:
        """An instance without any check, with what is *given* and defaults; attributes that are wrong are missing."""
        partial = object.__new__(self.cls)
        for argument in self.arguments:
            convert = getattr(argument.attribute, "converter", None)
            try:
                if argument.parameter in given:
                    value = given[argument.parameter]
                elif argument.default is not None:
                    value = argument.default()
                else:
                    continue
                if convert is not None and not isinstance(convert, attrs.Converter):
                    value = convert(value)
            except BaseException as error:  # the constructor says so
                raise_interrupt(error)
                continue
            object.__setattr__(partial, argument.name, value)
        return partial

    def write(self, value: Any) -> Any:
        """Its attributes by key; those that are None by default and still are, are left out."""
        if not isinstance(value, self.cls):
            return value
        written = dict([self.tag]) if self.tag else {}
        for argument in self.arguments:
            part = getattr(value, argument.name)
            if part is not None or argument.default is None or argument.default() is not None:
                written[argument.key] = argument.type.write(part)
        return written

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        """A reference to its definition."""
        name = self.cls.__name__
        number = 1
        while definitions.get(name, (self, None))[0] is not self:
            number += 1
            name = f"{self.cls.__name__}{number}"
        if name not in definitions:
            definitions[name] = (self, None)  # it may contain itself
            definitions[name] = (self, self.object_schema(definitions))
        return {"$ref": f"#/$defs/{name}"}

    def object_schema(self, definitions: Definitions) -> dict[str, Any]:
        """The definition itself."""
        docstrings = attribute_docstrings(self.cls)
        properties: dict[str, Any] = {self.tag[0]: {"const": self.tag[1]}} if self.tag else {}
        for argument in self.arguments:
            described = argument.type.schema(definitions) | constraints(argument.validator)
            if description := argument.description or docstrings.get(argument.name):
                described["description"] = description
            if argument.default is not None:
                described["default"] = argument.type.write(argument.default())
            properties[argument.key] = described
        required = [*((self.tag[0],) if self.tag else ()), *self.required]
        of_class = class_description(self.cls)
        return {
            **({"description": of_class} if of_class else {}),
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }


@define(eq=False)
class RecordUnion:
    """One of several classes: told apart by an attribute with other fixed values in each, else by their keys."""

    records: tuple[Record, ...]

    @property
    def words(self) -> str:
        """See `ArgumentType`."""
        return "a mapping"

    def takes(self, value: Any) -> bool:
        """Whether it is a mapping."""
        return isinstance(value, Mapping)

    def read(self, value: Any, path: str, problems: list[str]) -> Any:
        """An instance of the class that *value* is meant for."""
        if not self.takes(value):
            return expected(self.words, value, path, problems)
        if (told := self._discriminator()) is not None:
            key, by_value = told
            chosen = value.get(key)
            for written, record in by_value:
                if type(chosen) is type(written) and chosen == written:
                    return record.read(value, path, problems)
            words = OneOf(tuple((written, None) for written, _record in by_value)).words
            if key in value:
                return expected(words, chosen, f"{path}.{key}", problems)
            return wrong(f"required field missing: {words}", f"{path}.{key}", problems)
        best: list[str] | None = None
        for record in sorted(self.records, key=lambda record: _distance(record, value)):
            found: list[str] = []
            if (read := record.read(value, path, found)) is not WRONG:
                return read
            best = found if best is None else best
        problems += best or ()
        return WRONG

    def _discriminator(self) -> tuple[str, list[tuple[Any, Record]]] | None:
        """A key that all classes have, with other fixed values in each, and the class for each value."""
        for key in self.records[0].keys:
            values = [(value, record) for record in self.records for value in _fixed_values(record, key)]
            texts = [repr(value) for value, _record in values]
            if all(_fixed_values(record, key) for record in self.records) and len(set(texts)) == len(texts):
                return key, values
        return None

    def write(self, value: Any) -> Any:
        """As the class that *value* is of."""
        return next((record.write(value) for record in self.records if isinstance(value, record.cls)), value)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        """Any of them."""
        return {"anyOf": [record.schema(definitions) for record in self.records]}


def _fixed_values(record: Record, key: str) -> list[Any]:
    if record.tag is not None and record.tag[0] == key:
        return [record.tag[1]]
    for argument in record.arguments:
        if argument.key == key and isinstance(argument.type, OneOf):
            return [written for written, _value in argument.type.choices]
    return []


def _distance(record: Record, value: Mapping[str, Any]) -> int:
    """How many keys would have to change for *value* to have the keys of *record*."""
    return len(set(value) - set(record.keys)) + len(set(record.required) - set(value))


def text_of(error: BaseException) -> str:
    """What a validator or a constructor says; attrs puts the attribute and the value behind its text."""
    if isinstance(error, TypeError | ValueError) and error.args and isinstance(error.args[0], str):
        return error.args[0]
    return (isinstance(error, Exception) and error_text(error)) or describe_error(error)
