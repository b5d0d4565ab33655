"""JSON that is nested deeper than Python's recursion limit, which msgspec obeys: rare, but any tenant can store it."""

import re
import sys
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

MAX_DEPTH: Final = 10_000
"""The depth up to which an API server reads and stores JSON."""

SAFE_DEPTH: Final = 1_000
"""A depth that msgspec decodes in every Python: 3.12 and newer have a limit for C code that nothing raises, of 1,500 in
3.12.1. No kind of Kubernetes has fields of its own that deep, only parts that may be anything."""
_MARGIN: Final = 500
"""For what stands around an object (a list, a watch event), and for the calls between here and the decoder."""
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{},]', re.DOTALL)
_SCALAR: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|true|false|null|[-+.0-9eE]+', re.DOTALL)
_BLANKS: Final = re.compile(rb"[ \t\r\n]*")


def with_deep_recursion(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call *function*; if it recurses too deep, once more with a limit that JSON of `MAX_DEPTH` needs.

    Raises:
        RecursionError: that was not enough: the JSON is deeper, or this Python has a limit of its own for C code.
    """
    try:
        return function(*args, **kwargs)
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + MAX_DEPTH + _MARGIN)
        try:
            return function(*args, **kwargs)
        finally:
            sys.setrecursionlimit(limit)


def decode_deep(decode: Callable[[bytes], R], json: bytes) -> R:
    """What *decode* makes of *json*, which may be nested as deep as `MAX_DEPTH`.

    Where this Python has a limit of its own for C code, what is deeper than `SAFE_DEPTH` is null.

    Raises:
        RecursionError: it is nested deeper than `MAX_DEPTH`.
    """
    try:
        return with_deep_recursion(decode, json)
    except RecursionError:
        if depth_of(json) > MAX_DEPTH:
            raise
        return decode(pruned(json, SAFE_DEPTH))


def pruned(json: bytes, max_depth: int) -> bytes:
    """*json* with ``null`` for every object and array that is nested deeper than *max_depth*; not recursive."""
    pieces: list[bytes] = []
    depth = kept_from = 0
    for token in _TOKEN.finditer(json):
        symbol = token[0]
        if symbol in (b"[", b"{"):
            depth += 1
            if depth == max_depth + 1:
                pieces += json[kept_from : token.start()], b"null"
        elif symbol in (b"]", b"}"):
            depth -= 1
            if depth == max_depth:
                kept_from = token.end()
    if depth <= max_depth:
        pieces.append(json[kept_from:])
    return b"".join(pieces)


def depth_of(json: bytes) -> int:
    """How deep the objects and arrays of *json* are nested; not recursive."""
    depth = deepest = 0
    for token in _TOKEN.finditer(json):
        if token[0] in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif token[0] in (b"]", b"}"):
            depth -= 1
    return deepest


def end_of_first_value(json: bytes) -> int:
    """Where the first value of *json* ends; its length if that is incomplete. Not recursive."""
    blanks = _BLANKS.match(json)
    start = blanks.end() if blanks else 0
    if json[start : start + 1] not in (b"[", b"{"):
        scalar = _SCALAR.match(json, start)
        return scalar.end() if scalar else len(json)
    depth = 0
    for token in _TOKEN.finditer(json, start):
        if token[0] in (b"[", b"{"):
            depth += 1
        elif token[0] in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                return token.end()
    return len(json)


def place_of_member(json: bytes, name: str) -> slice:
    """Where the object or array is that a top-level object has under *name*; an empty slice if there is none."""
    quoted, last_text, depth, start = f'"{name}"'.encode(), b"", 0, -1
    for token in _TOKEN.finditer(json):
        symbol = token[0]
        if symbol in (b"[", b"{"):
            depth += 1
            if depth == 2 and last_text == quoted:
                start = token.start()
        elif symbol in (b"]", b"}"):
            depth -= 1
            if depth == 1 and start >= 0:
                return slice(start, token.end())
        elif depth == 1 and symbol != b",":
            last_text = symbol
    return slice(0, 0)


def elements(json: bytes) -> list[bytes]:
    """The elements of an array, each as JSON; not recursive."""
    found: list[bytes] = []
    depth, start = 0, 1
    for token in _TOKEN.finditer(json):
        symbol = token[0]
        if symbol in (b"[", b"{"):
            depth += 1
        elif symbol in (b"]", b"}"):
            depth -= 1
        if (symbol == b"," and depth == 1) or depth == 0:
            found.append(json[start : token.start()].strip())
            start = token.end()
    return [element for element in found if element]
