"""The tables of commands, in which no control character of a name or a message reaches the terminal."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from trio_sched.go.text import printable


class PlainTable(Table):
    """A table whose cells are shown as they are written, in one line; control characters in them are escaped."""

    def add_row(self, *cells: str | Sequence[str], **more: Any) -> None:  # type: ignore[override]
        """Add a row; a cell that is a sequence has several lines."""
        super().add_row(*(_lines(cell) for cell in cells), **more)


def table(title: str, *columns: str, right: tuple[str, ...] = ()) -> PlainTable:
    """An empty table with *columns*; those in *right* have numbers."""
    found = PlainTable(
        title=printable(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for column in columns:
        found.add_column(printable(column), justify="right" if column in right else "left", overflow="fold")
    return found


def line(text: str, style: str = "") -> Text:
    """*text* in one line beside tables."""
    return Text(printable(text), style=style)


def _lines(cell: str | Sequence[str]) -> str:
    return printable(cell) if isinstance(cell, str) else "\n".join(map(printable, cell))
