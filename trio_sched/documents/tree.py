"""A parsed document: the values of JSON, with everything kept that an error message needs.

Objects keep every pair in the order of the document, so that a key given twice can be reported; numbers keep their
text, so that it can be quoted.
"""

from typing import Any

from attrs import frozen

from trio_sched.go.text import json_text


@frozen
class Number:
    """A number as it stands in the document."""

    text: str

    @property
    def value(self) -> int | float:
        """What it means: a whole number if it is written as one."""
        digits = self.text.removeprefix("-")
        return int(self.text) if digits.isdecimal() else float(self.text)


@frozen
class Object:
    """A mapping: every pair of the document, also those with equal keys."""

    pairs: tuple[tuple[str, "Tree"], ...]

    def last(self) -> dict[str, "Tree"]:
        """The pairs as a dictionary in which the last of equal keys wins."""
        return dict(self.pairs)


@frozen
class Array:
    """A list."""

    items: tuple["Tree", ...]


Tree = Object | Array | Number | str | bool | None
"""Any value of a document."""


def kind_of(tree: Tree) -> str:
    """What Go's JSON decoder calls a value of this kind."""
    match tree:
        case Object():
            return "object"
        case Array():
            return "array"
        case Number():
            return "number"
        case str():
            return "string"
        case bool():
            return "bool"
    return "null"


def plain(tree: Tree) -> Any:
    """The value as dictionaries, lists, numbers, text."""
    match tree:
        case Object():
            return {key: plain(value) for key, value in tree.pairs}
        case Array():
            return [plain(item) for item in tree.items]
        case Number():
            return tree.value
    return tree


def compact(tree: Tree) -> str:
    """The value as JSON without blanks, numbers as they were written."""
    match tree:
        case Object():
            return "{" + ",".join(f"{json_text(key)}:{compact(value)}" for key, value in tree.pairs) + "}"
        case Array():
            return "[" + ",".join(map(compact, tree.items)) + "]"
        case Number():
            return tree.text
    return json_text(tree)
