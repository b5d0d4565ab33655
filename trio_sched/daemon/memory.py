"""Memory settings of a process that holds many long-lived objects and makes short-lived arrays all the time."""

from __future__ import annotations

import ctypes
import gc
import logging

log = logging.getLogger(__name__)

GC_THRESHOLDS = (50_000, 50, 100)
"""Long-lived objects are many and garbage is mostly acyclic: the defaults would have the collector run all the time."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_TRIM_BYTES = 64 << 20
_MMAP_BYTES = 16 << 20


def keep_freed_memory() -> None:
    """Have the C library keep what arrays give back instead of returning it to the system each time.

    Otherwise every temporary column costs page faults, which doubles the price of a fresh decision on 5,000 nodes.
    Where the C library is not glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        log.debug("no mallopt here; memory is left as it is")
        return
    mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)


def settle_down() -> None:
    """The first lists are in: what is there now stays, and the collector need not look at it again."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
