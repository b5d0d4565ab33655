"""What comes and goes in a run: pods, claims, groups, faults, another number of shards."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from attrs import evolve, frozen

from contrib.sharding.events import EventLoop
from contrib.sharding.machine import Machine
from contrib.sharding.objects import Claim, Node, PodGroup, ShardedPod, Stored
from contrib.sharding.server import Server

_NUMBERS: Final = (1, 2, 3, 5, 8)


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
    priorities: int = 1
    """So many different ones; pods of the lowest are the most."""
    claims: int = 0
    """Claims of devices; one or two pods use each, in addition to the other pods."""
    groups: int = 0
    """Groups of two to five pods, in addition to the other pods."""
    renumbered: tuple[int, ...] = ()
    """All processes are started again with each of these numbers of shards, one after the other."""

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
            priorities=random.choice((1, 3, 3)),
            claims=random.choice((0, nodes, 2 * nodes)),
            groups=random.choice((0, nodes // 2, nodes)),
            renumbered=tuple(random.choices(_NUMBERS, k=random.choice((0, 0, 1, 2)))),
        )


def draw_nodes(random: Random, size: Size) -> dict[str, Node]:
    """The nodes of a cluster."""
    return {
        name: Node(
            name=name,
            cpu=random.choice((2000, 4000)),
            zone=f"zone-{number % size.zones}",
            devices=random.randint(0, 2) if size.claims else 0,
        )
        for number in range(size.nodes)
        for name in (f"node-{number}",)
    }


@frozen
class Plan:
    """Plans what happens in one run."""

    random: Random
    loop: EventLoop
    server: Server
    size: Size
    bursts: Sequence[float]

    def pods(self) -> dict[str, float]:
        """Let pods come, and some go again; returns when each comes."""
        created: dict[str, float] = {}
        for number in range(self.size.pods):
            created[f"pod-{number}"] = self._create(f"pod-{number}", self._time())
        for number in range(self.size.claims):
            claim, at = Claim(name=f"claim-{number}"), self._time()
            self._later(at, claim)
            for user in range(self.random.choice((1, 1, 2))):
                name = f"{claim.name}-{user}"
                created[name] = self._create(name, at + self.random.uniform(0.0, 5.0), claim=claim.name)
        for number in range(self.size.groups):
            created |= self._create_group(f"group-{number}")
        return created

    def faults(self, machines: list[Machine]) -> float:
        """Plan kills, stops and outages of the network, about when many pods come; returns when they are over."""
        over = 0.0
        for _ in range(self.size.faults):
            machine, burst = self.random.choice(machines), self.random.choice(self.bursts)
            begins = max(burst + self.random.uniform(-20.0, 2.0), 0.0)
            ends = begins + self.random.choice((0.5, 5.0, 12.0, 16.0, 20.0, 40.0)) * self.random.uniform(0.8, 1.2)
            begin, end = self.random.choice(
                ((machine.kill, machine.start), (machine.stop, machine.go_on), (machine.cut, machine.mend))
            )
            self.loop.at(begins, begin)
            self.loop.at(ends, end)
            over = max(over, ends)
        return over

    def renumber(self, machines: list[Machine]) -> float:
        """Start all processes again with other numbers of shards; returns when that is over."""
        time = self.random.uniform(10.0, 30.0) if self.size.renumbered else 0.0
        for shards in self.size.renumbered:
            for machine in self.random.sample(machines, len(machines)):
                time += self.random.choice((0.5, 3.0, 10.0)) * self.random.uniform(0.5, 1.5)
                self.loop.at(time, lambda machine=machine, shards=shards: machine.reconfigure(shards))  # type: ignore[misc]
            time += self.random.uniform(0.0, 30.0)
        return time

    def _create_group(self, name: str) -> dict[str, float]:
        count, at = self.random.randint(2, 5), self._time()
        cpu, priority = self.random.choice((250, 500, 1000)), self._priority()
        self._later(at, PodGroup(name=name, min_count=count))
        pods = {f"{name}-{number}": at + self.random.uniform(0.0, 3.0) for number in range(count)}
        for pod, time in pods.items():
            wanted = ShardedPod(name=pod, owner=name, cpu=cpu, priority=priority, group=name)
            self._later(time, wanted)
            if self.random.random() < 0.03:
                self._delete_later(time, pod)
        return pods

    def _create(self, name: str, at: float, claim: str = "") -> float:
        owner = f"owner-{self.random.randrange(self.size.owners)}"
        repels = f"owner-{self.random.randrange(self.size.owners)}" if self.random.random() < 0.1 else ""
        pod = ShardedPod(name=name, owner=owner, cpu=self.random.choice((250, 500, 1000, 2000)), repels=repels)
        self._later(at, evolve(pod, claim=claim, priority=self._priority()))
        if self.random.random() < 0.3:
            self._delete_later(at, name)
        return at

    def _priority(self) -> int:
        """Low ones are drawn more often; nothing is drawn where there is one only."""
        if self.size.priorities == 1:
            return 0
        return min(self.random.randrange(self.size.priorities) for _ in range(2))

    def _time(self) -> float:
        evenly = self.random.uniform(0.0, self.size.load_seconds)
        return self.random.choice((evenly, self.random.choice(self.bursts) + self.random.uniform(0.0, 0.5)))

    def _later(self, time: float, stored: Stored) -> None:
        self.loop.at(time, lambda: self.server.create(stored))

    def _delete_later(self, time: float, name: str) -> None:
        self.loop.at(time + self.random.uniform(1.0, 40.0), lambda: self.server.delete(name))
