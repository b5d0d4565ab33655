"""The parts of a parsed expression, macros included: what has a meaning of its own has a class of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from attrs import frozen


@frozen(eq=False)
class Constant:
    """A literal; *kind* is its type: ``int``, ``uint``, ``double``, ``string``, ``bytes``, ``bool`` or ``null``."""

    at: int
    """The code point that errors about it point at; so in all classes."""
    kind: str
    value: Any


@frozen(eq=False)
class Name:
    """A variable, or the first part of a qualified name; with a leading dot if it is of the root scope."""

    at: int
    name: str


@frozen(eq=False)
class Select:
    """``operand.field``, ``operand.?field``, or with *tests* ``has(operand.field)``."""

    at: int
    operand: Node
    field: str
    is_optional: bool = False
    tests: bool = False


@frozen(eq=False)
class Call:
    """A function or method by its name, or an operator by that of cel-go: ``_+_``, ``_[_]``, ``_?_:_``."""

    at: int
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


@frozen(eq=False)
class Logical:
    """A chain of ``&&`` or ``||``, however long; *function* is ``_&&_`` or ``_||_``."""

    at: int
    function: str
    operands: tuple[Node, ...]


@frozen(eq=False)
class ListLiteral:
    """``[a, ?b]``; *optional* has the indices of elements that are left out if they are none."""

    at: int
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@frozen(eq=False)
class Entry:
    """An entry of a map, or a field of a message."""

    at: int
    key: Node | str
    value: Node
    is_optional: bool = False


@frozen(eq=False)
class MapLiteral:
    """``{k: v, ?k: v}``."""

    at: int
    entries: tuple[Entry, ...]


@frozen(eq=False)
class MessageLiteral:
    """``name{field: value}``."""

    at: int
    type_name: str
    fields: tuple[Entry, ...]


Macro = Literal[
    "all", "exists", "exists_one", "filter", "map", "transformList", "transformMap", "transformMapEntry", "sortBy"
]


@frozen(eq=False)
class Comprehension:
    """A macro that goes over a list or a map."""

    at: int
    macro: Macro
    over: Node
    names: tuple[str, ...]
    """One name, or those of index or key and value."""
    body: Node
    condition: Node | None = None
    """Elements for which it does not hold are left out."""


@frozen(eq=False)
class Bind:
    """``cel.bind(name, value, body)``: *value* is evaluated when it is first used."""

    at: int
    name: str
    value: Node
    body: Node


@frozen(eq=False)
class OptionalMap:
    """``target.optMap(name, body)``, or with *is_flat* ``optFlatMap``."""

    at: int
    target: Node
    name: str
    body: Node
    is_flat: bool


Node = (
    Constant
    | Name
    | Select
    | Call
    | Logical
    | ListLiteral
    | MapLiteral
    | MessageLiteral
    | Comprehension
    | Bind
    | OptionalMap
)


def parts(node: Node) -> Iterator[Node]:
    """What *node* consists of directly."""
    match node:
        case Constant() | Name():
            return
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.arguments
        case Logical():
            yield from node.operands
        case ListLiteral():
            yield from node.elements
        case MapLiteral() | MessageLiteral():
            for entry in node.entries if isinstance(node, MapLiteral) else node.fields:
                if not isinstance(entry.key, str):
                    yield entry.key
                yield entry.value
        case Comprehension():
            yield node.over
            if node.condition is not None:
                yield node.condition
            yield node.body
        case Bind():
            yield from (node.value, node.body)
        case OptionalMap():
            yield from (node.target, node.body)
