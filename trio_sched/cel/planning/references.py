"""Which parts of a device an expression depends on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from trio_sched.cel.checking.checker import Checked
from trio_sched.cel.syntax.nodes import Bind, Call, Comprehension, Constant, Name, Node, OptionalMap, Select, parts
from trio_sched.cel.syntax.recursion import deep_recursion

_WHOLE: Final = frozenset({"attributes", "capacity"})
_NAMED: Final = 3
"""Parts of the path of a value: field, domain, name."""
_SELECTIONS: Final = frozenset({"_[_]", "_[?_]"})


class Reference(NamedTuple):
    """One value of a device; *name* is empty where it stands for the whole domain, as for the scalar fields."""

    field: str
    domain: str
    name: str


class _Unlimited(Exception):  # no error: the answer is all of it
    """The expression looks at parts that cannot be enumerated."""


Path = tuple[str, ...]
Scope = dict[str, Path | None]
"""Names → what of the device they stand for; None: nothing."""


def references(checked: Checked, variable: str) -> frozenset[Reference] | None:
    """What *checked* depends on of the device that is called *variable*; None if that cannot be enumerated."""
    found: set[Reference] = set()
    try:
        with deep_recursion():
            for path in _used(checked, checked.root, {variable: ()}):
                found.add(_reference(path))
    except _Unlimited:
        return None
    return frozenset(found)


def _reference(path: Path) -> Reference:
    if not path or (path[0] in _WHOLE and len(path) < 2):
        raise _Unlimited
    field, domain, name = (*path, "", "")[:3] if path[0] in _WHOLE else (path[0], "", "")
    return Reference(field, domain, name)


def _used(checked: Checked, node: Node, scope: Scope) -> Iterator[Path]:
    """What *node* and its parts look at."""
    path = _path(checked, node, scope)
    if path is not None:
        yield path
        return
    match node:
        case Call(function="@in", arguments=(Constant(kind="string") as key, holder)):
            path = _path(checked, holder, scope)
            if path and path[0] in _WHOLE and len(path) < _NAMED:
                yield (*path, key.value)
                return
        case Comprehension():
            yield from _used(checked, node.over, scope)
            scope = {**scope, **dict.fromkeys(node.names)}
            if node.condition is not None:
                yield from _used(checked, node.condition, scope)
            yield from _used(checked, node.body, scope)
            return
        case Bind():
            yield from _used_in_binding(checked, node.name, node.value, node.body, scope)
            return
        case OptionalMap():
            # Whether there is anything is a question about the target itself.
            yield from _used(checked, node.target, scope)
            yield from _used_in_binding(checked, node.name, node.target, node.body, scope)
            return
    for part in parts(node):
        yield from _used(checked, part, scope)


def _used_in_binding(checked: Checked, name: str, value: Node, body: Node, scope: Scope) -> Iterator[Path]:
    path = _path(checked, value, scope)
    if path is None:
        yield from _used(checked, value, scope)
    yield from _used(checked, body, {**scope, name: path})


def _path(checked: Checked, node: Node, scope: Scope) -> Path | None:
    """The part of the device that *node* is; None if it is none, or is no part with a name."""
    match node:
        case Name():
            return scope.get(node.name.removeprefix("."))
        case Select() if id(node) not in checked.names:
            path = _path(checked, node.operand, scope)
            return None if path is None else _longer(path, node.field)
        case Call(function=function, arguments=(holder, key)) if function in _SELECTIONS:
            path = _path(checked, holder, scope)
            if path is None:
                return None
            if isinstance(key, Constant):
                return _longer(path, key.value) if key.kind == "string" else None
            return None
    return None


def _longer(path: Path, part: str) -> Path:
    """Beyond a value nothing is looked up by name: its parts belong to it."""
    return path if len(path) == _NAMED or (path and path[0] not in _WHOLE) else (*path, part)
