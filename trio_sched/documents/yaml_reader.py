"""Reads YAML as Kubernetes does on its way to JSON: into a `Tree`, or into plain values.

Duplicate keys are collected with their lines and do not stop the reading: a wrong type is reported before them.

Source: the decoder of go-yaml v2 (merges, aliases, line numbers) and the conversion to JSON on top of it (keys become
text and are sorted, numbers are written again).
"""

import math
import sys
from collections.abc import Iterator
from typing import Any, Final

from attrs import define, field, frozen

from trio_sched.documents.errors import MAX_DEPTH, DocumentError
from trio_sched.documents.tree import Array, Number, Object, Tree
from trio_sched.documents.yaml_nodes import Node
from trio_sched.documents.yaml_scalars import MERGE_TAG, resolve_scalar
from trio_sched.go.text import general_float, go_syntax, json_float, round_to_float32, shortened

_Typed = dict[tuple[type, Any], Any]
"""A mapping whose keys carry their type: 1, 1.0 and true are three keys."""

_PLENTY: Final = 400_000
_TOO_MANY: Final = 4_000_000
_SHOWN_DUPLICATES: Final = 20
_FIRST_EXPONENT: Final = 1e21
"""From here on Go writes a float with an exponent, so that it is no whole number to JSON."""


@frozen
class DuplicateKey:
    """A key that a mapping has twice, in the words of the YAML library."""

    line: int
    problem: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}"


@frozen
class YamlDocument:
    """A document and what was wrong with its keys."""

    tree: Tree
    duplicates: tuple[DuplicateKey, ...]

    @property
    def duplicates_text(self) -> str | None:
        """The YAML library's error about duplicate keys; None if there are none."""
        return _listed(self.duplicates) if self.duplicates else None


@frozen
class PlainDocument:
    """A document as JSON has it: dictionaries with texts as keys, lists, texts, numbers."""

    value: Any
    line: int
    """Where it begins, from 1."""
    duplicates: tuple[DuplicateKey, ...]
    """Keys that are there twice: the last one counts."""


def read_yaml(text: str) -> YamlDocument:
    """Return the first document of *text*; what follows it is ignored.

    Raises:
        DocumentError: the text is no YAML, holds what JSON cannot represent, or is nested too deep or explodes.
    """
    from trio_sched.documents.yaml_composer import compose_documents  # most of what is read is JSON

    decoder = _Decoder()
    value = decoder.decode(next(compose_documents(text), Node(0, plain=True)), 0)
    return YamlDocument(_to_tree(_with_text_keys(value)), tuple(decoder.duplicates))


def read_plain_documents(text: str) -> Iterator[PlainDocument]:
    """Every document of *text*, one after the other.

    Raises:
        DocumentError: as `read_yaml`.
    """
    from trio_sched.documents.yaml_composer import compose_documents

    for node in compose_documents(text):
        decoder = _Decoder()
        decoded = decoder.decode(node, 0)
        try:
            value = _to_plain(_with_text_keys(decoded))
        except DocumentError as error:
            place = _unfit_for_json(node)
            raise (place.error(str(error)) if place is not None else error) from error
        yield PlainDocument(value, node.line, tuple(decoder.duplicates))


def _unfit_for_json(root: Node) -> Node | None:
    """The first key or scalar below *root* that JSON has no form for."""
    waiting = [(root, False)]
    while waiting:
        node, is_key = waiting.pop()
        for key, value in reversed(node.pairs or ()):
            waiting += (value, False), (key, True)
        waiting += ((item, False) for item in reversed(node.items or ()))
        if node.pairs is None and node.items is None and (node.plain or node.tag):
            scalar = resolve_scalar(node.text, node.tag)
            try:
                _key_text(scalar, None) if is_key else _to_plain(scalar)
            except DocumentError:
                return node
    return None


@define(eq=False)
class _Decoder:
    """Turns nodes into values: aliases followed, merges merged, scalars understood."""

    duplicates: list[DuplicateKey] = field(factory=list)
    _open_aliases: set[Node] = field(factory=set)
    _count: int = 0
    _aliased: int = 0

    def decode(self, node: Node, depth: int) -> Any:
        """The value of *node*: dict, list or scalar."""
        self._note(node)
        if node.alias is not None:
            with _Opened(self._open_aliases, node):
                return self.decode(node.alias, depth)
        if depth > MAX_DEPTH:  # aliases nest what is shallow as it stands in the text
            raise node.error(f"yaml: exceeded max depth of {MAX_DEPTH}")
        if node.pairs is not None:
            mapping: _Typed = {}
            self._decode_into(mapping, node, depth)
            return mapping
        if node.items is not None:
            return [self.decode(item, depth + 1) for item in node.items]
        if not node.tag and not node.plain:
            return node.text
        try:
            return resolve_scalar(node.text, node.tag)
        except DocumentError as error:
            raise node.error(str(error)) from error

    def _note(self, node: Node) -> None:
        """Count one step of the decoding, and refuse a document that consists of aliases.

        Raises:
            DocumentError: it is such a document.
        """
        self._count += 1
        self._aliased += bool(self._open_aliases)
        if self._aliased > 100 and self._count > 1000 and self._aliased / self._count > _allowed_ratio(self._count):
            raise node.error("yaml: document contains excessive aliasing")

    def _decode_into(self, mapping: _Typed, node: Node, depth: int) -> None:
        """Put the pairs of *node* into *mapping*."""
        for key_node, value_node in node.pairs or ():
            if key_node.text == "<<" and key_node.alias is None and (key_node.plain or key_node.tag == MERGE_TAG):
                self._merge(mapping, value_node, depth)
                continue
            key = self.decode(key_node, depth + 1)
            if isinstance(key, list | dict):
                raise key_node.error(f"yaml: invalid map key: {_printed(key)}")
            value = self.decode(value_node, depth + 1)
            if (type(key), key) in mapping:
                shown = shortened(go_syntax(key))
                self.duplicates.append(DuplicateKey(value_node.line, f"key {shown} already set in map"))
            mapping[type(key), key] = value

    def _merge(self, mapping: _Typed, node: Node, depth: int) -> None:
        target = node.alias or node
        # Backwards, because the first of several mappings takes precedence.
        sources = [node] if target.pairs is not None else list(reversed(node.items or ()))
        if not sources and node.items is None:
            raise _not_a_mapping(node)
        for source in sources:
            merged = source.alias or source
            if merged.pairs is None:
                raise _not_a_mapping(source)
            # Merges count as the aliases that they are; without pairs of their own nothing else would count them.
            self._note(source)
            if depth > MAX_DEPTH:
                raise node.error(f"yaml: exceeded max depth of {MAX_DEPTH}")
            with _Opened(self._open_aliases, source if source.alias else None):
                if source.alias is not None:
                    self._note(merged)
                self._decode_into(mapping, merged, depth + 1)


@frozen
class _Opened:
    """While an alias is being followed, meeting it again means that it contains itself."""

    open_aliases: set[Node]
    node: Node | None

    def __enter__(self) -> None:
        if self.node is None:
            return
        if self.node in self.open_aliases:
            raise self.node.error(f"yaml: anchor '{shortened(self.node.text)}' value contains itself")
        self.open_aliases.add(self.node)

    def __exit__(self, *_: object) -> None:
        if self.node is not None:
            self.open_aliases.discard(self.node)


def _not_a_mapping(node: Node) -> DocumentError:
    return node.error("yaml: map merge requires map or sequence of maps as the value")


def _allowed_ratio(count: int) -> float:
    """How much of a document may come from aliases: nearly all of a small one, a tenth of a huge one."""
    if count <= _PLENTY:
        return 0.99
    return max(0.10, 0.99 - 0.89 * (count - _PLENTY) / (_TOO_MANY - _PLENTY))


def _listed(duplicates: tuple[DuplicateKey, ...]) -> str:
    left_out = len(duplicates) - _SHOWN_DUPLICATES
    rest = [f"and {left_out} more"] if left_out > 0 else []
    return "\n  ".join(["yaml: unmarshal errors:", *map(str, duplicates[:_SHOWN_DUPLICATES]), *rest])


def _with_text_keys(value: Any) -> Any:
    """The same value with the keys of its mappings as JSON must have them."""
    if isinstance(value, list):
        return [_with_text_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {_key_text(key, item): _with_text_keys(item) for (_, key), item in value.items()}


def _key_text(key: Any, value: Any) -> str:
    match key:
        case str():
            return sys.intern(key)
        case bool():
            return "true" if key else "false"
        case int() if key < 1 << 63:
            return str(key)
        case float() if math.isfinite(key):
            try:
                return general_float(round_to_float32(key), bits=32)
            except OverflowError:
                return "+Inf" if key > 0 else "-Inf"
        case float():
            return ".nan" if math.isnan(key) else ".inf" if key > 0 else "-.inf"
    kind = "%!s(<nil>)" if key is None else "uint64"
    raise DocumentError(
        f"unsupported map key of type: {kind}, key: {shortened(go_syntax(key))}, value: {_printed(value)}"
    )


def _printed(value: Any) -> str:
    return shortened(go_syntax(_without_types(value)))


def _without_types(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_types(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_types(item) for (_, key), item in value.items()}
    return value


def _to_tree(value: Any) -> Tree:
    match value:
        case dict():
            return Object(tuple([(key, _to_tree(value[key])) for key in sorted(value)]))
        case list():
            return Array(tuple(map(_to_tree, value)))
        case bool():
            return value
        case int():
            return Number(str(value))
        case float():
            _require_finite(value)
            return Number(json_float(value))
    text_or_null: str | None = value
    return text_or_null


def _to_plain(value: Any) -> Any:
    """*value* as it is read back from JSON: floats without a fraction become whole numbers."""
    if isinstance(value, dict):
        return {key: _to_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_plain(item) for item in value]
    if isinstance(value, float):
        _require_finite(value)
        return int(value) if value.is_integer() and abs(value) < _FIRST_EXPONENT else value
    return value


def _require_finite(value: float) -> None:
    if not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        raise DocumentError(f"json: unsupported value: {shown}")
