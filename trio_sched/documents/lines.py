"""Finds the line of a field in a YAML or JSON text."""

import re
from typing import Final

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.yaml_composer import compose_documents
from trio_sched.documents.yaml_nodes import Node

_STEP: Final = re.compile(r"""\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]|([^.\[\]]+)""")
"""A position in a list, a quoted key of a mapping, or the name of a field."""


class FieldLines:
    """The lines of the fields in the first document of *text*; a text that is no YAML has none."""

    def __init__(self, text: str) -> None:
        try:
            self._root = next(compose_documents(text), None)
        except DocumentError:
            self._root = None

    def line(self, path: str) -> int | None:
        """The line, counted from 1, of the field *path*, or of the nearest one around it.

        A path is written as in ``profiles[0].plugins``; keys that are no fields are quoted, ``zones['eu-1a'].size``.
        """
        node, line = self._root, None
        for index, quoted, name in _STEP.findall(path):
            if node is not None and node.alias is not None:
                node = node.alias
            found = None if node is None else _below(node, index, quoted or repr(name))
            if found is None:
                break
            node, line = found
        return line


def _below(node: Node, index: str, quoted: str) -> tuple[Node, int] | None:
    if index:
        items = node.items or []
        return (items[int(index)], items[int(index)].line) if len(index) < 9 and int(index) < len(items) else None
    return next(((value, name.line) for name, value in node.pairs or [] if repr(name.text) == quoted), None)
