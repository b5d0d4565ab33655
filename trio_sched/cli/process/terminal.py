"""Output on stdout, as wide as the terminal."""

import sys
from typing import Final

from rich.console import Console

PIPE_WIDTH: Final = 160
"""Columns where stdout is no terminal."""


def answer_console() -> Console:
    """Where tables are printed."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, emoji=False, markup=False)
