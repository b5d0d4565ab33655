"""Rules of ``x-kubernetes-list-type`` and ``-map-keys`` in schemas of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
    required,
    unsupported,
)

_LIST_TYPES: Final = ("atomic", "map", "set")


def list_type_problems(said: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with how the items of a list are told apart."""
    list_type, keys = said.get("x-kubernetes-list-type"), said.get("x-kubernetes-list-map-keys")
    if list_type is not None and list_type not in _LIST_TYPES:
        yield unsupported(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES)
    elif list_type and said.get("type") != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        yield bad_value(f"{path}.type", said.get("type") or "", detail)
    elif list_type == "map" and not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    elif keys and list_type != "map":
        yield bad_value(
            f"{path}.x-kubernetes-list-type", list_type or "", "must be map if x-kubernetes-list-map-keys is non-empty"
        )
    elif list_type in ("map", "set") and isinstance(said.get("items"), dict):
        yield from _item_problems(said["items"], list_type, keys or [], path)


def _item_problems(items: Json, list_type: str, keys: list[Any], path: str) -> Iterator[FieldProblem]:
    if items.get("nullable"):
        yield forbidden_field(
            f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        )
    if list_type == "set":
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield bad_value(f"{path}.items.type", items.get("type") or "", detail)
        return
    where, properties = f"{path}.x-kubernetes-list-map-keys", items.get("properties")
    if not isinstance(properties, dict):
        properties = {}  # what else is wrong with it is said of the items themselves
    if len({*map(repr, keys)}) < len(keys):
        yield bad_value(where, keys, "must not contain duplicate entries")
    for key in keys:
        found = properties.get(key) if isinstance(key, str) else None
        if not isinstance(found, dict):
            yield bad_value(where, keys, "entries must all be names of item properties")
            continue
        of_key, why = f"{path}.items.properties[{key}]", "this property is in x-kubernetes-list-map-keys, so it"
        if found.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield bad_value(f"{of_key}.type", found["type"], detail)
        if (
            key not in (needed if isinstance(needed := items.get("required"), list) else ())
            and found.get("default") is None
        ):
            yield required(f"{of_key}.default", f"{why} must have a default or be a required property")
        if found.get("nullable"):
            yield forbidden_field(f"{of_key}.nullable", f"{why} cannot be nullable")
