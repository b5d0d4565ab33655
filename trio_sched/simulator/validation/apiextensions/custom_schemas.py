"""Schemas of custom resources: what is unknown, what is filled in, and what is wrong with an object.

A schema is that of a CustomResourceDefinition, ``openAPIV3Schema``: objects, lists and scalars with rules, nested.
CEL is imported for the first rule or pattern: it takes a while, and most clusters have neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import msgspec
from attrs import field, frozen

from trio_sched.cel.errors import CompileError, EvaluationError
from trio_sched.documents.json_values import Json
from trio_sched.errors import nearest_name
from trio_sched.go.text import quote, shortened
from trio_sched.simulator.validation.meta.decoding import Decoded, UnknownField, decode
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    too_long,
    too_many,
    unsupported,
)
from trio_sched.simulator.validation.meta.text_formats import FORMATS

if TYPE_CHECKING:
    from trio_sched.cel.expression import Expression

_IMPLICIT: Final = frozenset({"apiVersion", "kind", "metadata"})
"""What every object has, whatever its schema says."""
_NOTHING: Final = object()
_BITS: Final = {"int32": 31, "int64": 63}


@frozen(eq=False)
class Schema:
    """What a value may be; without limits nothing is asked.

    Attributes:
        keywords: the schema as it was written.
        properties: of an object, by name.
        additional: of further fields of an object; None: there are none, unless unknown ones are kept.
        items: of each item of a list.
        keeps_unknown: fields that no property is for are kept, and not looked into.
        embedded: the value is a whole object, with a kind and metadata.
        all_of: schemas that hold as well.
        any_of: schemas of which at least one holds.
        one_of: schemas of which exactly one holds.
        excluded: a schema that does not hold.
        pattern: what a text must match somewhere, of RE2, as the API server has it; None: anything.
        rules: expressions about ``self``, with what is said if they do not hold.
        change_rules: likewise about ``oldSelf`` as well.
    """

    keywords: Json
    properties: Mapping[str, Schema] = field(factory=dict)
    additional: Schema | None = None
    items: Schema | None = None
    keeps_unknown: bool = False
    embedded: bool = False
    all_of: tuple[Schema, ...] = ()
    any_of: tuple[Schema, ...] = ()
    one_of: tuple[Schema, ...] = ()
    excluded: Schema | None = None
    pattern: Any = None
    rules: tuple[tuple[Expression, Json], ...] = ()
    change_rules: tuple[tuple[Expression, Json], ...] = ()

    # --- reading ----------------------------------------------------------------------------------------------------

    def known(self, value: Any, unknown: list[UnknownField], path: str = "") -> Any:
        """*value* without the fields that the schema does not have, which are added to *unknown*."""
        if isinstance(value, list) and not (self.items is None and self.keeps_unknown):
            items = self.items or _NO_FIELDS
            return [items.known(one, unknown, f"{path}[{i}]") for i, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        is_whole = self.embedded or not path
        kept: Json = {}
        for name, inner in value.items():
            here = f"{path}.{name}" if path else str(name)
            found = self.properties.get(name) or self.additional
            if is_whole and name in _IMPLICIT:
                kept[name] = inner
            elif found is not None:
                kept[name] = found.known(inner, unknown, here)
            elif self.keeps_unknown:
                kept[name] = inner
            else:
                unknown.append(UnknownField(shortened(here), nearest_name(str(name), self.properties)))
        return kept

    def fill_defaults(self, value: Any) -> None:
        """Fill in the defaults of what *value* leaves out, in place; nulls that are not allowed count as left out."""
        if isinstance(value, list):
            for one in value if self.items is not None else ():
                self.items.fill_defaults(one)  # type: ignore[union-attr]  # it was looked
        elif isinstance(value, dict):
            for name, schema in self.properties.items():
                default = schema.keywords.get("default", _NOTHING)
                if value.get(name, _NOTHING) is None and not schema.keywords.get("nullable"):
                    del value[name]
                if name not in value and default is not _NOTHING:
                    value[name] = deepcopy(default)
            for name, inner in list(value.items()):
                found = self.properties.get(name) or self.additional
                if found is not None and inner is None and name not in self.properties:
                    if not found.keywords.get("nullable"):
                        del value[name]
                elif found is not None:
                    found.fill_defaults(inner)

    # --- checking ---------------------------------------------------------------------------------------------------

    def problems(self, value: Any, path: str = "", *, is_root: bool = True) -> list[FieldProblem]:
        """What is wrong with *value*; the metadata of the object itself are left out."""
        if value is None and self.keywords.get("nullable"):
            return []
        found = [*self._type_problems(value, path), *self._choice_problems(value, path), *self._combined(value, path)]
        if isinstance(value, str):
            found += self._text_problems(value, path)
        elif isinstance(value, list):
            found += self._list_problems(value, path)
        elif isinstance(value, dict):
            found += self._object_problems(value, path, is_root=is_root)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found += self._number_problems(value, path)
        return found or list(self._broken_rules(value, path))

    def _type_problems(self, value: Any, path: str) -> Iterator[FieldProblem]:
        wanted, actual = self.keywords.get("type"), _type_of(value)
        if self.keywords.get("x-kubernetes-int-or-string"):
            wanted = "integer,string"
        if (wanted, actual) == ("string", "array") and self.keywords.get("format") in FORMATS:
            return  # where there is a format, the API server does not tell texts and lists apart
        is_number = actual == "integer" and wanted == "number"
        if wanted and not is_number and actual not in wanted.split(","):
            detail = f"{path or '<nil>'} in body must be of type {wanted}: {quote(actual)}"
            yield FieldProblem("FieldValueTypeInvalid", path, f"Invalid value: {quote(actual)}: {detail}")

    def _choice_problems(self, value: Any, path: str) -> Iterator[FieldProblem]:
        choices = self.keywords.get("enum")
        if choices and value not in choices:
            shown = [one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in choices]
            yield unsupported(path, value, shown)

    def _combined(self, value: Any, path: str) -> Iterator[FieldProblem]:
        def is_valid(schema: Schema) -> bool:
            return not schema.problems(value, path, is_root=False)

        for schema in self.all_of:
            yield from schema.problems(value, path, is_root=False)
        if self.any_of and not any(map(is_valid, self.any_of)):
            yield bad_value(path, _shown(value), f"{quote(path)} must validate at least one schema (anyOf)")
        if self.one_of and (count := sum(map(is_valid, self.one_of))) != 1:
            found = "Found none valid" if not count else f"Found {count} valid alternatives"
            yield bad_value(
                path, _shown(value), f"{path} in body must validate one and only one schema (oneOf). {found}"
            )
        if self.excluded is not None and is_valid(self.excluded):
            yield bad_value(path, _shown(value), f"{quote(path)} must not validate the schema (not)")

    def _text_problems(self, value: str, path: str) -> Iterator[FieldProblem]:
        shortest, longest = self.keywords.get("minLength"), self.keywords.get("maxLength")
        if longest is not None and len(value) > longest:
            yield too_long(path, longest)
        if shortest is not None and len(value) < shortest:
            yield bad_value(path, value, f"{path} in body should be at least {shortest} chars long")
        if self.pattern is not None and not self.pattern.search(value):
            yield bad_value(path, value, f"{path} in body should match '{self.keywords['pattern']}'")
        form = self.keywords.get("format")
        if isinstance(form, str) and (is_valid := FORMATS.get(form)) is not None and not is_valid(value):
            yield bad_value(path, value, f"{path} in body must be of type {form}: {quote(value)}")

    def _number_problems(self, value: float, path: str) -> Iterator[FieldProblem]:
        least, most, factor = (self.keywords.get(name) for name in ("minimum", "maximum", "multipleOf"))
        if least is not None and self.keywords.get("exclusiveMinimum") and value <= least:
            yield bad_value(path, value, f"{path} in body should be greater than {least}")
        elif least is not None and value < least:
            yield bad_value(path, value, f"{path} in body should be greater than or equal to {least}")
        if most is not None and self.keywords.get("exclusiveMaximum") and value >= most:
            yield bad_value(path, value, f"{path} in body should be less than {most}")
        elif most is not None and value > most:
            yield bad_value(path, value, f"{path} in body should be less than or equal to {most}")
        bits = _BITS.get(str(self.keywords.get("format")))
        if bits is not None and not -(1 << bits) <= value < 1 << bits:
            form = self.keywords["format"]
            yield bad_value(path, value, f"Checked value must be of type integer with format {form} in {path}")
        if factor and value % factor:
            yield bad_value(path, value, f"{path} in body should be a multiple of {factor}")

    def _list_problems(self, value: list[Any], path: str) -> Iterator[FieldProblem]:
        least, most = self.keywords.get("minItems"), self.keywords.get("maxItems")
        if most is not None and len(value) > most:
            yield too_many(path, len(value), most)
        if least is not None and len(value) < least:
            yield bad_value(path, len(value), f"{path} in body should have at least {least} items")
        keys = self.keywords.get("x-kubernetes-list-map-keys") or ()
        is_map = self.keywords.get("x-kubernetes-list-type") == "map"
        if is_map or self.keywords.get("x-kubernetes-list-type") == "set":
            seen: set[bytes] = set()
            for i, one in enumerate(value):
                if is_map and not isinstance(one, dict):
                    yield bad_value(f"{path}[{i}]", one, "must be an object for an array of list-type map")
                    continue
                unique = {key: one[key] for key in keys if key in one} if is_map else one
                encoded = msgspec.json.encode(unique, order="deterministic")
                if encoded in seen:
                    yield duplicate(f"{path}[{i}]", unique)
                seen.add(encoded)
        if self.items is not None:
            for i, one in enumerate(value):
                yield from self.items.problems(one, f"{path}[{i}]", is_root=False)

    def _object_problems(self, value: Json, path: str, *, is_root: bool) -> Iterator[FieldProblem]:
        least, most = self.keywords.get("minProperties"), self.keywords.get("maxProperties")
        if most is not None and len(value) > most:
            yield too_many(path, len(value), most)
        if least is not None and len(value) < least:
            yield bad_value(path, len(value), f"{path} in body should have at least {least} properties")
        for name in (*(self.keywords.get("required") or ()), *(("apiVersion", "kind") if self.embedded else ())):
            if name not in value:
                yield required(f"{path}.{name}" if path else name)
        for name, inner in value.items():
            found = self.properties.get(name) or self.additional
            if found is not None and not (name in _IMPLICIT and (is_root or self.embedded)):
                yield from found.problems(inner, f"{path}.{name}" if path else str(name), is_root=False)

    def _broken_rules(self, value: Any, path: str) -> Iterator[FieldProblem]:
        for expression, rule in self.rules:
            yield from _broken(expression, rule, {"self": value}, path)

    def change_problems(self, old: Any, new: Any, path: str = "") -> Iterator[FieldProblem]:
        """What is wrong with the change of a value; items of lists are told apart by their keys if they have any."""
        for expression, rule in self.change_rules:
            yield from _broken(expression, rule, {"self": new, "oldSelf": old}, path)
        if isinstance(old, dict) and isinstance(new, dict):
            for name in old.keys() & new.keys():
                found = self.properties.get(name) or self.additional
                if found is not None:
                    yield from found.change_problems(old[name], new[name], f"{path}.{name}" if path else str(name))
        elif isinstance(old, list) and isinstance(new, list) and self.items is not None:
            before = {self._key(one): one for one in old}
            for i, one in enumerate(new):
                key = self._key(one)
                if key is not None and key in before:
                    yield from self.items.change_problems(before[key], one, f"{path}[{i}]")

    def _key(self, item: Any) -> bytes | None:
        """What tells an item of a list from the others; None: only its position does."""
        keys = self.keywords.get("x-kubernetes-list-map-keys")
        if not keys or not isinstance(item, dict):
            return None
        return msgspec.json.encode({key: item[key] for key in keys if key in item}, order="deterministic")


_NO_FIELDS: Final = Schema({})
"""The schema of items in a list where no list may be: the API server knows no field of them."""


def compile_schema(given: Any) -> Schema | None:
    """The schema that *given* says, ``openAPIV3Schema`` as it was sent; None if it is none."""
    if not isinstance(given, dict):
        return None
    properties = given.get("properties")
    additional = given.get("additionalProperties")
    return Schema(
        keywords=_usable(given),
        properties={
            str(name): found
            for name, inner in (properties.items() if isinstance(properties, dict) else ())
            if (found := compile_schema(inner)) is not None
        },
        additional=compile_schema({"x-kubernetes-preserve-unknown-fields": True} if additional is True else additional),
        items=compile_schema(given.get("items")),
        keeps_unknown=given.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=given.get("x-kubernetes-embedded-resource") is True,
        all_of=_compiled(given.get("allOf")),
        any_of=_compiled(given.get("anyOf")),
        one_of=_compiled(given.get("oneOf")),
        excluded=compile_schema(given.get("not")),
        pattern=_pattern(given.get("pattern")),
        rules=tuple(_rules(given.get("x-kubernetes-validations"), of_changes=False)),
        change_rules=tuple(_rules(given.get("x-kubernetes-validations"), of_changes=True)),
    )


def decode_custom(fields: Json, schema: Schema | None) -> Decoded:
    """*fields* as an object of a custom resource, whose metadata alone have a shape that is known here."""
    decoded = decode({"metadata": fields.get("metadata")}, "core.v1.PodTemplate")
    given = fields if schema is None else schema.known(fields, decoded.unknown)
    decoded.fields = {**given, **decoded.fields}
    return decoded


_NUMBERS: Final = ("minimum", "maximum", "multipleOf")
_COUNTS: Final = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_LISTS: Final = ("enum", "required", "x-kubernetes-list-map-keys")


def _usable(given: Json) -> Json:
    """*given* without keywords that mean nothing: a definition may say anything."""
    usable = dict(given)
    for names, kind in ((_NUMBERS, (int, float)), (_COUNTS, (int,)), (_LISTS, (list,))):
        for name in names:
            if name in usable and (not isinstance(usable[name], kind) or isinstance(usable[name], bool)):
                del usable[name]
    return usable


def _compiled(given: Any) -> tuple[Schema, ...]:
    found = map(compile_schema, given if isinstance(given, list) else ())
    return tuple(schema for schema in found if schema is not None)


def is_pattern(text: str) -> bool:
    """Whether *text* is a pattern of RE2."""
    return not text or _pattern(text) is not None


def _pattern(given: Any) -> Any:
    if not isinstance(given, str) or not given:
        return None
    from trio_sched.cel.library.regexes import compiled

    try:
        return compiled(given)
    except (EvaluationError, UnicodeError):
        return None


def _rules(given: Any, *, of_changes: bool) -> Iterator[tuple[Expression, Json]]:
    for rule in given if isinstance(given, list) else ():
        if not isinstance(rule, dict) or not isinstance(rule.get("rule"), str):
            continue
        if (_OLD.search(rule["rule"]) is not None) is not of_changes:
            continue
        from trio_sched.cel.expression import compile_expression
        from trio_sched.cel.values.types import DYN

        try:
            yield compile_expression(rule["rule"], {"self": DYN, "oldSelf": DYN} if of_changes else {"self": DYN}), rule
        except CompileError:  # it needs the types of the schema, which are not declared here
            continue


_OLD: Final = re.compile(r"\boldSelf\b")


def _broken(expression: Expression, rule: Json, values: Json, path: str) -> Iterator[FieldProblem]:
    try:
        holds = expression.evaluate(values)
    except EvaluationError as error:
        yield bad_value(path, _type_of(values["self"]), f"rule evaluation error: {error}")
        return
    if holds is not True:
        said = rule.get("message") or f"failed rule: {rule.get('rule')}"
        at = f"{path}{rule['fieldPath']}".lstrip(".") if isinstance(rule.get("fieldPath"), str) else path
        yield bad_value(at, _shown(values["self"]), str(said))


def _type_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "null"


def _shown(value: Any) -> Any:
    """What stands for *value* in an error: objects and lists by their type."""
    return _type_of(value) if isinstance(value, dict | list) else value
