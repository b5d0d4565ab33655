"""Verbosities of the log as flags and requests give them: a number, or patterns of files with one each."""

from __future__ import annotations

from typing import Final

from trio_sched.go.text import quote, shortened

_MAX_DIGITS: Final = 10
_LEVELS: Final = 1 << 31


def parse_verbosity(text: str) -> int:
    """The number that *text* is.

    Raises:
        ValueError: it is none, or needs more than 31 bits; the text is that of Go's ``strconv.ParseUint``.
    """
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"strconv.ParseUint: parsing {quote(shortened(text))}: invalid syntax")
    digits = text.lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS or int(digits) >= _LEVELS:
        raise ValueError(f"strconv.ParseUint: parsing {quote(shortened(text))}: value out of range")
    return int(digits)


def parse_vmodule(text: str) -> tuple[tuple[str, int], ...]:
    """Patterns and verbosities, from ``pattern=N,...``; nothing from an empty text.

    Raises:
        ValueError: a part has another form.
    """
    patterns = []
    for part in filter(None, text.split(",")):
        pattern, separator, level = part.partition("=")
        if not (pattern and separator and level):
            raise ValueError(f"{quote(shortened(part))} does not have the pattern=N format")
        try:
            patterns.append((pattern, parse_verbosity(level)))
        except ValueError as problem:
            raise ValueError(f"parsing verbosity in {quote(shortened(part))}: {problem}") from problem
    return tuple(patterns)
