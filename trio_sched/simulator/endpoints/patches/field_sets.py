"""Sets of fields, as managers own them: which fields an object has, what they are worth, and their JSON.

A path is a tuple of steps in the notation of ``fieldsV1``: ``f:NAME`` goes to a field or a key, ``k:{…}`` to the item
of a list with these keys, ``v:…`` to a value of a set. Lists without keys and objects that are atomic are owned as a
whole.

Source: structured-merge-diff, ``fieldpath`` and ``typed``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from attrs import field, frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.validation.apiextensions.custom_schemas import Schema
from trio_sched.simulator.validation.meta.shapes import Field, fields_of

Path = tuple[str, ...]

FREE: Final = Field("free")
"""A field of a custom resource: objects are merged, lists are atomic."""
_METADATA: Final = "meta.v1.ObjectMeta"
_KEY_DEFAULTS: Final = {"protocol": "TCP"}

_encode = msgspec.json.Encoder(order="sorted").encode


@frozen
class CustomField(Field):
    """A field whose shape the definition of a custom resource says.

    Attributes:
        schema: what it may be.
    """

    schema: Schema = field(kw_only=True)

    @classmethod
    def of(cls, schema: Schema) -> CustomField:
        """The field with *schema*."""
        said = schema.keywords
        match said.get("x-kubernetes-list-type"):
            case "map":
                applied: tuple[str, ...] | str = tuple(said.get("x-kubernetes-list-map-keys") or ())
            case "set":
                applied = "set"
            case _:
                applied = "atomic" if said.get("x-kubernetes-map-type") == "atomic" else ""
        return cls("custom", applied=applied, schema=schema)


def root_of(resource: ResourceType) -> Field:
    """An object of *resource* as a field."""
    if resource.schema is not None:
        return CustomField.of(resource.schema)
    return Field(resource.message)


def field_of(holder: Field, name: str) -> Field:
    """The field *name* of *holder*; those of holders that are not known are free."""
    if isinstance(holder, CustomField):
        if name == "metadata" and "metadata" not in holder.schema.properties:
            return Field(_METADATA)
        found = holder.schema.properties.get(name) or holder.schema.additional
        return FREE if found is None else CustomField.of(found)
    known = fields_of(holder.type)
    if known:
        return known.get(name, FREE)
    return Field(_METADATA) if name == "metadata" and holder.type not in ("", FREE.type) else FREE


def _item_of(field: Field) -> Field:
    """An item of a list."""
    if isinstance(field, CustomField):
        return FREE if field.schema.items is None else CustomField.of(field.schema.items)
    return Field(field.type.partition(" ")[2])


def paths_of(value: Json, holder: Field, path: Path = ()) -> Iterator[Path]:
    """Every path of *value*, which is an object in *holder*."""
    for name, inner in value.items():
        yield from _paths(inner, field_of(holder, name), (*path, f"f:{name}"))


def _paths(value: Any, field: Field, path: Path) -> Iterator[Path]:
    if isinstance(value, dict) and value and merges_maps(field):
        if not field.type.startswith("map "):
            yield from paths_of(value, field, path)
            return
        for key in value:
            yield (*path, f"f:{key}")
    elif isinstance(value, list) and isinstance(field.applied, tuple):
        for item in value:
            if isinstance(item, dict):
                here = (*path, item_step(item, field.applied))
                yield here
                yield from paths_of(item, _item_of(field), here)
    elif isinstance(value, list) and field.applied == "set":
        for item in value:
            yield (*path, _value_step(item))
    else:
        yield path


def maps_of(value: Any, holder: Field, path: Path = ()) -> Iterator[Path]:
    """The paths of what in *value*, an object in *holder*, is there by itself, without what it holds.

    Those are maps with keys of their own, such as labels; in custom resources all that is merged.
    """
    for name, inner in value.items():
        field, here = field_of(holder, name), (*path, f"f:{name}")
        is_custom = field is FREE or isinstance(field, CustomField)
        if isinstance(inner, dict) and merges_maps(field):
            if is_custom or field.type.startswith("map "):
                yield here
            if not field.type.startswith("map "):
                yield from maps_of(inner, field, here)
        elif isinstance(inner, list) and (field.applied == "set" or isinstance(field.applied, tuple)):
            if is_custom:
                yield here
            for one in inner:
                if isinstance(one, dict) and isinstance(field.applied, tuple):
                    yield from maps_of(one, _item_of(field), (*here, item_step(one, field.applied)))


def merges_maps(field: Field) -> bool:
    """Whether an object in *field* is merged, and not replaced."""
    return field.applied != "atomic" and field.type != "raw"


def item_step(item: Json, keys: Iterable[str]) -> str:
    """The step to *item* of a list whose items are told apart by *keys*."""
    found = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in keys}
    return "k:" + _encode({key: value for key, value in found.items() if value is not None}).decode()


def is_key(path: Path) -> bool:
    """Whether *path* leads to one of the keys of an item."""
    parent = path[-2] if len(path) > 1 else ""
    return parent.startswith("k:") and path[-1][2:] in msgspec.json.decode(parent[2:])


def _value_step(item: Any) -> str:
    return "v:" + _encode(item).decode()


def merged(live: Any, wanted: Any, field: Field) -> Any:
    """*wanted* applied to *live*, what the field has; neither is changed."""
    if isinstance(wanted, dict) and merges_maps(field):
        result = dict(live) if isinstance(live, dict) else {}
        for name, value in wanted.items():
            if value is None:
                result.pop(name, None)
            elif field.type.startswith("map "):
                result[name] = value
            else:
                result[name] = merged(result.get(name), value, field_of(field, name))
        return result
    known = live if isinstance(live, list) else []
    if isinstance(wanted, list) and isinstance(field.applied, tuple):
        return _merged_items(known, wanted, field.applied, _item_of(field))
    if isinstance(wanted, list) and field.applied == "set":
        return [*known, *(item for item in wanted if item not in known)]
    return wanted


def _merged_items(live: list[Any], wanted: list[Any], keys: tuple[str, ...], field: Field) -> list[Any]:
    """Items in the order of *wanted*; those that only *live* has stay before the item that they stand before."""
    known = {item_step(item, keys): item for item in live if isinstance(item, dict)}
    named = [item_step(item, keys) if isinstance(item, dict) else "" for item in wanted]
    rest = iter(known.items())
    result: list[Any] = []
    ahead = next(rest, None)
    seen: set[str] = set()
    for step, item in zip(named, wanted, strict=True):
        while ahead is not None and (ahead[0] not in named or ahead[0] in seen):
            if ahead[0] not in named:
                result.append(ahead[1])
            ahead = next(rest, None)
        result.append(merged(known.get(step), item, field))
        seen.add(step)
    while ahead is not None:
        if ahead[0] not in named:
            result.append(ahead[1])
        ahead = next(rest, None)
    return result


MISSING: Final = object()
"""In place of a value that is not there."""


def value_at(value: Any, path: Path) -> Any:
    """What *path* leads to in *value*, or `MISSING`."""
    for step in path:
        found = _place(value, step)
        if found is None:
            return MISSING
        value = value[found]
    return value


def remove(value: Any, path: Path) -> None:
    """Take what *path* leads to out of *value*, in place, and maps and lists that are empty then."""
    trail = []
    for step in path:
        found = _place(value, step)
        if found is None:
            return
        trail.append((value, found))
        value = value[found]
    for number, (holder, found) in enumerate(reversed(trail)):
        if number and (holder[found] or path[len(path) - number - 1] == "f:spec"):
            return
        del holder[found]


def _place(value: Any, step: str) -> Any:
    """The key or index in *value* that *step* means; None: nothing is there."""
    kind, _, name = step.partition(":")
    if kind == "f":
        return name if isinstance(value, dict) and name in value else None
    if not isinstance(value, list):
        return None
    try:
        wanted = msgspec.json.decode(name)
    except msgspec.DecodeError:
        return None
    if kind == "v":
        return next((index for index, item in enumerate(value) if item == wanted), None)
    if not isinstance(wanted, dict):
        return None
    for index, item in enumerate(value):
        if isinstance(item, dict) and all(item.get(k, _KEY_DEFAULTS.get(k)) == v for k, v in wanted.items()):
            return index
    return None


def as_fields(paths: Iterable[Path]) -> Json:
    """*paths* as ``fieldsV1``; ``.`` stands in what is owned itself and has owned parts."""
    root: Json = {}
    ends = sorted(paths)
    for path in ends:
        place = root
        for step in path:
            place = place.setdefault(step, {})
    for path in ends:
        place = root
        for step in path:
            place = place[step]
        if place:
            place["."] = {}
    return root


_MOST_STEPS: Final = 200


def from_fields(fields: Any, path: Path = ()) -> Iterator[Path]:
    """The paths in ``fieldsV1``; what is malformed is left out."""
    if not isinstance(fields, dict) or len(path) > _MOST_STEPS:
        return
    for step, inner in fields.items():
        if step == ".":
            yield path
        elif step[:2] in ("f:", "k:", "v:"):
            if inner:
                yield from from_fields(inner, (*path, step))
            else:
                yield (*path, step)


def shown(path: Path) -> str:
    """*path* as conflicts show it, like ``.spec.containers[name="c"].image``."""
    text = ""
    for step in path:
        kind, _, name = step.partition(":")
        if kind == "f":
            text += f".{name}"
        elif kind == "v":
            text += f"[={name}]"
        else:
            keys = msgspec.json.decode(name)
            text += "[" + ",".join(f"{key}={_encode(value).decode()}" for key, value in sorted(keys.items())) + "]"
    return text
