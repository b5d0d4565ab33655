"""Reads the first document of a YAML text into a `Tree`, as kube-scheduler does on its way to JSON.

Duplicate keys are collected with their lines and do not stop the reading: a wrong type is reported before them.

Source: the composer and decoder of go-yaml v2 (merges, aliases, line numbers) and the conversion to JSON on top of it
(keys become text and are sorted, numbers are written anew).
"""

import math
from collections.abc import Iterator
from typing import Any, Final

import yaml
from attrs import define, field, frozen

from trio_sched.config.errors import ConfigError
from trio_sched.config.go_text import general_float, go_syntax, json_float, round_to_float32
from trio_sched.config.tree import Array, Number, Object, Tree
from trio_sched.config.yaml_scalars import MERGE_TAG, resolve_scalar

_Typed = dict[tuple[type, Any], Any]
"""A mapping whose keys carry their type: 1, 1.0 and true are three keys."""

_PLENTY: Final = 400_000
_TOO_MANY: Final = 4_000_000


@frozen
class YamlDocument:
    """A document and what was wrong with its keys."""

    tree: Tree
    duplicates: tuple[str, ...]

    @property
    def duplicates_text(self) -> str | None:
        """The YAML library's error about all duplicate keys; None if there are none."""
        return "\n  ".join(["yaml: unmarshal errors:", *self.duplicates]) if self.duplicates else None


def read_yaml(text: str) -> YamlDocument:
    """Return the first document of *text*; what follows it is ignored.

    Raises:
        ConfigError: the text is no YAML, or holds what JSON cannot represent.
    """
    decoder = _Decoder()
    value = decoder.decode(_compose(text))
    return YamlDocument(_to_tree(_with_text_keys(value)), tuple(decoder.duplicates))


@define(eq=False)
class _Node:
    """A node as it stands in the text, aliases unresolved."""

    line: int
    tag: str = ""
    plain: bool = False
    text: str = ""
    items: "list[_Node] | None" = None
    pairs: "list[tuple[_Node, _Node]] | None" = None
    alias: "_Node | None" = None
    """What an alias node stands for; *text* is then the anchor's name."""


def _compose(text: str) -> _Node:
    """The first document as nodes."""
    events = yaml.parse(text, Loader=yaml.CSafeLoader)
    try:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                return _compose_node(next(events), events, {})
    except yaml.reader.ReaderError as error:
        raise ConfigError.of(f"yaml: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        raise ConfigError.of(f"yaml: {_where(error)}{error.problem}") from error
    return _Node(0, plain=True)


def _where(error: yaml.MarkedYAMLError) -> str:
    """The line as go-yaml counts it: scanner errors from 1, others (by mistake) from 0, and line 0 is left out."""
    mark = error.problem_mark
    line = mark.line if mark is not None else 0
    if line:
        line += isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


def _compose_node(event: Any, events: Iterator[yaml.Event], anchors: dict[str, _Node]) -> _Node:
    line = event.start_mark.line + 1
    if isinstance(event, yaml.AliasEvent):
        if event.anchor not in anchors:
            raise ConfigError.of(f"yaml: unknown anchor '{event.anchor}' referenced")
        return _Node(line, text=event.anchor, alias=anchors[event.anchor])
    node = _Node(line, tag="" if event.tag in (None, "!") else event.tag)
    if event.anchor is not None:
        anchors[event.anchor] = node
    if isinstance(event, yaml.ScalarEvent):
        node.text, node.plain = event.value, bool(event.implicit[0])
    elif isinstance(event, yaml.SequenceStartEvent):
        node.items = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            node.items.append(_compose_node(item, events, anchors))
    else:
        node.pairs = []
        while not isinstance(key := next(events), yaml.MappingEndEvent):
            key_node = _compose_node(key, events, anchors)
            node.pairs.append((key_node, _compose_node(next(events), events, anchors)))
    return node


@define(eq=False)
class _Decoder:
    """Turns nodes into values: aliases followed, merges merged, scalars understood."""

    duplicates: list[str] = field(factory=list)
    _open_aliases: set[_Node] = field(factory=set)
    _count: int = 0
    _aliased: int = 0

    def decode(self, node: _Node) -> Any:
        """The value of *node*: dict, list or scalar."""
        self._count += 1
        self._aliased += bool(self._open_aliases)
        if self._aliased > 100 and self._count > 1000 and self._aliased / self._count > _allowed_ratio(self._count):
            raise ConfigError.of("yaml: document contains excessive aliasing")
        if node.alias is not None:
            with _Opened(self._open_aliases, node):
                return self.decode(node.alias)
        if node.pairs is not None:
            mapping: _Typed = {}
            self._decode_into(mapping, node)
            return mapping
        if node.items is not None:
            return [self.decode(item) for item in node.items]
        if not node.tag and not node.plain:
            return node.text
        return resolve_scalar(node.text, node.tag)

    def _decode_into(self, mapping: _Typed, node: _Node) -> None:
        """Put the pairs of *node* into *mapping*."""
        for key_node, value_node in node.pairs or ():
            if key_node.text == "<<" and key_node.alias is None and (key_node.plain or key_node.tag == MERGE_TAG):
                self._merge(mapping, value_node)
                continue
            key = self.decode(key_node)
            if isinstance(key, list | dict):
                raise ConfigError.of(f"yaml: invalid map key: {_printed(key)}")
            value = self.decode(value_node)
            if (type(key), key) in mapping:
                self.duplicates.append(f"line {value_node.line}: key {go_syntax(key)} already set in map")
            mapping[type(key), key] = value

    def _merge(self, mapping: _Typed, node: _Node) -> None:
        target = node.alias or node
        # Backwards, because the first of several mappings takes precedence.
        sources = [node] if target.pairs is not None else list(reversed(node.items or ()))
        if not sources and node.items is None:
            raise _not_a_mapping()
        for source in sources:
            merged = source.alias or source
            if merged.pairs is None:
                raise _not_a_mapping()
            with _Opened(self._open_aliases, source if source.alias else None):
                self._decode_into(mapping, merged)


@frozen
class _Opened:
    """While an alias is being followed, meeting it again means that it contains itself."""

    open_aliases: set[_Node]
    node: _Node | None

    def __enter__(self) -> None:
        if self.node is None:
            return
        if self.node in self.open_aliases:
            raise ConfigError.of(f"yaml: anchor '{self.node.text}' value contains itself")
        self.open_aliases.add(self.node)

    def __exit__(self, *_: object) -> None:
        if self.node is not None:
            self.open_aliases.discard(self.node)


def _not_a_mapping() -> ConfigError:
    return ConfigError.of("yaml: map merge requires map or sequence of maps as the value")


def _allowed_ratio(count: int) -> float:
    """How much of a document may come from aliases: nearly all of a small one, a tenth of a huge one."""
    if count <= _PLENTY:
        return 0.99
    return max(0.10, 0.99 - 0.89 * (count - _PLENTY) / (_TOO_MANY - _PLENTY))


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
            return key
        case bool():
            return "true" if key else "false"
        case int() if key < 1 << 63:
            return str(key)
        case float() if math.isfinite(key):
            return general_float(round_to_float32(key), bits=32)
        case float():
            return ".nan" if math.isnan(key) else ".inf" if key > 0 else "-.inf"
    kind = "%!s(<nil>)" if key is None else "uint64"
    raise ConfigError.of(f"unsupported map key of type: {kind}, key: {go_syntax(key)}, value: {_printed(value)}")


def _printed(value: Any) -> str:
    return go_syntax(_without_types(value))


def _without_types(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_types(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_types(item) for (_, key), item in value.items()}
    return value


def _to_tree(value: Any) -> Tree:
    match value:
        case dict():
            return Object(tuple((key, _to_tree(value[key])) for key in sorted(value)))
        case list():
            return Array(tuple(map(_to_tree, value)))
        case bool():
            return value
        case int():
            return Number(str(value))
        case float() if math.isfinite(value):
            return Number(json_float(value))
        case float():
            raise ConfigError.of(
                f"json: unsupported value: {'NaN' if math.isnan(value) else '+Inf' if value > 0 else '-Inf'}"
            )
    text_or_null: str | None = value
    return text_or_null
