"""Composes the nodes of a YAML text from the events of libyaml, aliases unresolved, with bounded depth.

libyaml's own composer calls itself for every level: a megabyte of brackets ends the process, not just the reading.

Source: the composer of go-yaml v2, which Kubernetes reads YAML with, and its error texts.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from trio_sched.documents.errors import MAX_DEPTH, DocumentError
from trio_sched.documents.files import position_after
from trio_sched.documents.yaml_nodes import Node
from trio_sched.go.text import shortened


def compose_documents(text: str) -> Iterator[Node]:
    """The root node of every document of *text*, one after the other.

    Raises:
        DocumentError: the text is no YAML, or nested too deep.
    """
    events = yaml.parse(text, Loader=yaml.CSafeLoader)
    try:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                yield _Composer(events).compose(next(events), 0)
    except yaml.reader.ReaderError as error:
        line, column = position_after(text.encode()[: error.position].decode(errors="replace"))
        raise DocumentError(f"yaml: {error.reason}", line=line, column=column, problem=error.reason) from error
    except yaml.MarkedYAMLError as error:
        problem = shortened(error.problem or "unknown problem parsing YAML content")
        if "nesting depth" in problem:  # the limit that later versions of libyaml have themselves, 1000
            problem = f"exceeded max depth of {MAX_DEPTH}"
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        raise DocumentError(f"yaml: {_where(error)}{problem}", line=line, column=column, problem=problem) from error


def _where(error: yaml.MarkedYAMLError) -> str:
    """The line as go-yaml counts it: scanner errors from 1, others (by mistake) from 0, and line 0 is left out."""
    mark = error.problem_mark
    line = mark.line if mark is not None else 0
    if line:
        line += isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


class _Composer:
    """The composition of one document."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._anchors: dict[str, Node] = {}

    def compose(self, event: Any, depth: int) -> Node:
        mark = event.start_mark
        line, column = mark.line + 1, mark.column + 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                unknown = f"unknown anchor '{shortened(str(event.anchor))}' referenced"
                raise DocumentError(f"yaml: {unknown}", line=line, column=column, problem=unknown)
            return Node(line, column, text=event.anchor, alias=self._anchors[event.anchor])
        node = Node(line, column, tag="" if event.tag in (None, "!") else event.tag)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if isinstance(event, yaml.ScalarEvent):
            node.text, node.plain = event.value, bool(event.implicit[0])
            return node
        if depth >= MAX_DEPTH:
            problem = f"exceeded max depth of {MAX_DEPTH}"
            raise DocumentError(f"yaml: line {line}: {problem}", line=line, column=column, problem=problem)
        if isinstance(event, yaml.SequenceStartEvent):
            node.items = []
            while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
                node.items.append(self.compose(item, depth + 1))
        else:
            node.pairs = []
            while not isinstance(key := next(self._events), yaml.MappingEndEvent):
                key_node = self.compose(key, depth + 1)
                node.pairs.append((key_node, self.compose(next(self._events), depth + 1)))
        return node
