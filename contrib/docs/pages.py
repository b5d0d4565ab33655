"""A reference page that is made from the code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from attrs import frozen

REFERENCE: Final = Path(__file__).parents[2] / "docs" / "reference"


@frozen
class Page:
    """A page in docs/reference, and the function that makes its text."""

    name: str
    text: Callable[[], str]

    @property
    def target(self) -> Path:
        """Where it is."""
        return REFERENCE / self.name

    def write(self) -> None:
        """Write it again."""
        self.target.write_text(self.text(), encoding="utf-8")
        sys.stdout.write(f"wrote {self.target.relative_to(self.target.parents[2])}\n")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; cells are escaped."""
    listed = [list(heads)]
    listed.append(["---"] * len(listed[0]))
    listed += [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in listed) + "\n"
