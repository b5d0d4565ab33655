"""How many entries everything that a scheduler keeps has: to find what is never forgotten."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

_OURS = ("trio_sched.", "plugins_builtin.")
_OTHERS = ("trio_sched.simulator.", "trio_sched.testing.")
_CONTAINERS = (dict, set, list, deque, WeakKeyDictionary)


def container_sizes(root: Any) -> dict[str, int]:
    """Path of attributes → entries, of all containers that *root* reaches through objects of this project.

    Containers inside of containers count for the path of the outermost one.
    """
    sizes: dict[str, int] = {}
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [(type(root).__name__, root)]
    while left:
        path, one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, _CONTAINERS):
            sizes[path] = sizes.get(path, 0) + len(one)
            values = list(one.values()) if isinstance(one, Mapping) else list(one)
            left += [(path, value) for value in values]
        elif _is_ours(type(one)) and not isinstance(one, type):
            left += [(f"{path}.{name}", value) for name, value in _attributes(one)]
        elif getattr(type(one), "__name__", "") == "method":
            left.append((path, one.__self__))
    return sizes


def _is_ours(kind: type[Any]) -> bool:
    return kind.__module__.startswith(_OURS) and not kind.__module__.startswith(_OTHERS)


def _attributes(one: Any) -> Iterator[tuple[str, Any]]:
    names = {name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())}
    names |= set(getattr(one, "__dict__", ()))
    for name in sorted(names - {"__weakref__", "__dict__"}):
        try:
            yield name, object.__getattribute__(one, name)
        except AttributeError:  # a slot that is not filled
            continue


def grown(before: dict[str, int], after: dict[str, int], *, by: int) -> dict[str, tuple[int, int]]:
    """The paths whose containers have gained more than *by* entries."""
    return {path: (before.get(path, 0), size) for path, size in after.items() if size - before.get(path, 0) > by}
