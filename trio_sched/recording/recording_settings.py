"""What is to be recorded, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import frozen

MAX_BYTES: Final = 1 << 30
"""The size of a recording if none is given."""


@frozen(kw_only=True)
class RecordingSettings:
    """A recording."""

    folder: Path
    """It is created; segments that are in it stay, as long as there is room."""
    max_bytes: int = MAX_BYTES
    """The size of all segments together."""
    annotations: tuple[str, ...] = ()
    """The annotations that plugins read, besides those that built-in ones do; ``*`` at the end stands for any text."""
    hash_names: bool = False
    """Whether hashes stand for names of objects and values of labels."""
