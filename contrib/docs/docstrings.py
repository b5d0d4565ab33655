"""Docstrings as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Final

_CODE: Final = re.compile(r"(?<=:):\n\n((?: {4}.*\n?|\n(?= {4}|\n))+)")
"""An indented block after a paragraph that ends in ``::``."""
_SECTION: Final = re.compile(r"(Args|Returns|Raises):$")
_REFERENCE: Final = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)")
_ENTRY: Final = re.compile(r"([\w., ]+): (.*)", re.DOTALL)


def to_markdown(docstring: str, link: Callable[[str], str]) -> str:
    """*docstring*, without indentation, as Markdown.

    Args:
        docstring: paragraphs, blocks of code after ``::``, and the sections Args, Returns and Raises.
        link: turns what stands between single backticks into Markdown.
    """
    return "\n\n".join(_parts(docstring, link))


def _parts(docstring: str, link: Callable[[str], str]) -> Iterator[str]:
    text, *code_and_text = re.split(_CODE, docstring.strip("\n"))
    yield from _paragraphs(text, link)
    for code, after in zip(code_and_text[::2], code_and_text[1::2], strict=True):
        yield f"```python\n{textwrap.dedent(code).strip()}\n```"
        yield from _paragraphs(after, link)


def _paragraphs(text: str, link: Callable[[str], str]) -> Iterator[str]:
    for paragraph in filter(None, re.split(r"\n\s*\n", text.strip("\n"))):
        first, _, rest = paragraph.partition("\n")
        if section := _SECTION.match(first):
            yield from _section(section[1], rest, link)
        elif paragraph != ":":
            yield inline(paragraph, link)


def _section(name: str, body: str, link: Callable[[str], str]) -> Iterator[str]:
    text = textwrap.dedent(body)
    if name == "Returns":
        yield f"*Returns:* {inline(text, link)}"
        return
    entries = [_joined(lines) for lines in _entries(text)]
    yield f"*{name}:*"
    yield "\n".join(f"- {_entry(entry, name, link)}" for entry in entries)


def _entries(text: str) -> Iterator[list[str]]:
    """The lines of each entry: the first one is not indented."""
    number = 0
    numbered: list[tuple[int, str]] = []
    for line in text.split("\n"):
        number += not line.startswith(" ")
        numbered.append((number, line))
    for _, lines in groupby(numbered, key=lambda one: one[0]):
        yield [line for _, line in lines]


def _joined(lines: list[str]) -> str:
    return "\n  ".join(line.strip() for line in lines)


def _entry(entry: str, section: str, link: Callable[[str], str]) -> str:
    found = _ENTRY.fullmatch(entry)
    if found is None:
        return inline(entry, link)
    name = link(found[1]) if section == "Raises" else f"*{found[1]}*"
    return f"{name}: {inline(found[2], link)}"


def inline(text: str, link: Callable[[str], str]) -> str:
    """One paragraph as Markdown."""
    linked = _REFERENCE.sub(lambda found: link(found[1]), text)
    return linked.replace("``", "`")
