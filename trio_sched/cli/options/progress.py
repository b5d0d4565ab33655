"""What a long command is doing, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from attrs import define

from trio_sched.go.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress as ProgressBar

_LONGEST: Final = 60


@define(eq=False)
class Progress:
    """Shows one line; does nothing without a bar."""

    _bar: ProgressBar | None = None

    def begin(self, what: str) -> None:
        """Say *what* is being done from now on."""
        if self._bar is not None:
            text = printable(what)
            shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
            self._bar.update(self._bar.task_ids[0], description=shown, total=None)

    def count(self, done: int, of: int) -> None:
        """Say how much of it is done."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, total=of)


@contextmanager
def shown_progress() -> Generator[Progress, None, None]:
    """A line on stderr while in the block, if that is a terminal; what is written there meanwhile stands above it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield Progress()
        return
    from trio_sched.cli.options.progress_bar import progress_bar

    with progress_bar() as bar:
        bar.add_task("", total=None)
        yield Progress(bar)
