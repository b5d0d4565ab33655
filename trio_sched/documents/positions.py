"""Where in a text of YAML or JSON a field is, for messages about it; only read when something is wrong."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from itertools import islice
from typing import Any

import msgspec

from trio_sched.documents.errors import MAX_DEPTH, DocumentError
from trio_sched.documents.json_runs import TOKEN, places_of_objects
from trio_sched.documents.yaml_lists import parts_of_list
from trio_sched.documents.yaml_nodes import Node


class _Items(msgspec.Struct):
    items: list[msgspec.Raw]


def root_of_document(text: str, number: int) -> Node | None:
    """The root of the document of that *number*, from 1; None if the text cannot be read."""
    if text.lstrip().startswith("{"):
        try:
            msgspec.json.decode(text, type=msgspec.Raw)
            return _JsonComposer(text, 0).compose()
        except (RecursionError, IndexError):
            pass
        except msgspec.DecodeError:  # YAML's own maps begin with a brace as well
            places = places_of_objects(text)
            if len(places) >= number:
                return _JsonComposer(text, places[number - 1][0]).compose()
    from trio_sched.documents.yaml_composer import compose_documents

    try:
        return next(islice(compose_documents(text), number - 1, None), None)
    except (DocumentError, RecursionError):
        return None


def root_of_item(text: str, number: int) -> Node | None:
    """The root of item *number* of the one list that *text* is, in JSON or large in YAML; None if it is no such list.

    Much faster than `root_of_document` if there are many items.
    """
    if not text.lstrip().startswith("{"):
        return _root_of_yaml_item(text, number)
    content = text.encode()
    try:
        items = msgspec.json.decode(content, type=_Items).items
    except (msgspec.DecodeError, RecursionError):
        return None
    if number >= len(items):
        return None
    start = 0
    for item in items[:number]:
        start = content.find(bytes(item), start) + len(bytes(item))
    start = content.find(bytes(items[number]), start)
    before = content[:start].decode()
    try:
        return _JsonComposer(text, len(before)).compose()
    except IndexError:
        return None


def _root_of_yaml_item(text: str, number: int) -> Node | None:
    parts = parts_of_list(text)
    if parts is None or number >= len(parts.items):
        return None
    from trio_sched.documents.yaml_composer import compose_documents

    start, end = parts.items[number]
    try:
        whole = next(compose_documents(text[start:end]), None)
    except (DocumentError, RecursionError):
        return None
    if whole is None or not whole.items:
        return None
    _move_down(whole.items[0], text.count("\n", 0, start))
    return whole.items[0]


def _move_down(node: Node, lines: int) -> None:
    node.line += lines
    for below in (*(node.items or ()), *(one for pair in node.pairs or () for one in pair)):
        _move_down(below, lines)


def find(root: Node, path: str) -> Node:
    """The node at *path*, like ``spec.containers[0].ports``, or the deepest one above it that is there.

    A key may have dots and may be written in brackets; of keys that fit, the longest counts.
    """
    node = place = root
    left_out = False
    while path:
        while node.alias is not None:
            node = node.alias
        path = path.removeprefix(".")
        if node.pairs is not None:
            fitting = [
                (len(written), key, value)
                for key, value in node.pairs
                for written in (key.text, f"[{key.text}]")
                if path.startswith(written) and path[len(written) : len(written) + 1] in ("", ".", "[")
            ]
            if not fitting and path.startswith(("labels", "annotations")) and not left_out:
                # The API server leaves metadata out where it speaks of templates. Once only: aliases can make cycles.
                left_out = True
                metadata = next((value for key, value in node.pairs if key.text == "metadata"), None)
                if metadata is not None:
                    node = metadata
                    continue
            if not fitting:
                break
            length, place, node = max(fitting, key=lambda found: found[0])
        else:
            match = re.match(r"\[(\d{1,9})\]", path)
            if node.items is None or match is None or int(match[1]) >= len(node.items):
                break
            length, place = match.end(), node.items[int(match[1])]
            node = place
        path = path[length:]
    return place


class _JsonComposer:
    """The nodes of the JSON value that begins at an offset of a text that was found to be right."""

    def __init__(self, text: str, offset: int) -> None:
        self._text, self._at = text, offset
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def compose(self, depth: int = 0) -> Node:
        """The next value.

        Raises:
            IndexError: there is none, or it is nested too deep.
        """
        token, node = self._next()
        if depth > MAX_DEPTH:
            raise IndexError
        if token == "{":
            node.pairs = []
            while (key := self._next())[0] != "}":
                if key[0] == ",":
                    continue
                key[1].text = str(_decoded(key[0]))
                self._next()
                node.pairs.append((key[1], self.compose(depth + 1)))
        elif token == "[":
            node.items = []
            while True:
                before = self._at
                token, _ = self._next()
                if token == "]":
                    break
                if token != ",":
                    self._at = before
                node.items.append(self.compose(depth + 1))
        return node

    def _next(self) -> tuple[str, Node]:
        match = TOKEN.match(self._text, self._at)
        if match is None:
            raise IndexError
        self._at = match.end()
        line = bisect_right(self._starts, match.start(1))
        return match[1], Node(line, match.start(1) - self._starts[line - 1] + 1)


def _decoded(token: str) -> Any:
    try:
        return json.loads(token)
    except ValueError:
        return token
