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
    """Looks at stacks while it runs: counts them, or lists them one after the other."""

    in_order: bool = False
    _counts: Counter[str] = field(init=False, factory=Counter)
    _stop: threading.Event = field(init=False, factory=threading.Event)

    _listed: list[str] = field(init=False, factory=list)

    async def run(self, seconds: float) -> str:
        """Sample for *seconds*; returns a line for each collapsed stack.

        They end in their counts, the most frequent first; or in order they begin with the time in milliseconds.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, self._sample)
            try:
                await trio.sleep(seconds)
            finally:
                self._stop.set()
        if self.in_order:
            return "".join(self._listed)
        return "".join(f"{stack} {count}\n" for stack, count in self._counts.most_common())

    def _sample(self) -> None:
        own = threading.get_ident()
        period = 1 / PROFILE_SAMPLES_PER_SECOND
        began = due = time.monotonic()
        while True:
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            for ident, frame in sys._current_frames().items():
                if ident != own:
                    stack = collapsed(names.get(ident, str(ident)), frame)
                    self._list(stack, time.monotonic() - began) if self.in_order else self._count(stack)
            due = max(due + period, time.monotonic())
            if self._stop.wait(due - time.monotonic()):
                return

    def _list(self, stack: str, seconds: float) -> None:
        if len(self._listed) < MAX_PROFILE_STACKS:
            self._listed.append(f"{seconds * 1e3:.1f} {stack}\n")

    def _count(self, stack: str) -> None:
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
