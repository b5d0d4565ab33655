"""What is in memory: objects by type, without anything that has to be switched on beforehand."""

from __future__ import annotations

import gc
import resource
import sys
from collections import Counter

from trio_sched.daemon.serving.limits import MAX_HEAP_TYPES
from trio_sched.daemon.slices import in_slices

_GENERATIONS = 3


async def heap_summary() -> str:
    """The number and the shallow size of objects that the garbage collector tracks, by type, largest first.

    Structs without pointers to containers are not tracked, and what the start has frozen is only counted.
    """
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for generation in range(_GENERATIONS):
        objects = gc.get_objects(generation)
        async for one in in_slices(objects):
            kind = type(one)
            name = f"{kind.__module__}.{kind.__qualname__}"
            counts[name] += 1
            sizes[name] += _size(one)
        del objects
    lines = [
        f"# maximum resident set size: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} KiB",
        f"# tracked objects: {counts.total()}, frozen and not listed: {gc.get_freeze_count()}",
        f"# {'bytes':>12} {'objects':>10} type",
    ]
    lines += [f"{size:>14} {counts[name]:>10} {name}" for name, size in sizes.most_common(MAX_HEAP_TYPES)]
    if len(sizes) > MAX_HEAP_TYPES:
        lines.append(f"# {len(sizes) - MAX_HEAP_TYPES} further types are left out")
    return "\n".join([*lines, ""])


def _size(one: object) -> int:
    try:
        return sys.getsizeof(one)
    except Exception:  # objects of plugins and libraries may do anything here
        return 0
