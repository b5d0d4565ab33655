"""Memory settings for a process that holds many long-lived objects and allocates short-lived arrays all the time."""

from __future__ import annotations

import ctypes
import gc
import logging
import resource
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NoReturn

import trio
from attrs import define

from trio_sched.daemon.limits import FREE_MEMORY_SECONDS, MAX_TRIM_PAUSE, WORTH_TRIMMING_BYTES
from trio_sched.objects import sharing
from trio_sched.verbosity import V4

log = logging.getLogger(__name__)

GC_THRESHOLDS = (50_000, 50, 100)
"""There are many long-lived objects and hardly any cyclic garbage: with the defaults the collector would run all the
time for nothing."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_TRIM_BYTES = 64 << 20
_MMAP_BYTES = 16 << 20


def set_malloc_thresholds() -> None:
    """Have the C library keep the memory of freed arrays instead of returning it to the system each time.

    Otherwise every temporary column costs page faults, which doubles the time of an uncached decision on 5,000 nodes.
    Does nothing where the C library is not glibc.
    """
    mallopt = _function("mallopt")
    if mallopt is None:
        return
    mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)


async def free_memory(*forget: Callable[[], None]) -> NoReturn:
    """Now and then return memory to the system that is not needed any more; for ever.

    Args:
        forget: each drops what may hold objects that are gone.
    """
    trim = _trim_of_process()
    while True:
        await trio.sleep(FREE_MEMORY_SECONDS)
        for one in forget:
            one()
        gc.collect(1)  # by itself the collector comes round after millions of objects, however large they are
        sharing.forget_unused()
        trim.look()


@define(eq=False)
class Trim:
    """Returns free memory to the system, which the C library does by itself at the end of its heap only.

    Everything else stands still meanwhile, for some ten milliseconds per gigabyte: so it is done when the process has
    grown, and else the more seldom the less is gained.
    """

    malloc_trim: Callable[[int], int] | None
    resident_bytes: Callable[[], int]
    _resident_after: int = 0
    """What was left the last time."""
    _looks: int = 0
    """How often nothing was done since."""
    _pause: int = 1
    """After how many looks it is done in any case."""

    def look(self) -> None:
        """Return free memory, if it is time."""
        if self.malloc_trim is None:
            return
        before = self.resident_bytes()
        self._looks += 1
        if self._looks < self._pause and before < self._resident_after + WORTH_TRIMMING_BYTES:
            return
        self.malloc_trim(0)
        self._resident_after = self.resident_bytes()
        is_gain = before - self._resident_after >= WORTH_TRIMMING_BYTES
        self._pause = 1 if is_gain else min(2 * self._pause, MAX_TRIM_PAUSE)
        self._looks = 0


@cache
def _trim_of_process() -> Trim:
    """For all schedulers that run in this process, one after the other or together: its memory is one."""
    return Trim(_function("malloc_trim"), _resident_bytes)


def _resident_bytes() -> int:
    """Memory of this process; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def _function(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where that is not glibc."""
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        log.log(V4, "no %s here; memory is left as it is", name)
        return None
    return found


def freeze_garbage_collector() -> None:
    """Exclude all objects that exist now from garbage collection; for the moment when the caches are filled."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
