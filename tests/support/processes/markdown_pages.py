"""The pages of the documentation, taken apart: blocks of code, code in prose, links, headings."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "contrib/dashboards/README.md",
    ROOT / "contrib/plugins/README.md",
    *sorted(path for room in ("trio_sched", "plugins_builtin") for path in (ROOT / room).rglob("README.md")),
    *sorted(DOCS.rglob("*.md")),
)
_FILE_NAME = re.compile(r"# (\S+\.\w+)\n")


@frozen
class Block:
    """A block of code."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def file(self) -> str:
        """The name of the file that it is, which is its first line; empty if it is none."""
        found = _FILE_NAME.match(self.text)
        return found[1] if found else ""

    @property
    def place(self) -> str:
        """Where it is, for the name of a test."""
        return f"{self.page.name}:{self.line}"


@cache
def _tokens(page: Path) -> tuple[Token, ...]:
    return tuple(MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")))


def _inline(page: Path) -> Iterator[Token]:
    for token in _tokens(page):
        yield from token.children or ()


def blocks(*languages: str) -> list[Block]:
    """The blocks of all pages in any of *languages*."""
    return [
        Block(page, (token.map or [0])[0] + 1, token.info, token.content)
        for page in PAGES
        for token in _tokens(page)
        if token.type == "fence" and token.info in languages
    ]


def languages() -> set[str]:
    """The languages of all blocks."""
    return {token.info for page in PAGES for token in _tokens(page) if token.type == "fence"}


def files_of(page: Path) -> dict[str, str]:
    """The text of the files that *page* shows, by their names; the last one if there are several of a name."""
    shown = blocks("yaml", "toml", "python", "json")
    return {block.file: block.text for block in shown if block.page == page and block.file}


def codes(page: Path) -> set[str]:
    """The code in the prose and the tables of *page*; a line break is a space."""
    return {token.content for token in _inline(page) if token.type == "code_inline"}


def links(page: Path) -> list[str]:
    """Where the links of *page* lead."""
    return [str(token.attrs["href"]) for token in _inline(page) if token.type == "link_open"]


def headings(page: Path) -> list[str]:
    """The texts of the headings of *page*."""
    tokens = _tokens(page)
    return [
        "".join(part.content for part in tokens[index + 1].children or ())
        for index, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def anchors(page: Path) -> set[str]:
    """The names by which GitHub links to the headings of *page*."""
    found: set[str] = set()
    for heading in headings(page):
        name = base = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = 0
        while name in found:
            count += 1
            name = f"{base}-{count}"
        found.add(name)
    return found
