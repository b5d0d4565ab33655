"""One run: a cluster, replicas, pods that come and go, and faults; everything follows from the seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from attrs import define, field, frozen

from contrib.sharding.checks import Checks
from contrib.sharding.events import Action, EventLoop
from contrib.sharding.link import Link
from contrib.sharding.protocol import Protocol
from contrib.sharding.replica import Replica
from contrib.sharding.server import Node, Server, ShardedPod

_SKEW: Final = 0.01
"""A clock is so much faster or slower at most."""
_QUIET_SECONDS: Final = 150.0
"""After the last fault: leases run out, shards are taken, what was held back arrives, everything is placed."""


@frozen(kw_only=True)
class Size:
    """How much of everything."""

    nodes: int = 16
    zones: int = 4
    replicas: int = 3
    pods: int = 120
    owners: int = 24
    bursts: int = 8
    """Half of the pods come in so many bursts, the others evenly."""
    load_seconds: float = 60.0
    """For so long pods come and go, and faults happen."""
    faults: int = 6
    stuck: float = 0.004
    """The share of requests that arrive seconds after they were sent."""

    @classmethod
    def drawn(cls, random: Random) -> Size:
        """One of many; in some there is no room for all pods, in some requests often arrive late."""
        nodes = random.randint(4, 24)
        return cls(
            nodes=nodes,
            zones=random.randint(1, 4),
            replicas=random.randint(2, 4),
            pods=nodes * random.randint(4, 10),
            owners=random.randint(4, 30),
            bursts=random.randint(1, 10),
            load_seconds=random.uniform(40.0, 80.0),
            faults=random.randint(2, 10),
            stuck=random.choice((0.002, 0.02, 0.1)),
        )


@frozen(kw_only=True)
class Result:
    """What became of a run."""

    problems: tuple[str, ...]
    """What must never happen, and did."""
    unplaced: tuple[str, ...]
    """Pods that one scheduler would have placed at the end."""
    bound: int
    waiting: int
    local_seconds: tuple[float, ...]
    """From the creation of pods to their bind, of those that whoever decided on them has bound."""
    other_seconds: tuple[float, ...]
    """Of those that were nominated to a node of another process."""

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and not self.unplaced


@define(eq=False)
class _Place:
    """Where one process after the other runs: its machine, with a clock and a network."""

    number: int
    loop: EventLoop
    server: Server
    random: Random
    protocol: Protocol
    rate: float
    stuck: float
    replica: Replica | None = field(default=None, init=False)
    link: Link | None = field(default=None, init=False)
    _starts: int = field(default=0, init=False)
    _is_stopped: bool = field(default=False, init=False)
    _waiting: list[Action] = field(factory=list, init=False)

    def start(self) -> None:
        """Start another process, unless there is one."""
        if self.replica is not None:
            return
        self._starts += 1
        random = Random(self.random.random())

        def deliver(action: Action) -> None:
            if self.replica is not replica:
                return
            if self._is_stopped:
                self._waiting.append(lambda: deliver(action))
            else:
                action()

        link = Link(self.loop, self.server, random, deliver, self.stuck)
        replica = Replica(
            identity=f"replica-{self.number}-{self._starts}",
            protocol=self.protocol,
            loop=self.loop,
            link=link,
            random=random,
            clock=lambda: 1000.0 * self.number + self.rate * self.loop.now,
            clock_rate=self.rate,
        )
        self.replica, self.link = replica, link
        self.server.followers.append(link.followed)
        replica.start()

    def kill(self) -> None:
        """End the process; what it has sent goes on."""
        if self.link is not None:
            self.server.followers.remove(self.link.followed)
        self.replica = self.link = None
        self._is_stopped = False
        self._waiting.clear()

    def stop(self) -> None:
        """Stop the process, as SIGSTOP does."""
        self._is_stopped = True

    def go_on(self) -> None:
        """Let it go on."""
        self._is_stopped = False
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()

    def cut(self) -> None:
        """Cut its network."""
        if self.link is not None:
            self.link.cut()

    def mend(self) -> None:
        """Mend its network."""
        if self.link is not None:
            self.link.mend()


def run(seed: int, protocol: Protocol | None = None, size: Size | None = None) -> Result:
    """Run a cluster with faults; *size* is drawn if not given."""
    random, loop, protocol = Random(seed), EventLoop(), protocol or Protocol()
    size = size or Size.drawn(random)
    nodes = {
        f"node-{number}": Node(
            name=f"node-{number}", cpu=random.choice((2000, 4000)), zone=f"zone-{number % size.zones}"
        )
        for number in range(size.nodes)
    }
    checks = Checks(nodes, lambda: loop.now)
    server = Server(nodes, checks.before_bind)
    checks.pods = server.pods
    places = [
        _Place(number, loop, server, Random(random.random()), protocol, 1.0 + random.uniform(-_SKEW, _SKEW), size.stuck)
        for number in range(size.replicas)
    ]
    for place in places:
        loop.at(random.uniform(0.0, 1.0), place.start)
    bursts = [random.uniform(0.0, size.load_seconds) for _ in range(size.bursts)]
    created = _plan_pods(random, loop, server, size, bursts)
    faults = [_plan_fault(random, loop, places, random.choice(bursts)) for _ in range(size.faults)]
    ended = max(size.load_seconds, *faults) if faults else size.load_seconds
    loop.run(ended + _QUIET_SECONDS)
    waited = {name: checks.bound_at[name] - at for name, at in created.items() if name in checks.bound_at}
    others = {change.name for change in server.log if change.pod is not None and change.pod.nominated}
    return Result(
        problems=tuple(checks.problems),
        unplaced=tuple(checks.left_unplaced()),
        bound=len(checks.bound_at),
        waiting=sum(not pod.node for pod in server.pods.values()),
        local_seconds=tuple(seconds for name, seconds in waited.items() if name not in others),
        other_seconds=tuple(seconds for name, seconds in waited.items() if name in others),
    )


def _plan_pods(random: Random, loop: EventLoop, server: Server, size: Size, bursts: list[float]) -> dict[str, float]:
    """Let pods come, and some go again; returns when each comes."""
    created: dict[str, float] = {}

    def later(time: float, action: Callable[[], object]) -> None:
        loop.at(time, lambda: action() and None)

    for number in range(size.pods):
        owner = f"owner-{random.randrange(size.owners)}"
        repels = f"owner-{random.randrange(size.owners)}" if random.random() < 0.1 else ""
        pod = ShardedPod(name=f"pod-{number}", owner=owner, cpu=random.choice((250, 500, 1000, 2000)), repels=repels)
        evenly, at_once = random.uniform(0.0, size.load_seconds), random.choice(bursts) + random.uniform(0.0, 0.5)
        at = created[pod.name] = random.choice((evenly, at_once))
        later(at, lambda pod=pod: server.create(pod))  # type: ignore[misc]
        if random.random() < 0.3:
            later(at + random.uniform(1.0, 40.0), lambda pod=pod: server.delete(pod.name))  # type: ignore[misc]
    return created


def _plan_fault(random: Random, loop: EventLoop, places: list[_Place], burst: float) -> float:
    """Plan a kill, a stop or an outage of the network, about when many pods come; returns when it is over."""
    place, begins = random.choice(places), max(burst + random.uniform(-20.0, 2.0), 0.0)
    ends = begins + random.choice((0.5, 5.0, 12.0, 16.0, 20.0, 40.0)) * random.uniform(0.8, 1.2)
    begin, end = random.choice(((place.kill, place.start), (place.stop, place.go_on), (place.cut, place.mend)))
    loop.at(begins, begin)
    loop.at(ends, end)
    return ends
