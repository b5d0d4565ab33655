"""Sixteen leaders, one after the other, under a stream of pods: each ends in another way, with another clock."""

from datetime import datetime, timedelta
from random import Random

import trio
from attrs import define, field
from ledger import Ledger
from trio.testing import MockClock

from trio_sched.daemon.leader_election import LeaderElectionLost
from trio_sched.simulator.storage.clock import Clock
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.scheduler_process import SchedulerProcess

LEASES = "leases.coordination.k8s.io"
CHANGES = 16
SEED = 1
LEASE_SECONDS = 15.0
RETRY_SECONDS = 2 * 2.2
"""The longest pause between two attempts to acquire, with its jitter."""


@define(eq=False)
class SteppedClock:
    """The wall clock of one machine: off by minutes, and stepped now and then."""

    clock: Clock
    random: Random
    offset: timedelta = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.step()

    def __call__(self) -> datetime:
        return self.clock() + self.offset

    def step(self) -> None:
        self.offset = timedelta(seconds=self.random.uniform(-600, 600))


@define(eq=False)
class Replicas:
    """Two running schedulers at any time, each with a clock of its own."""

    cluster: VirtualCluster
    random: Random
    clocks: dict[str, SteppedClock] = field(factory=dict)

    async def start(self) -> None:
        process = await self.cluster.start_scheduler(wait=False)
        clock = self.clocks[process.identity] = SteppedClock(process._clock, self.random)
        process._clock = clock
        await process.wait_started()

    def holder(self) -> str:
        stored = self.cluster.api.store.get(LEASES, "kube-system/kube-scheduler")
        return stored.fields["spec"].get("holderIdentity", "") if stored is not None else ""

    @property
    def leader(self) -> SchedulerProcess | None:
        return next((one for one in self.cluster.schedulers if one.running and one.identity == self.holder()), None)

    async def wait_for_leader(self, *, other_than: str = "") -> SchedulerProcess:
        while True:
            leader = self.leader
            if leader is not None and leader.identity != other_than:
                return leader
            await trio.sleep(0.1)

    async def end(self, leader: SchedulerProcess, way: str) -> None:
        """End the leadership of *leader*."""
        if way == "kill":
            await leader.kill()
        elif way == "stop":
            await leader.stop()
        elif way == "pause":  # the API server is away for longer than the leader may go on
            self.cluster.api.stop()
            await trio.sleep(12)
            self.cluster.api.resume()
        else:  # only its lease cannot be renewed
            leader._to_api.is_severed = True
            await trio.sleep(12)
        if way in ("pause", "cut"):
            assert isinstance(await leader.failed(), LeaderElectionLost)


async def create_pods(cluster: VirtualCluster, stop: trio.Event) -> int:
    count = 0
    while not stop.is_set():
        if cluster.api.running:
            await cluster.create(pod(f"p{count}", cpu="10m"))
            count += 1
        await trio.sleep(0.5)
    return count


async def test_no_pod_is_lost_or_bound_twice(autojump_clock: MockClock) -> None:
    random = Random(SEED)
    nodes = [node(f"n{i}", cpu=50, pods=5000) for i in range(10)]
    async with virtual_cluster(nodes=nodes, leader_elect=True, scheduler=False, seed=SEED) as cluster:
        history, replicas, over = Ledger(cluster), Replicas(cluster, random), trio.Event()
        gaps: list[tuple[str, float]] = []
        created: list[int] = []

        async def create() -> None:
            created.append(await create_pods(cluster, over))

        async with trio.open_nursery() as nursery:
            await replicas.start()
            await replicas.start()
            nursery.start_soon(create)
            for change in range(CHANGES):
                leader = await replicas.wait_for_leader()
                await trio.sleep(random.uniform(0.1, 8))
                replicas.clocks[leader.identity].step()
                way = ["kill", "stop", "pause", "cut"][change % 4]
                began = trio.current_time()
                await replicas.end(leader, way)
                if way == "pause":  # the follower has lost nothing but time; it may have had to start again
                    began = trio.current_time()
                await replicas.wait_for_leader(other_than=leader.identity)
                gaps.append((way, trio.current_time() - began))
                await replicas.start()
            over.set()
        await cluster.settle()
        history.check()
        assert len(history.binds) == created[0] > 250
        assert all(len(binds) == 1 for binds in history.binds.values())
        longest = {way: max(gap for one, gap in gaps if one == way) for way in ("kill", "stop", "pause", "cut")}
        assert longest["stop"] < 1
        # Which one of both is found by comparing durations on the follower's own clock, however far both are apart.
        assert all(gap < LEASE_SECONDS + RETRY_SECONDS for gap in longest.values())
