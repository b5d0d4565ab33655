"""Valid objects of every kind, and mistakes in them: for comparing verdicts with a real API server's."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml
from attrs import frozen

Json = dict[str, Any]
Path_ = tuple[str | int, ...]

_TEXTS: Final = (
    "",
    "UPPER",
    "a b",
    "-a",
    "a/b/c",
    "x" * 300,
    "ä",
    "a_b",
    "/",
    "..",
    "example.com/a",
    "0",
    "-1",
    "1.5Gi",
)
_NUMBERS: Final = (-1, 0, 1, 2, 101, 65536, 2**31 - 1, 2**31, 1.5)
_OTHERS: Final = (True, [], {}, None, ["a"], {"a": "b"}, [{}])


def valid_objects() -> list[Json]:
    """Every object of ``valid_manifests.yaml``."""
    return copy.deepcopy(_objects())


@cache
def _objects() -> list[Json]:
    text = Path(__file__).with_name("valid_manifests.yaml").read_text(encoding="utf-8")
    return list(yaml.load_all(text, yaml.CSafeLoader))  # every process reads it to collect tests


@frozen
class Mistake:
    """An object with one change that may be a mistake."""

    fields: Json
    what: str


def mistakes(fields: Json) -> Iterator[Mistake]:
    """Every single change of *fields*: removed, of another type, another value, an unknown field, a repeated item."""
    for path, value in list(_places(fields)):
        where = ".".join(map(str, path))
        if path in (("apiVersion",), ("kind",)):
            continue
        yield Mistake(changed(fields, path, _REMOVE), f"{where} removed")
        candidates = [*_TEXTS, *_NUMBERS, *_OTHERS] if not isinstance(value, dict | list) else ["x", 1, *_OTHERS]
        for other in candidates:
            if other != value or type(other) is not type(value):
                yield Mistake(changed(fields, path, other), f"{where} = {other!r:.40}")
        if isinstance(value, dict):
            yield Mistake(changed(fields, (*path, "unknown"), "x"), f"{where}.unknown")
            yield Mistake(changed(fields, (*path, "a b/c"), "x"), f"{where}.'a b/c'")
        if isinstance(value, list) and value:
            yield Mistake(changed(fields, path, [*value, value[0]]), f"{where}[0] twice")


def sample_of_mistakes(rng: Random, count: int) -> list[Mistake]:
    """*count* of all mistakes in all valid objects."""
    return rng.sample([one for fields in valid_objects() for one in mistakes(fields)], count)


_REMOVE: Final = object()


def _places(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, (*path, index))


def changed(place: Any, path: Path_, value: Any) -> Any:
    """A copy with *value* at *path*, which shares with *place* what is not on the way there: there are thousands."""
    step, *rest = path
    made = place.copy()
    if rest:
        made[step] = changed(place[step], tuple(rest), value)
    elif value is _REMOVE:
        del made[step]
    else:
        made[step] = value
    return made
