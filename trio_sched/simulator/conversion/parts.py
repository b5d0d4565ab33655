"""Changes of parts of objects, which may have any form; whatever has another type than expected stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trio_sched.documents.json_values import Json


def changed_part(change: Callable[[Json], Json], *path: str) -> Callable[[Json], Json]:
    """A function that applies *change* to the mapping at *path*."""

    def reshape(fields: Json) -> Json:
        reshaped: Json = _changed(fields, path, change)
        return reshaped

    return reshape


def changed_items(change: Callable[[Json], Json], *path: str) -> Callable[[Json], Json]:
    """A function that applies *change* to the mappings in the list or tuple at *path*."""

    def change_all(items: Any) -> Any:
        if not isinstance(items, list | tuple):
            return items
        return [change(one) if isinstance(one, dict) else one for one in items]

    def reshape(fields: Json) -> Json:
        reshaped: Json = _changed(fields, path, change_all, of_mappings=False)
        return reshaped

    return reshape


def _changed(value: Any, path: tuple[str, ...], change: Callable[[Any], Any], *, of_mappings: bool = True) -> Any:
    if not path:
        return change(value) if isinstance(value, dict) or not of_mappings else value
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {**value, path[0]: _changed(value[path[0]], path[1:], change, of_mappings=of_mappings)}


def without(fields: Json, *names: str) -> Json:
    """*fields* but for those of these *names*."""
    return {name: value for name, value in fields.items() if name not in names}
