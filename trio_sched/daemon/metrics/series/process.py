"""What the process uses, as Linux tells it; elsewhere these families are missing."""

from __future__ import annotations

import gc
import os
import platform
import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from trio_sched.daemon.metrics.families.exposed import Series

_PROC: Final = Path("/proc")
_START: Final = 19
"""Index of the start time, in ticks after boot, among the fields of ``stat`` after the name."""


def collect() -> Iterator[tuple[str, list[Series]]]:
    """Family → series."""
    usage = os.times()
    yield "process_cpu_seconds_total", _one(usage.user + usage.system)
    yield "process_start_time_seconds", _one(start_time())
    with suppress(OSError, ValueError, IndexError):
        pages = [int(part) for part in (_PROC / "self/statm").read_text().split()]
        size = resource.getpagesize()
        yield "process_virtual_memory_bytes", _one(pages[0] * size)
        yield "process_resident_memory_bytes", _one(pages[1] * size)
    yield "process_virtual_memory_max_bytes", _one(_limit(resource.RLIMIT_AS))
    with suppress(OSError):
        yield "process_open_fds", _one(len(os.listdir(_PROC / "self/fd")))
    yield "process_max_fds", _one(_limit(resource.RLIMIT_NOFILE))
    with suppress(OSError, ValueError, StopIteration):
        received, sent = _network_bytes()
        yield "process_network_receive_bytes_total", _one(received)
        yield "process_network_transmit_bytes_total", _one(sent)
    yield from _python()


@cache
def start_time() -> float:
    """When this process began, in seconds since 1970; to the hundredth."""
    try:
        after_name = (_PROC / "self/stat").read_text().rpartition(")")[2].split()
        booted = next(line for line in (_PROC / "stat").read_text().splitlines() if line.startswith("btime "))
        return float(booted.split()[1]) + int(after_name[_START]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):  # another system than Linux: when it was first asked
        return round(time.time(), 2)


def _python() -> Iterator[tuple[str, list[Series]]]:
    major, minor, patchlevel = platform.python_version_tuple()
    info = (platform.python_implementation(), major, minor, patchlevel, platform.python_version())
    yield "python_info", [(info, 1.0)]
    stats = gc.get_stats()
    for family, entry in (
        ("python_gc_objects_collected_total", "collected"),
        ("python_gc_objects_uncollectable_total", "uncollectable"),
        ("python_gc_collections_total", "collections"),
    ):
        yield family, [((str(generation),), float(one[entry])) for generation, one in enumerate(stats)]


def _network_bytes() -> tuple[int, int]:
    """Received and sent, over IP, in the network namespace of the process."""
    lines = (_PROC / "self/net/netstat").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("IpExt:"))
    found = dict(zip(names, values, strict=True))
    return int(found["InOctets"]), int(found["OutOctets"])


def _limit(kind: int) -> float:
    limit = resource.getrlimit(kind)[0]
    return float(limit) if limit >= 0 else 2.0**64 - 1


def _one(value: float) -> list[Series]:
    return [((), float(value))]
