from typing import Any

import trio

from trio_sched.testing import pod
from trio_sched.testing.cluster import VirtualCluster


async def create_pods(cluster: VirtualCluster, count: int, *, every_seconds: float = 0.0, **details: Any) -> None:
    """Create the pods ``p0``, ``p1``, … with the same *details*."""
    for number in range(count):
        await cluster.create(pod(f"p{number}", **details))
        if every_seconds:
            await trio.sleep(every_seconds)
