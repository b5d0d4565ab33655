"""``python -m contrib.api_shapes.make_newer_shapes TREE``: writes the fields of 1.37 to ``shapes_1_37.json``.

*TREE* is a checkout of ``kubernetes/api`` of that version. It has no OpenAPI document, but the comments in its
``.proto`` files say how lists are merged and applied. Only what ``shapes.json`` lacks is written.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from contrib.api_shapes.make_shapes import FIELD_LINE, TARGET, Table, messages_in
from trio_sched.simulator.validation.meta.shapes import raw_table

NEWER_TARGET: Final = TARGET.with_name("shapes_1_37.json")
_MARK: Final = re.compile(r"  // \+(listType|listMapKey|patchStrategy|patchMergeKey)=(\S+)")

Marks = dict[str, list[str]]


def marks_in(text: str) -> dict[tuple[str, str], Marks]:
    """Message without its package, and field → what the comment on the field says of lists."""
    found: dict[tuple[str, str], Marks] = {}
    message, marks = "", Marks()
    for line in text.split("\n"):
        if line.startswith("message "):
            message = line.split()[1]
        elif mark := _MARK.fullmatch(line):
            marks.setdefault(mark[1], []).append(mark[2])
        elif field := FIELD_LINE.match(line):
            found[message, field[4]] = marks
            marks = {}
        elif not line.strip():
            marks = {}
    return found


def newer_fields(table: Mapping[str, Mapping[str, list[Any]]], messages: Table, marks: dict[str, Marks]) -> Table:
    """What *messages* have and *table* lacks, of its messages and of those that only new fields lead to.

    Args:
        table: as `make_table` returns it.
        messages: as `messages_in` gives them.
        marks: message and field → what is said of lists.
    """
    newer: Table = {}
    waiting = sorted(message for message in table if message in messages)
    while waiting:
        message = waiting.pop()
        if message not in table:
            newer.setdefault(message, {})
        numbers = {number for number, *_ in table.get(message, {}).values()}
        for name, (number, type_) in messages[message].items():
            if number in numbers or name in newer.get(message, {}):
                continue
            newer.setdefault(message, {})[name] = [number, type_, *_merged(marks.get(f"{message}.{name}", {}))]
            inner = type_.split()[-1]
            if inner in messages and inner not in table:
                waiting.append(inner)
    return {message: newer[message] for message in sorted(newer)}


def _merged(marks: Marks) -> list[Any]:
    """How patches and server-side apply take the field; nothing: as its type says."""
    strategy = marks.get("patchStrategy")
    patched = [marks.get("patchMergeKey", [""])[0], *strategy] if strategy else []
    match marks.get("listType"):
        case ["map"]:
            return [*(patched or [None, ""]), sorted(marks["listMapKey"])]
        case ["set"]:
            return [*(patched or [None, ""]), "set"]
    return patched


def read_tree(tree: Path) -> Iterator[tuple[Table, dict[str, Marks]]]:
    """The messages of each file in *tree*, and what is said of their lists."""
    for path in sorted(tree.glob("*/*/generated.proto")):
        text = path.read_text()
        messages = messages_in(text)
        package = next(iter(messages), "").rpartition(".")[0]
        yield messages, {f"{package}.{message}.{field}": one for (message, field), one in marks_in(text).items()}


def main() -> None:
    """Write the table."""
    messages: Table = {}
    marks: dict[str, Marks] = {}
    for some_messages, some_marks in read_tree(Path(sys.argv[1])):
        messages |= some_messages
        marks |= some_marks
    newer = newer_fields(raw_table(newest=False), messages, marks)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in newer.items())
    NEWER_TARGET.write_text(f"{{\n{lines}\n}}\n")
    sys.stdout.write(f"{sum(map(len, newer.values()))} fields of {len(newer)} messages in {NEWER_TARGET}\n")


if __name__ == "__main__":
    main()
