"""Memory settings for a process that holds many long-lived objects and allocates short-lived arrays all the time."""

from __future__ import annotations

import ctypes
import gc
import logging

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
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        log.log(V4, "no mallopt here; memory is left as it is")
        return
    mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)


def freeze_garbage_collector() -> None:
    """Exclude all objects that exist now from garbage collection; for the moment when the caches are filled."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
