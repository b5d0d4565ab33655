"""Lists and maps without anything in them, which the API server does not keep: to it they are the same as none.

So a change from ``tolerations: []`` to no tolerations is none: no new generation, and no rollout.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from trio_sched.documents.json_values import Json, encode
from trio_sched.simulator.validation.meta.shapes import fields_of, raw_table


def may_have_empty_parts(fields: Json) -> bool:
    """Whether *fields* may have lists or maps that `without_empty_parts` leaves out; much quicker than that."""
    try:
        encoded = encode(fields)
    except RecursionError:  # a part that may be anything is nested deep
        return True
    return b":[]" in encoded or (b":{}" in encoded and _empty_map().search(encoded) is not None)


@cache
def _empty_map() -> re.Pattern[bytes]:
    """A field that is a map in some message; those of other messages that are empty are kept."""
    names = {
        re.escape(name)
        for fields in raw_table().values()
        for name, (_, type_, *_rest) in fields.items()
        if type_.startswith("map ")
    }
    return re.compile(f'"(?:{"|".join(sorted(names))})":{{}}'.encode())


def without_empty_parts(fields: Json, message: str) -> Json:
    """A copy of *fields*, an object of *message*, without empty lists and maps; the rest is shared."""
    kept: Json = {}
    known = fields_of(message)
    for name, value in fields.items():
        found = known.get(name)
        if found is None:
            kept[name] = value
        elif value or not found.type.startswith(("list ", "map ")):
            kept[name] = _without(value, found.type)
    return kept


def _without(value: Any, type_: str) -> Any:
    container, _, inner = type_.partition(" ")
    if container == "list" and isinstance(value, list):
        return [_without(item, inner) for item in value]
    if container == "map" and isinstance(value, dict):
        return {name: _without(item, inner) for name, item in value.items()}
    return without_empty_parts(value, type_) if isinstance(value, dict) and fields_of(type_) else value
