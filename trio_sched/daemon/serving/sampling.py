"""A sampling profiler: a thread that looks at the stacks of all others."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from types import FrameType
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.serving.limits import MAX_PROFILE_STACKS, MAX_STACK_FRAMES, PROFILE_SAMPLES_PER_SECOND

_OTHERS: Final = "(further stacks)"


@define(eq=False)
class Sampler:
    """Counts stacks while it runs."""

    _counts: Counter[str] = field(init=False, factory=Counter)
    _stop: threading.Event = field(init=False, factory=threading.Event)

    async def run(self, seconds: float) -> str:
        """Sample for *seconds*; returns collapsed stacks, a line for each with its count, the most frequent first."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, self._sample)
            try:
                await trio.sleep(seconds)
            finally:
                self._stop.set()
        return "".join(f"{stack} {count}\n" for stack, count in self._counts.most_common())

    def _sample(self) -> None:
        own = threading.get_ident()
        period = 1 / PROFILE_SAMPLES_PER_SECOND
        due = time.monotonic()
        while not self._stop.is_set():
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            for ident, frame in sys._current_frames().items():
                if ident != own:
                    self._count(names.get(ident, str(ident)), frame)
            due = max(due + period, time.monotonic())
            self._stop.wait(due - time.monotonic())

    def _count(self, thread: str, frame: FrameType) -> None:
        stack = collapsed(thread, frame)
        if stack not in self._counts and len(self._counts) >= MAX_PROFILE_STACKS:
            stack = _OTHERS
        self._counts[stack] += 1


def collapsed(thread: str, frame: FrameType | None) -> str:
    """The stack of *frame*, outermost function first, separated by semicolons."""
    functions: list[str] = []
    while frame is not None and len(functions) < MAX_STACK_FRAMES:
        code = frame.f_code
        functions.append(f"{frame.f_globals.get('__name__', '?')}:{code.co_qualname}".replace(";", ","))
        frame = frame.f_back
    return ";".join([thread.replace(";", ","), *reversed(functions)])


def thread_stacks() -> str:
    """The stacks of all threads as they are now, a line for each."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "".join(
        f"{collapsed(names.get(ident, str(ident)), frame)}\n" for ident, frame in sys._current_frames().items()
    )
