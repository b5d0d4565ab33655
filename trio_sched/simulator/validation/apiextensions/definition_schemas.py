"""Rules of the schemas in CustomResourceDefinitions: they must be structural, and say nothing that is not looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.errors import nearest_name
from trio_sched.simulator.validation.apiextensions.custom_schemas import compile_schema, is_pattern
from trio_sched.simulator.validation.apiextensions.definition_lists import list_type_problems
from trio_sched.simulator.validation.apiextensions.definition_rules import rule_problems
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
    required,
    unsupported,
)

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_KEYWORDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("$schema", "description", "format", "id", "pattern", "title", "type"), str),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems"), bool),
    **dict.fromkeys(("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"), int),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), (int, float)),
    **dict.fromkeys(("allOf", "anyOf", "enum", "oneOf", "required"), list),
    **dict.fromkeys(("externalDocs", "not", "properties"), dict),
    **dict.fromkeys(("additionalProperties", "default", "example", "items"), object),
    **dict.fromkeys(("x-kubernetes-list-map-keys", "x-kubernetes-validations"), list),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), str),
    **dict.fromkeys((f"x-kubernetes-{name}" for name in ("embedded-resource", "int-or-string")), bool),
    "x-kubernetes-preserve-unknown-fields": bool,
}
"""What a schema can say, and as what; ``$ref``, ``definitions`` and others of JSON Schema are refused."""
_TEXTS: Final = ("required", "x-kubernetes-list-map-keys")
_WORDS: Final = {str: "a text", bool: "true or false", int: "a whole number", list: "a list", dict: "a mapping"}
_STRUCTURAL: Final = frozenset(
    {"additionalProperties", "default", "description", "nullable", "title", "type", "x-kubernetes-list-map-keys"}
    | {"x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-type"}
    | {"x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields"}
)
"""What stands in the schema itself, and not in schemas that it combines."""


def schema_problems(
    schema: Any, path: str, *, is_root: bool = False, is_part: bool = False, is_strict: bool = True
) -> list[FieldProblem]:
    """What is wrong with a schema.

    Args:
        schema: ``openAPIV3Schema``, or one inside of it.
        path: where it is.
        is_root: it is the schema of a whole object.
        is_part: it is one of those that another combines, by ``anyOf`` for instance.
        is_strict: whether unknown fields are refused; below ``items`` the API server's decoder ignores them.
    """
    if not isinstance(schema, dict):
        return [bad_value(path, schema, "must be a schema, which is a mapping")]
    wrong = list(_keyword_problems(schema, path, is_strict=is_strict))
    if wrong:
        return wrong
    said: Json = {name: value for name, value in schema.items() if value is not None}
    problems = list(_part_problems(said, path) if is_part else _own_problems(said, path, is_root=is_root))
    if (pattern := said.get("pattern")) and not is_pattern(pattern):
        problems.append(bad_value(f"{path}.pattern", pattern, "must be a valid regular expression"))
    for where, inner in _inner_schemas(said):
        below = is_strict and where not in ("items", "additionalProperties")
        problems += schema_problems(inner, f"{path}.{where}", is_part=is_part, is_strict=below)
    for where, inner in _combined_schemas(said):
        problems += schema_problems(inner, f"{path}.{where}", is_part=True, is_strict=is_strict)
    return problems


def _keyword_problems(schema: Json, path: str, *, is_strict: bool) -> Iterator[FieldProblem]:
    for name, value in schema.items():
        wanted = _KEYWORDS.get(name)
        if wanted is None and not is_strict:
            continue
        if wanted is None:
            near = nearest_name(str(name), _KEYWORDS)
            text = "unknown field" + (f"; did you mean {near!r}?" if near else "")
            yield FieldProblem("FieldValueInvalid", f"{path}.{name}", text)
        elif value is not None and (not isinstance(value, wanted) or (type(value) is bool and wanted not in _BOOLS)):
            word = "a number" if isinstance(wanted, tuple) else _WORDS[wanted]
            yield bad_value(f"{path}.{name}", value, f"must be {word}")
        elif isinstance(value, list) and name in _TEXTS and not all(isinstance(one, str | None) for one in value):
            yield bad_value(f"{path}.{name}", value, "must be a list of texts")


_BOOLS: Final = (bool, object)


def _part_problems(said: Json, path: str) -> Iterator[FieldProblem]:
    for name in said.keys() & _STRUCTURAL:
        if said[name] or name == "additionalProperties":
            yield forbidden_field(f"{path}.{name}", "must be empty to be structural")


def _own_problems(said: Json, path: str, *, is_root: bool) -> Iterator[FieldProblem]:
    type_ = said.get("type") or ""
    is_any = said.get("x-kubernetes-int-or-string") or said.get("x-kubernetes-preserve-unknown-fields")
    if type_ and type_ not in _TYPES:
        yield unsupported(f"{path}.type", type_, _TYPES)
    elif is_root and not type_:
        yield required(f"{path}.type", "must not be empty at the root")
    elif is_root and type_ != "object":
        yield bad_value(f"{path}.type", type_, "must be object at the root")
    elif not type_ and not is_any:
        yield required(f"{path}.type", "must not be empty for specified object fields")
    if type_ == "array" and said.get("items") is None:
        yield required(f"{path}.items", "must be specified")
    if said.get("properties") and said.get("additionalProperties"):
        yield forbidden_field(
            f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if said.get("uniqueItems"):
        yield forbidden_field(f"{path}.uniqueItems", "uniqueItems cannot be set to true; list-type: set says it")
    yield from list_type_problems(said, path)
    for index, rule in enumerate(said.get("x-kubernetes-validations") or ()):
        yield from rule_problems(rule, f"{path}.x-kubernetes-validations[{index}]")
    if "default" in said and (schema := compile_schema(said)) is not None:
        for one in schema.problems(said["default"], is_root=False):
            yield FieldProblem(one.reason, f"{path}.default{one.field and '.'}{one.field}", one.message)


def _inner_schemas(said: Json) -> Iterator[tuple[str, Any]]:
    for name, inner in (said.get("properties") or {}).items():
        yield f"properties.{name}", inner
    if said.get("items") is not None:
        yield "items", said["items"]
    if not isinstance(said.get("additionalProperties"), bool | None):
        yield "additionalProperties", said["additionalProperties"]


_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
"""What ``x-kubernetes-int-or-string`` may say once more, for readers that do not know it."""


def _combined_schemas(said: Json) -> Iterator[tuple[str, Any]]:
    is_either = bool(said.get("x-kubernetes-int-or-string"))
    for name in ("allOf", "anyOf", "oneOf"):
        if is_either and name == "anyOf" and said.get(name) == _INT_OR_STRING:
            continue
        for index, inner in enumerate(said.get(name) or ()):
            if is_either and (name, index) == ("allOf", 0) and inner == {"anyOf": _INT_OR_STRING}:
                continue
            yield f"{name}[{index}]", inner
    if said.get("not") is not None:
        yield "not", said["not"]
