"""One run: a cluster, replicas, pods that come and go, and faults; everything follows from the seed."""

from __future__ import annotations

from random import Random
from typing import Final

from attrs import frozen

from contrib.sharding.checks import Checks
from contrib.sharding.events import EventLoop
from contrib.sharding.machine import Machine
from contrib.sharding.objects import ShardedPod
from contrib.sharding.protocol import Protocol
from contrib.sharding.server import Server
from contrib.sharding.workload import Plan, Size, draw_nodes

_SKEW: Final = 0.01
"""A clock is so much faster or slower at most."""
_QUIET_SECONDS: Final = 150.0
"""After the last fault: leases run out, shards are taken, what was held back arrives, everything is placed."""
_FAULTLESS_SECONDS: Final = 20.0
"""The same where nothing fails."""
_GRACE_SECONDS: Final = 8.0
"""A pod that is evicted takes so long to terminate at most."""


@frozen(kw_only=True)
class Result:
    """What became of a run."""

    problems: tuple[str, ...]
    """What must never happen, and did."""
    unplaced: tuple[str, ...]
    """Pods and groups that one scheduler would have placed at the end."""
    bound: int
    waiting: int
    evicted: int
    wasted: tuple[tuple[str, int], ...]
    """Those of them on nodes that the pod did not get for which they made room: why, and how many."""
    allocated: int
    """Claims that have a device at the end."""
    groups: int
    """Those that run at the end."""
    local_seconds: tuple[float, ...]
    """From the creation of pods to their bind, of those that whoever decided on them has bound."""
    other_seconds: tuple[float, ...]
    """The same for those that were nominated to a node of another process."""
    cost: tuple[tuple[int, int, int], ...]
    """The requests and decisions of each process, and the events that it has seen; without those that were killed."""

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and not self.unplaced


def run(seed: int, protocol: Protocol | None = None, size: Size | None = None) -> Result:
    """Run a cluster with faults; *size* is drawn if not given."""
    random, loop, protocol = Random(seed), EventLoop(), protocol or Protocol()
    size = size or Size.drawn(random)
    nodes = draw_nodes(random, size)
    checks = Checks(nodes, lambda: loop.now)
    grace = Random(random.random())

    def evict(pod: ShardedPod, preemptor: str) -> None:
        checks.before_eviction(pod, preemptor)
        loop.after(grace.uniform(0.1, _GRACE_SECONDS), lambda: server.delete(pod.name))

    server = checks.server = Server(nodes, checks.before_bind, evict, checks.before_allocation, checks.before_lease)
    machines = [
        Machine(
            number, loop, server, Random(random.random()), protocol, 1.0 + random.uniform(-_SKEW, _SKEW), size.stuck
        )
        for number in range(size.replicas)
    ]
    for machine in machines:
        loop.at(random.uniform(0.0, 1.0), machine.start)
    plan = Plan(random, loop, server, size, [random.uniform(0.0, size.load_seconds) for _ in range(size.bursts)])
    created = plan.pods()
    ended = max(size.load_seconds, plan.faults(machines), plan.renumber(machines))
    loop.run(ended + (_QUIET_SECONDS if size.faults or size.stuck or size.renumbered else _FAULTLESS_SECONDS))
    checks.at_the_end()
    waited = {name: checks.bound_at[name] - at for name, at in created.items() if name in checks.bound_at}
    others = {change.name for change in server.log if isinstance(change.stored, ShardedPod) and change.stored.nominated}
    return Result(
        problems=tuple(checks.problems),
        unplaced=tuple(checks.left_unplaced()),
        bound=len(checks.bound_at),
        waiting=sum(not pod.node for pod in server.pods.values()),
        evicted=len(checks.evicted),
        wasted=tuple(sorted(checks.wasted().items())),
        allocated=sum(bool(claim.node) for claim in server.claims.values()),
        groups=sum(group.is_scheduled for group in server.groups.values()),
        local_seconds=tuple(seconds for name, seconds in waited.items() if name not in others),
        other_seconds=tuple(seconds for name, seconds in waited.items() if name in others),
        cost=tuple(
            (process.link.requests, process.decisions, process.link.events)
            for process in (machine.process for machine in machines)
            if process is not None
        ),
    )
