"""Long work in slices, between which the scheduler goes on."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable
from typing import TypeVar

import trio

from trio_sched.daemon.serving.limits import RENDER_SLICE_SECONDS

T = TypeVar("T")


async def in_slices(items: Iterable[T]) -> AsyncGenerator[T, None]:
    """*items*, with a turn of the event loop for others from time to time; they must not change meanwhile."""
    ends = time.perf_counter() + RENDER_SLICE_SECONDS
    for item in items:
        yield item
        if time.perf_counter() > ends:
            await trio.lowlevel.checkpoint()
            ends = time.perf_counter() + RENDER_SLICE_SECONDS
