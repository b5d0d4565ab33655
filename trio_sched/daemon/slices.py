"""Long computations in slices, between which other tasks run."""

from __future__ import annotations

import gc
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import contextmanager
from heapq import merge
from typing import Any, Final, TypeVar

import trio

T = TypeVar("T")

SLICE_SECONDS: Final = 0.003
"""By the wall clock, as trio's may stand still in tests."""
_SORTED_TOGETHER: Final = 1000


@contextmanager
def no_collections() -> Generator[None]:
    """Keep the garbage collector from looking at what is made and gone again inside the block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Slices:
    """Counts the time since the last pause."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def is_due(self) -> bool:
        """Whether the slice is used up."""
        return time.perf_counter() - self._began >= SLICE_SECONDS

    async def pause(self) -> None:
        """Let other tasks run."""
        await trio.lowlevel.checkpoint()
        self._began = time.perf_counter()

    async def pause_if_due(self) -> None:
        """Let other tasks run if the slice is used up."""
        if self.is_due():
            await self.pause()

    async def sorted(self, things: Iterable[T], key: Callable[[T], Any]) -> list[T]:
        """*things* in the order of *key*; sorted in pieces, because a sort cannot be interrupted."""
        rest, pieces = list(things), []
        for begin in range(0, len(rest), _SORTED_TOGETHER):
            pieces.append(sorted(rest[begin : begin + _SORTED_TOGETHER], key=key))
            await self.pause_if_due()
        if len(pieces) <= 1:
            return pieces[0] if pieces else []
        found: list[T] = []
        for thing in merge(*pieces, key=key):
            found.append(thing)
            await self.pause_if_due()
        return found


async def in_slices(items: Iterable[T]) -> AsyncGenerator[T, None]:
    """*items*, with a turn of the event loop for others from time to time; they must not change meanwhile."""
    slices = Slices()
    for item in items:
        yield item
        await slices.pause_if_due()
