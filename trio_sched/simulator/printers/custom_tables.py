"""The tables of custom resources, whose definition names the columns with paths into the object."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.printers.ages import since
from trio_sched.simulator.printers.table_cells import columns, name

Reader = Callable[[Json], list[Any]]

_STEP: Final = re.compile(
    r"""\.(?P<name>(?:[^.\[\]\\]|\\.)+)
      | \[(?P<quoted>'[^']*'|"[^"]*")\]
      | \[(?P<index>-?\d{1,6})\]
      | (?P<all>\[\*\]|\.\*)
      | \[\?\(@\.(?P<key>\w+)\s*==\s*(?P<value>'[^']*'|"[^"]*"|\w+)\)\]""",
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def reader_of(path: str) -> Reader | None:
    """A function that returns what a JSONPath such as ``.status.conditions[?(@.type=="Ready")].status`` selects.

    ``None``: *path* is malformed, or has more than names, indexes, ``*`` and comparisons.
    """
    steps: list[Callable[[Any], list[Any]]] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return None
        steps.append(_step(match))
        position = match.end()

    def read(fields: Json) -> list[Any]:
        found: list[Any] = [fields]
        for step in steps:
            found = [inner for value in found for inner in step(value)]
        return found

    return read if steps else None


def _step(match: re.Match[str]) -> Callable[[Any], list[Any]]:
    part = match.groupdict()
    if part["index"]:
        index = int(part["index"])
        return lambda value: value[index : index + 1 or None] if isinstance(value, list) else []
    if part["all"]:
        return _all
    if part["key"]:
        key, wanted = part["key"], part["value"].strip("'\"")
        return lambda value: [
            one
            for one in (value if isinstance(value, list) else [])
            if isinstance(one, dict) and key in one and _text(one[key]) == wanted
        ]
    step = part["quoted"][1:-1] if part["quoted"] else re.sub(r"\\(.)", r"\1", part["name"])
    return lambda value: [value[step]] if isinstance(value, dict) and step in value else []


def _all(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def custom_columns(printed: tuple[Json, ...]) -> list[Json]:
    """The ``columnDefinitions`` for the *printed* columns of a definition."""
    shown = columns("Name")
    for column in printed:
        about = {field: column.get(field, "") for field in ("name", "type", "format", "description")}
        shown.append({**about, "priority": column.get("priority", 0)})
    return shown


def custom_row(printed: tuple[Json, ...], fields: Json, now: datetime) -> list[Any]:
    """The cells of one object; ``None`` where there is nothing to show."""
    return [name(fields), *(_cell(column, fields, now) for column in printed)]


def _cell(column: Json, fields: Json, now: datetime) -> Any:
    read = reader_of(column.get("jsonPath") or "")
    found = read(fields) if read is not None else []
    if not found or found[0] is None:
        return None
    value = found[0]
    match column.get("type"):
        case "date":
            return since(value, now) if isinstance(value, str) else "<unknown>"
        case "integer" | "number" | "boolean":
            return value if isinstance(value, int | float) else None
    return _text(value)
