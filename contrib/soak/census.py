"""The sizes of all containers that can be reached from some objects, by the attributes that lead to them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import _lru_cache_wrapper
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import msgspec
import numpy as np

_NOT_ENTERED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, msgspec.Struct, str, bytes, int, float)
"""Objects from outside (structs) are counted by the container that holds them."""


def census(roots: Mapping[str, object], *, leave_out: Iterable[str] = ()) -> Counter[str]:
    """Count the entries of all dicts, lists, tuples, sets, deques and arrays that *roots* lead to.

    Args:
        roots: objects by name.
        leave_out: modules (and those below them) whose objects are not entered.

    Returns:
        Path → entries. A path names classes and attributes, so that the containers of all objects that are reached in
        the same way are added up: ``NodeTable.names``.
    """
    prefixes = tuple(leave_out)
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: deque[tuple[str, Any]] = deque(roots.items())
    while waiting:
        path, one = waiting.popleft()
        if id(one) in seen or (isinstance(one, _NOT_ENTERED) and not isinstance(one, tuple)) or one is None:
            continue
        seen.add(id(one))
        kind = type(one)
        if kind.__module__.startswith(prefixes) if prefixes else False:
            continue
        if isinstance(one, np.ndarray):
            sizes[path] += one.size
        elif isinstance(one, dict):
            sizes[path] += len(one)
            waiting.extend((f"{path}[]", value) for pair in one.items() for value in pair)
        elif isinstance(one, list | tuple | set | frozenset | deque):
            if not isinstance(one, tuple | frozenset):  # those cannot grow: whatever holds them does
                sizes[path] += len(one)
            waiting.extend((f"{path}[]", value) for value in one)
        elif isinstance(one, _lru_cache_wrapper):
            if one.cache_info().maxsize is None:
                sizes[path] += one.cache_info().currsize
        else:
            waiting.extend((f"{kind.__name__}.{name}", value) for name, value in attributes_of(one))
    return sizes


def attributes_of(one: object) -> Iterator[tuple[str, object]]:
    """The names and values of the attributes of *one* itself, slots included."""
    yield from getattr(one, "__dict__", {}).items()
    for kind in type(one).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            try:
                yield name, object.__getattribute__(one, name)
            except AttributeError:  # not set, or a private name of a class
                continue
    if isinstance(one, MethodType):
        yield "__self__", one.__self__


def module_containers(modules: Mapping[str, ModuleType], prefixes: tuple[str, ...]) -> dict[str, object]:
    """The mutable containers and caches at the top of *modules* whose names begin with one of *prefixes*."""
    return {
        f"{name}.{attribute}": value
        for name, module in modules.items()
        if name.startswith(prefixes)
        for attribute, value in vars(module).items()
        if isinstance(value, dict | list | set | deque | _lru_cache_wrapper) and not attribute.startswith("__")
    }
