"""Verdicts of kube-apiserver 1.36 on objects of one custom resource, recorded with dry runs.

``custom_verdicts.json.gz`` has the definition, and for each object its spec, the causes of the refusal, and the spec
as it would have been stored.
"""

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError
from trio_sched.simulator.storage.object_store import copied
from trio_sched.simulator.validation.apiextensions.custom_schemas import compile_schema

RECORDED: Final[Json] = json.loads(gzip.decompress(Path(__file__).with_name("custom_verdicts.json.gz").read_bytes()))
DEFINITION: Final[Json] = RECORDED["definition"]
SPEC: Final[Json] = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
WITH_FORMATS: Final = {name for name, schema in SPEC["properties"].items() if schema.get("format")}


def upkeep(spec: Any, name: str = "u") -> Json:
    return {"apiVersion": "example.com/v1", "kind": "Upkeep", "metadata": {"name": name}, "spec": spec}


def definition_with(schema: Json) -> Json:
    changed = copied(DEFINITION)
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = schema
    return changed


def checked(*objects: Json) -> list[Json]:
    return [one.fields for one in check_manifests([Manifest(copied(one)) for one in objects]).manifests]


def problems_of(*objects: Json) -> list[str]:
    with pytest.raises(ManifestError) as refused:
        checked(*objects)
    return [f"{one.path}: {one.text}" for one in refused.value.problems]


def is_compared(spec: Any) -> bool:
    """The API server shows other values than texts and lists for texts with a format in words of Go."""
    return not isinstance(spec, dict) or all(isinstance(spec[name], str | list) for name in WITH_FORMATS & spec.keys())


def test_the_verdicts_are_those_of_the_api_server_and_defaults_and_texts_as_well() -> None:
    verdicts = {  # to the API server a whole number is no multiple of a quarter
        f"u{number}": (spec, causes, stored)
        for number, (spec, causes, stored) in enumerate(RECORDED["verdicts"])
        if is_compared(spec) and not any("must be positive" in cause for cause in causes)
    }
    assert len(verdicts) > 850
    taken = [upkeep(spec, name) for name, (spec, causes, _) in verdicts.items() if not causes]
    _, *found = checked(DEFINITION, *taken)
    assert {one["metadata"]["name"]: one["spec"] for one in found} == {
        name: stored for name, (_, causes, stored) in verdicts.items() if not causes
    }
    texts: dict[str, set[str]] = {}
    with pytest.raises(ManifestError) as error:
        checked(DEFINITION, *(upkeep(spec, name) for name, (spec, causes, _) in verdicts.items() if causes))
    for one in error.value.problems:
        texts.setdefault(one.what.removeprefix("Upkeep ").removeprefix("default/"), set()).add(
            f"{one.path}: {one.text}"
        )
    for name, (spec, causes, _) in verdicts.items():
        assert (name in texts) is bool(causes), spec
        assert {cause for cause in causes if not cause.startswith(("<nil>", "400 "))} <= texts.get(name, set()), spec


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "text"}, ".type: Unsupported value"),
        ({}, ".type: Required value: must not be empty for specified object fields"),
        ({"type": "object", "proprties": {}}, ".proprties: unknown field; did you mean 'properties'?"),
        ({"type": "array"}, ".items: Required value: must be specified"),
        ({"type": "string", "maxLength": "3"}, '.maxLength: Invalid value: "3": must be a whole number'),
        ({"type": "string", "maxLength": True}, ".maxLength: Invalid value: true: must be a whole number"),
        ({"type": "string", "pattern": "("}, '.pattern: Invalid value: "(": must be a valid regular expression'),
        ({"type": "integer", "default": "x"}, ".default: Invalid value"),
        (
            {"type": "integer", "anyOf": [{"type": "integer"}]},
            ".anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        ({"type": "object", "properties": {"a": {"type": "x"}}}, ".properties.a.type: Unsupported value"),
        ({"type": "object", "properties": {"a": 1}}, ".properties.a: Invalid value: 1: must be a schema"),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"},
            ".x-kubernetes-list-map-keys: Required value",
        ),
        ({"type": "object", "x-kubernetes-validations": [{}]}, ".x-kubernetes-validations[0].rule: Required value"),
        ({"type": "object", "$ref": "#/x"}, ".$ref: unknown field"),
    ],
)
def test_schemas_that_are_not_structural_are_refused(schema: Json, problem: str) -> None:
    path = "spec.versions[0].schema.openAPIV3Schema.properties.spec"
    assert any(one.startswith(path + problem) for one in problems_of(definition_with(schema)))


def test_whole_numbers_or_texts_may_be_said_in_both_ways() -> None:
    either = [{"type": "integer"}, {"type": "string"}]
    for more in ({}, {"anyOf": either}, {"allOf": [{"anyOf": either}, {"maxLength": 3}]}):
        schema = {"x-kubernetes-int-or-string": True, **more}
        checked(definition_with({"type": "object", "properties": {"port": schema}}), upkeep({"port": "web"}))
    wrong = {"x-kubernetes-int-or-string": True, "anyOf": either[:1]}
    assert "must be empty to be structural" in problems_of(definition_with(wrong))[0]


def test_a_definition_needs_a_schema_of_an_object() -> None:
    definition = copied(DEFINITION)
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "string"}
    assert 'openAPIV3Schema.type: Invalid value: "string": must be object at the root' in problems_of(definition)[0]
    del definition["spec"]["versions"][0]["schema"]
    assert "openAPIV3Schema: Required value: schemas are required" in problems_of(definition)[0]


@pytest.mark.parametrize(
    ("rule", "value", "refused"),
    [
        ("self.a < self.b", {"a": 1, "b": 2}, False),
        ("self.a < self.b", {"a": 2, "b": 2}, True),
        ("self.c == 1", {"a": 2}, True),
        ("oldSelf.a == self.a", {"a": 2}, False),  # nothing has changed yet
    ],
)
def test_rules_in_cel_are_evaluated(rule: str, value: Json, refused: bool) -> None:
    integers = {name: {"type": "integer"} for name in "abc"}
    schema = {"type": "object", "properties": integers, "x-kubernetes-validations": [{"rule": rule}]}
    if refused:
        assert problems_of(definition_with(schema), upkeep(value))[0].startswith("spec: Invalid value")
    else:
        checked(definition_with(schema), upkeep(value))


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"rule": "self.a <"}, "rule: Invalid value"),
        ({"rule": "other == 1"}, "undeclared reference"),
        ({"rule": "1 + 1"}, "must evaluate to a bool"),
        ({"rule": " "}, "rule: Required value"),
        ({"rule": "true", "reason": "Bad"}, "reason: Unsupported value"),
        ({"rule": "true", "message": 1}, "message: Invalid value"),
        ({"rule": "true", "mesage": "m"}, "unknown field"),
        ("true", "rule: Required value"),
    ],
)
def test_rules_in_cel_are_checked_with_their_definition(rule: Any, problem: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [rule]}
    assert problem in problems_of(definition_with(schema))[0]


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ({"properties": {"port": {"type": "integer"}}}, "entries must all be names of item properties"),
        ({"properties": {"name": {"type": "string"}}}, "must have a default or be a required property"),
        ({"properties": {"name": {"type": "array", "items": {"type": "string"}}}}, "must be a scalar type"),
        ({"properties": {"name": {"type": "string", "default": "a", "nullable": True}}}, "cannot be nullable"),
        ({"nullable": True, "properties": {"name": {"type": "string", "default": "a"}}}, "cannot be nullable"),
    ],
)
def test_the_keys_of_lists_are_fields_that_all_items_have(items: Json, problem: str) -> None:
    by_name = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    schema = {"type": "array", "items": {"type": "object", **items}, **by_name}
    assert problem in "".join(problems_of(definition_with({"type": "object", "properties": {"ports": schema}})))


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ({"mode": "a"}, {"mode": "a"}, None),
        ({"mode": "a"}, {"mode": "b"}, "spec.mode"),
        ({}, {"mode": "b"}, None),
        ({"labels": {"x": 1}}, {"labels": {"x": 2}}, "spec.labels.x"),
        ({"items": [{"name": "a", "n": 1}]}, {"items": [{"name": "b"}, {"name": "a", "n": 2}]}, "spec.items[1].n"),
        ({"items": [{"name": "a", "n": 1}]}, {"items": [{"name": "b", "n": 2}]}, None),
        ({"plain": [1]}, {"plain": [2]}, None),
    ],
)
def test_rules_about_changes_look_at_the_value_of_before(old: Json, new: Json, path: str | None) -> None:
    fixed = {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "it is fixed"}]}
    number = {"type": "integer", **fixed}
    item = {"type": "object", "properties": {"name": {"type": "string"}, "n": number}}
    schema = compile_schema(
        {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "mode": {"type": "string", **fixed},
                        "labels": {"type": "object", "additionalProperties": number},
                        "items": {"type": "array", "items": item, "x-kubernetes-list-map-keys": ["name"]},
                        "plain": {"type": "array", "items": number},
                    },
                }
            },
        }
    )
    assert schema is not None
    assert [one.field for one in schema.change_problems({"spec": old}, {"spec": new})] == ([path] if path else [])


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:alpha:]]+$", "a1", False),
        (r"^\p{Lu}", "Ä", True),
        ("^(a+)+$", "a" * 5000 + "b", False),  # hours for expressions that backtrack
    ],
)
def test_patterns_are_those_of_go(pattern: str, text: str, *, matches: bool) -> None:
    schema = compile_schema({"type": "string", "pattern": pattern})
    assert schema is not None
    assert schema.pattern is not None
    assert (schema.pattern.search(text) is not None) is matches


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "string", "format": "date"}, ["not looked at"], ""),
        ({"type": "string", "format": "date"}, [{"a": 1}], "unknown field"),
        ({"type": "string", "format": "unknown"}, [], "must be of type string"),
        ({"type": "boolean", "format": "date"}, [], "must be of type boolean"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": None}, ""),
        ({"type": "object", "x-kubernetes-embedded-resource": True}, {"kind": "Pod"}, "apiVersion: Required value"),
    ],
)
def test_peculiarities_of_the_checks_of_kube_apiserver(schema: Json, value: Any, problem: str) -> None:
    objects = definition_with({"type": "object", "properties": {"a": schema}}), upkeep({"a": value})
    if problem:
        assert problem in problems_of(*objects)[0]
    else:
        checked(*objects)
