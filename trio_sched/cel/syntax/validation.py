"""What is refused although its types fit together: literals whose elements are of different types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from trio_sched.cel.errors import Issue
from trio_sched.cel.syntax.nodes import Call, ListLiteral, MapLiteral, Node, parts
from trio_sched.cel.values.types import Type

_EXEMPT: Final = "format"
"""What is formatted may be of different types, however deep it is in the call."""


def differing_elements(root: Node, types: Mapping[int, Type]) -> Iterator[Issue]:
    """Elements, keys and values of literals that are of another type than the first.

    *types* has the type of every part of *root* by its ``id``, with ``dyn`` in place of type parameters.
    """
    left = [root]
    while left:
        node = left.pop()
        if isinstance(node, Call) and node.function == _EXEMPT:
            continue
        if isinstance(node, ListLiteral):
            elements = ((part, _type(part, types, index in node.optional)) for index, part in enumerate(node.elements))
            yield from list(_differing(elements))[:1]
        elif isinstance(node, MapLiteral):
            keys = [entry.key for entry in node.entries if not isinstance(entry.key, str)]
            yield from _differing((key, types[id(key)]) for key in keys)
            values = ((entry.value, _type(entry.value, types, entry.is_optional)) for entry in node.entries)
            yield from _differing(values)
        left.extend(parts(node))


def _type(part: Node, types: Mapping[int, Type], is_optional: bool) -> Type:
    found = types[id(part)]
    return found.parameters[0] if is_optional and found.parameters else found


def _differing(elements: Iterable[tuple[Node, Type]]) -> Iterator[Issue]:
    first: Type | None = None
    for part, found in elements:
        if first is None:
            first = found
        elif found != first:
            yield Issue(part.at, f"expected type '{first}' but found '{found}'")
