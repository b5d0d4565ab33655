"""The texts that a plugin may look for: from its code, its arguments, and the objects that it is checked on.

Random changes hit a label that matters only if they know its name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any, Final

import attrs
import msgspec

from trio_sched.plugin_api.custom_resources import as_json

_TEXT: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,78}[A-Za-z0-9])?")
"""What labels, their values and most other names look like."""
_MAX_TEXTS: Final = 200
_MAX_DEPTH: Final = 6


def texts_of_plugin(instance: Any) -> list[str]:
    """The texts in the code and the attributes of a plugin that could be keys or values, its own first."""
    found: dict[str, None] = {}
    seen: set[int] = set()
    for base in type(instance).__mro__:
        if base is not object:
            _add(found, _texts_of_class(base, seen))
    _add(found, _texts_in(getattr(instance, "__dict__", None), 0))
    if attrs.has(type(instance)):
        _add(found, _texts_in([getattr(instance, a.name, None) for a in attrs.fields(type(instance))], 0))
    return list(found)[:_MAX_TEXTS]


def _add(found: dict[str, None], texts: Iterator[str]) -> None:
    for text in texts:
        if _TEXT.fullmatch(text):
            found[text] = None


def _texts_of_class(plugin: type[Any], seen: set[int]) -> Iterator[str]:
    for value in vars(plugin).values():
        function = inspect.unwrap(value) if callable(value) else value
        if isinstance(function, staticmethod | classmethod):
            function = function.__func__
        if isinstance(function, property):
            function = function.fget
        if isinstance(function, FunctionType):
            yield from _texts_of_function(function, seen, 0)
        elif isinstance(function, str | Mapping | Collection):
            yield from _texts_in(function, 0)


def _texts_of_function(function: FunctionType, seen: set[int], depth: int) -> Iterator[str]:
    """The texts in a function, and in the globals and functions of its own package that it names."""
    if id(function) in seen or depth > _MAX_DEPTH:
        return
    seen.add(id(function))
    codes = list(_codes(function.__code__))
    for code in codes:
        yield from _texts_in([const for const in code.co_consts if const != function.__doc__], 0)
    package = (function.__module__ or "").partition(".")[0]
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    named = [function.__globals__.get(name) for code in codes for name in code.co_names]
    for value in [*cells, *named]:
        if isinstance(value, FunctionType):
            if (value.__module__ or "").partition(".")[0] == package and package != "trio_sched":
                yield from _texts_of_function(value, seen, depth + 1)
        else:
            yield from _texts_in(value, 0)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _texts_in(value: Any, depth: int) -> Iterator[str]:
    """The texts in a value, its keys included; of objects only those that are plain data."""
    if isinstance(value, str):
        yield value
    elif depth > _MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _texts_in(key, depth + 1)
            yield from _texts_in(part, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts_in(part, depth + 1)
    elif attrs.has(type(value)) and "Args" in type(value).__name__:
        yield from _texts_in(attrs.asdict(value), depth + 1)


def texts_of_objects(objects: Collection[Any]) -> list[str]:
    """The texts in Kubernetes objects that could be keys or values."""
    found: dict[str, None] = {}
    for one in objects:
        _add(found, _texts_in(msgspec.json.decode(as_json(one)), 0))
    return list(found)[:_MAX_TEXTS]
