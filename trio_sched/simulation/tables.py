"""The tables of commands, in which no control character of a name or a message reaches the terminal."""

from collections.abc import Sequence
from typing import Any, Final

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from trio_sched.go.text import printable

_SHORTEST: Final = 3
"""Characters that a column of names needs at least."""


class PlainTable(Table):
    """A table whose cells are shown as they are written, in one line; control characters in them are escaped.

    Numbers are broken only where there is no room for all of them: what has no room is not shown otherwise.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = 3 * len(self.columns) - 1  # what is between the cells
        for column in self.columns:
            texts = [str(cell) for cell in (column.header, *column.cells)]
            widest = max(cell_len(line) for text in texts for line in text.split("\n"))
            needed += widest if column.justify == "right" else min(widest, _SHORTEST)
        for column in self.columns:
            column.no_wrap = column.justify == "right" and needed <= options.max_width
        return super().__rich_console__(console, options)

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
