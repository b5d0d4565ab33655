"""Answers go to stdout, as wide as whoever reads them allows."""

import sys
from typing import Final

from rich.console import Console

PIPE_WIDTH: Final = 160
"""Columns when nobody says how wide the terminal is."""


def answer_console() -> Console:
    """Where tables are printed."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, emoji=False, markup=False)
