"""The values of literals."""

from __future__ import annotations

import math
import re
from typing import Final

INT_LIMIT: Final = 1 << 63
"""Ints are below it, and not below its negative."""
UINT_LIMIT: Final = 1 << 64

_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\"'\\?`])|([0-3][0-7]{2})|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def int_value(text: str, *, is_negative: bool = False) -> int:
    """The value of an int literal.

    Raises:
        ValueError: it is out of range.
    """
    value = _whole(text)
    value = -value if is_negative else value
    if not -INT_LIMIT <= value < INT_LIMIT:
        raise ValueError("invalid int literal")
    return value


def uint_value(text: str) -> int:
    """The value of a uint literal.

    Raises:
        ValueError: it is out of range.
    """
    value = _whole(text[:-1])
    if value >= UINT_LIMIT:
        raise ValueError("invalid uint literal")
    return value


def double_value(text: str) -> float:
    """The value of a double literal.

    Raises:
        ValueError: it is out of range.
    """
    value = float(text)
    if math.isinf(value):
        raise ValueError("invalid double literal")
    return value


def _whole(text: str) -> int:
    digits = text.removeprefix("0x")
    if len(digits) > 4_000:  # Python converts no text of any length, and none of these is in range
        digits = digits.lstrip("0")[:4_000] or "0"
    return int(digits, 16 if text.startswith("0x") else 10)


def string_value(text: str) -> str:
    """The value of a string literal, quotes and prefix included.

    Raises:
        ValueError: an escape names no character.
    """
    is_raw, content = _content(text)
    return content if is_raw else _ESCAPE.sub(_character, content)


def bytes_value(text: str) -> bytes:
    """The value of a bytes literal, quotes and prefix included.

    Raises:
        ValueError: an escape is not one for bytes.
    """
    is_raw, content = _content(text[1:])
    if is_raw:
        return content.encode()
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(content):
        parts += [content[end : match.start()].encode(), _byte(match)]
        end = match.end()
    return b"".join([*parts, content[end:].encode()])


def _content(text: str) -> tuple[bool, str]:
    """Whether escapes mean nothing, and what is between the quotes; line ends are as Go reads them."""
    is_raw = text[0] in "rR"
    if is_raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return is_raw, text[quotes:-quotes].replace("\r\n", "\n").replace("\r", "\n")


def _character(match: re.Match[str]) -> str:
    simple, octal, two, four, eight = match.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    code = int(octal, 8) if octal is not None else int(two or four or eight, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _byte(match: re.Match[str]) -> bytes:
    simple, octal, two, four, eight = match.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple).encode()
    if four is not None or eight is not None:
        raise ValueError("unable to unescape string")
    return bytes([int(octal, 8) if octal is not None else int(two, 16)])
