"""The tables of commands that show what became of a cluster."""

from rich import box
from rich.table import Table


def table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table with *columns*; those in *right* have numbers."""
    found = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        found.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return found
