"""Finds keys that objects of JSON have twice; readers keep the last one, an API server refuses the object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import define

from trio_sched.documents.json_runs import TOKEN
from trio_sched.documents.yaml_reader import DuplicateKey
from trio_sched.go.text import quote, shortened

_LARGE: Final = 1_000_000
"""Characters: of what has more, the keys are counted first, which takes much less time than looking at each."""
_BLANK_BEFORE_COLON: Final = re.compile(r'"[ \t\r\n]+:')


def has_duplicates(text: str, keys: int) -> bool:
    """Whether an object of JSON, of which so many *keys* were read, has one twice anywhere."""
    if len(text) > _LARGE:
        counted = text.count('":') - text.count('\\":')  # those in texts have a backslash before them
        # Keys that end in a backslash, or in blanks before the colon, are not counted.
        if counted == keys and '\\\\":' not in text and _BLANK_BEFORE_COLON.search(text) is None:
            return False
    found = False

    def note(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len(dict(pairs)) < len(pairs)

    json.loads(text, object_pairs_hook=note, parse_int=str, parse_float=str)
    return found


@define(eq=False)
class _Level:
    """An object or a list that is open."""

    seen: set[str] | None
    """The keys so far; None: it is a list."""
    at: str | int
    """The key or the index of what comes next."""


def duplicate_keys(text: str, start: int, line: int) -> Iterator[DuplicateKey]:
    """Every key that was there before in the object that begins at *start* of *text*, in *line*.

    In the words of the API server.
    """
    levels: list[_Level] = []
    key_follows, counted = False, start
    for match in TOKEN.finditer(text, start):
        token = match[1]
        match token:
            case "{":
                levels.append(_Level(set(), ""))
                key_follows = True
            case "[":
                levels.append(_Level(None, 0))
            case "}" | "]":
                levels.pop()
                key_follows = False
                if not levels:
                    return
            case ",":
                if isinstance(index := levels[-1].at, int):
                    levels[-1].at = index + 1
                else:
                    key_follows = True
            case ":":
                key_follows = False
            case _ if key_follows and (seen := levels[-1].seen) is not None:
                levels[-1].at = key = json.loads(token)
                if key in seen:
                    line, counted = line + text.count("\n", counted, match.start(1)), match.start(1)
                    yield DuplicateKey(line, f"duplicate field {quote(shortened(_path(levels)))}")
                seen.add(key)


def _path(levels: list[_Level]) -> str:
    path = "".join(f"[{level.at}]" if isinstance(level.at, int) else f".{level.at}" for level in levels)
    return path.removeprefix(".")
