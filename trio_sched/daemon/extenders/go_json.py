"""JSON as Go's decoder reads it, and its words for what it does not accept.

A response is decoded by msgspec, which is fast and strict. Only if that fails is it looked at here: Go reads the first
value and ignores what follows, replaces what is not UTF-8, and names a wrong type by its own types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import field, frozen

from trio_sched.documents.deep_json import end_of_first_value, with_deep_recursion
from trio_sched.documents.errors import DocumentError
from trio_sched.documents.json_reader import read_first_json
from trio_sched.documents.tree import Array, Number, Object, Tree, kind_of

_MAX_INT64: Final = 2**63
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_NO_TEXT: Final = re.compile("[\udc80-\udcff]")
_ESCAPES: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)


@frozen
class GoType:
    """A type of Go, as far as JSON is decoded into it.

    Attributes:
        name: as in Go's error messages, ``v1.HostPriority``.
        fields: of a struct, by their names in JSON.
        element: of a slice or map.
        accepts: the kind of JSON value that can be decoded into it.
    """

    name: str
    accepts: str
    element: GoType | None = None
    fields: Mapping[str, GoType] = field(factory=dict)


STRING: Final = GoType("string", "string")
INT64: Final = GoType("int64", "number")


def struct(name: str, /, **fields: GoType) -> GoType:
    """A struct with these fields."""
    return GoType(name, "object", fields=fields)


def slice_of(element: GoType, name: str = "") -> GoType:
    """A slice; *name* is that of a type of its own."""
    return GoType(name or f"[]{element.name}", "array", element)


def map_of(element: GoType, name: str) -> GoType:
    """A map with keys of text."""
    return GoType(name, "object", element)


def as_go_reads(body: bytes) -> bytes:
    """The first JSON value of *body*, in UTF-8: U+FFFD for each byte that is no text and half a surrogate."""
    text = body[: end_of_first_value(body)].decode("utf-8", "surrogateescape")
    text = _NO_TEXT.sub("\ufffd", text)
    return _ESCAPES.sub(_without_half_surrogate, text).encode()


def why_go_refuses(body: bytes, into: GoType) -> str:
    """What Go says when it decodes *body* into a variable of type *into*; empty if it has no objection."""
    if not body.strip(b" \t\r\n"):
        return "EOF"
    try:
        # Latin 1, because Go shows the one byte at which it stops, whatever character that is a part of.
        tree = with_deep_recursion(read_first_json, body.decode("latin-1"))
    except DocumentError as problem:
        text = str(problem)
        return "unexpected EOF" if text == "unexpected end of JSON input" else text
    except RecursionError:
        return "exceeded max depth"
    return next(_mismatches(tree, into, "", ()), "")


def _without_half_surrogate(escape: re.Match[str]) -> str:
    text = escape[0]
    return "\\ufffd" if len(text) == 6 and text[1] == "u" else text


def _mismatches(tree: Tree, into: GoType, struct_name: str, path: tuple[str, ...]) -> Iterator[str]:
    """The values in *tree* that do not fit, in the order of the document; *path* leads to it by names of fields."""
    if tree is None:
        return
    value = kind_of(tree)
    if isinstance(tree, Number) and into is INT64 and not _is_int64(tree.text):
        value = f"number {tree.text}"
    if value != into.accepts:
        where = f"struct field {struct_name}.{'.'.join(path)} of type" if path else "value of type"
        yield f"json: cannot unmarshal {value} into Go {where} {into.name}"
    elif isinstance(tree, Array) and into.element is not None:
        for item in tree.items:
            yield from _mismatches(item, into.element, struct_name, path)
    elif isinstance(tree, Object) and into.element is not None:
        for _, member in tree.pairs:
            yield from _mismatches(member, into.element, struct_name, path)
    elif isinstance(tree, Object):
        by_lower_case = {name.lower(): name for name in into.fields}
        for key, member in tree.pairs:
            if name := by_lower_case.get(key.lower()):
                yield from _mismatches(member, into.fields[name], into.name.rpartition(".")[2], (*path, name))


def _is_int64(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and -_MAX_INT64 <= int(text) < _MAX_INT64
