"""Memory settings for a process that holds many long-lived objects and allocates short-lived arrays all the time."""

from __future__ import annotations

import ctypes
import gc
import logging
from collections.abc import Callable

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
    mallopt = _c_function("mallopt")
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)


def return_free_memory() -> None:
    """Return to the system what is free between what is in use; takes milliseconds."""
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


def _c_function(name: str) -> Callable[..., int] | None:
    """The function of the C library; None where it is not glibc."""
    try:
        return getattr(ctypes.CDLL(None), name)  # type: ignore[no-any-return]
    except (OSError, AttributeError):
        log.log(V4, "no %s here; memory is left as it is", name)
        return None


def freeze_garbage_collector() -> None:
    """Exclude all objects that exist now from garbage collection; for the moment when the caches are filled."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
