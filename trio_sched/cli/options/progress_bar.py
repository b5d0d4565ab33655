"""The line that a terminal shows while a long command runs."""

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text


class _CountColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}")


def progress_bar() -> Progress:
    """A bar for one task on stderr, which is gone when it ends."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), _CountColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
