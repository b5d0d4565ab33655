"""Room for the recursion over expressions that are nested as deep as is allowed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_CALLS: Final = 10_000
"""Calls between functions written in Python take no C stack, so that many are safe."""


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Allow calls inside the block to be nested deeper than Python does by default; nothing in it may wait."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
