"""What a bound pod costs each process, with more and more of them, without faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from contrib.sharding.protocol import Protocol
from contrib.sharding.run import run
from contrib.sharding.workload import Size

_COUNTS: Final = (1, 2, 4, 8)


def table(runs: int) -> Iterator[str]:
    """The lines of a table: per process and bound pod, and relative to one process that does everything."""
    found = {count: measure(count, runs) for count in _COUNTS}
    yield "processes   requests      decisions     events seen   (per process and bound pod; relative to one process)"
    for count, cost in found.items():
        cells = (f"{one:6.2f} ({one / alone:4.2f})" for one, alone in zip(cost, found[1], strict=True))
        yield f"{count:9}   {'  '.join(cells)}"


def measure(processes: int, runs: int) -> Sequence[float]:
    """Requests, decisions and events of one of so many processes, which have a shard each, per bound pod."""
    # The leases cost the same however many pods there are: enough of these come that they do not matter.
    size = Size(nodes=120, replicas=processes, pods=240, owners=100, bursts=4, load_seconds=20.0, faults=0, stuck=0.0)
    results = [run(seed, Protocol(shards=processes), size) for seed in range(runs)]
    bound = sum(result.bound for result in results)
    sums = zip(*(cost for result in results for cost in result.cost), strict=True)
    return [sum(one) / processes / bound for one in sums]
