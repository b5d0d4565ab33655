"""Several schedulers, of which only the leader schedules."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
from cluster_pods import create_pods
from ledger import Ledger
from trio.testing import MockClock

from trio_sched.daemon.leader_election import LeaderElectionLost
from trio_sched.plugin_api import SKIP, Handle, Pod, PreFlight, Status, Wait, hookimpl
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.scheduler_process import SchedulerProcess

LEASES = "leases.coordination.k8s.io"
LEASE_SECONDS = 15.0
LONGEST_RETRY_SECONDS = 2 * (1 + 1.2)


def holder(cluster: VirtualCluster) -> str:
    stored = cluster.api.store.get(LEASES, "kube-system/kube-scheduler")
    return stored.fields["spec"]["holderIdentity"] if stored is not None else ""


keep_creating = partial(create_pods, cpu="100m", every_seconds=0.25)


async def test_only_the_leader_schedules(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=5, leader_elect=True) as cluster:
        history = Ledger(cluster)
        await trio.sleep(1)
        await cluster.start_scheduler()
        await keep_creating(cluster, 40)
        await cluster.settle()
        assert holder(cluster) == "scheduler-1"
        assert len(history.binds) == 40
        history.check()
        assert len(cluster.events("Scheduled")) == 40
        first, second = (process.assembly.scheduler for process in cluster.schedulers if process.assembly)
        assert (first.queue.scheduling_cycle, second.queue.scheduling_cycle) == (40, 0)
        # The other one is up to date all the same.
        assert len(second.cache) == 40
        assert len(second.queue.active) == 0


async def test_of_two_schedulers_started_together_one_leads(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, leader_elect=True, scheduler=False) as cluster:
        history = Ledger(cluster)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(cluster.start_scheduler)
        await keep_creating(cluster, 10)
        await cluster.settle()
        assert holder(cluster) in {"scheduler-1", "scheduler-2", "scheduler-3"}
        assert len(history.binds) == 10
        history.check()


async def gap_seconds(cluster: VirtualCluster, end: Callable[[SchedulerProcess], Awaitable[None]]) -> float:
    """End the leader while pods are created, and give the time until the follower's first bind."""
    history = Ledger(cluster)
    await trio.sleep(1)
    leader = cluster.scheduler
    await cluster.start_scheduler()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_creating, cluster, 200)
        await trio.sleep(10)
        ended = trio.current_time()
        await end(leader)
    await cluster.settle()
    assert holder(cluster) == "scheduler-2"
    assert len(history.binds) == 200
    history.check()
    return min(moment for moment in history.bound_at if moment > ended) - ended


async def test_after_a_kill_the_follower_leads_within_the_lease_duration(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=50, leader_elect=True) as cluster:

        async def kill(leader: SchedulerProcess) -> None:
            await leader.kill()
            assert holder(cluster) == "scheduler-1"

        gap = await gap_seconds(cluster, kill)
        assert LEASE_SECONDS - 2 <= gap <= LEASE_SECONDS + LONGEST_RETRY_SECONDS


async def test_after_a_stop_the_follower_leads_at_its_next_retry(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=50, leader_elect=True) as cluster:
        assert await gap_seconds(cluster, SchedulerProcess.stop) <= LONGEST_RETRY_SECONDS + 1


async def test_a_leader_killed_during_binds_loses_no_pod(autojump_clock: MockClock) -> None:
    """The cluster is tight: using the same resources twice would overcommit a node."""
    nodes = [node(f"n{number}", cpu=10) for number in range(20)]
    async with virtual_cluster(nodes=nodes, leader_elect=True, bind_latency_seconds=3) as cluster:
        history = Ledger(cluster)
        await trio.sleep(1)
        leader = cluster.scheduler
        await cluster.start_scheduler()
        await create_pods(cluster, 200, cpu=1)
        await trio.sleep(7)
        assert 0 < len(history.binds) < 200
        await leader.kill()
        await cluster.settle()
        assert len(history.binds) == 200
        history.check()


async def test_one_leader_after_the_other_in_a_tight_cluster(autojump_clock: MockClock) -> None:
    nodes = [node(f"n{number}", cpu=10) for number in range(20)]
    async with virtual_cluster(nodes=nodes, leader_elect=True, bind_latency_seconds=2) as cluster:
        history = Ledger(cluster)
        await create_pods(cluster, 220, cpu=1)
        for round_ in range(6):
            await trio.sleep(2.5)
            following = await cluster.start_scheduler()
            leader = cluster.schedulers[-2]
            await (leader.stop() if round_ % 2 else leader.kill())
            await trio.sleep(20)
            assert holder(cluster) == following.identity
        await cluster.settle()
        assert len(history.binds) == 200
        history.check()


async def test_a_leader_whose_lease_is_taken_ends(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, leader_elect=True, bind_latency_seconds=30) as cluster:
        history = Ledger(cluster)
        await trio.sleep(5)
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        }
        stolen = trio.current_time()
        await cluster.patch(lease, {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 600}})
        await cluster.create(pod("p"))
        failure = await cluster.scheduler.failed()
        assert isinstance(failure, LeaderElectionLost)
        assert str(failure) == "leader election lost: the lease kube-system/kube-scheduler is held by thief"
        assert trio.current_time() - stolen <= 2.1  # the next renewal shows it
        await cluster.settle()
        assert history.binds == {}
        assert holder(cluster) == "thief"


async def test_a_leader_that_cannot_renew_ends_before_another_can_lead(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=5, leader_elect=True) as cluster:
        history = Ledger(cluster)
        await trio.sleep(5)
        cluster.api.faults.set_latency(1000, resource="leases")
        failed = trio.current_time()
        assert isinstance(await cluster.scheduler.failed(), LeaderElectionLost)
        assert 10 <= trio.current_time() - failed <= 12.1
        cluster.api.faults.clear()
        await cluster.start_scheduler()
        await keep_creating(cluster, 5)
        await cluster.settle()
        assert len(history.binds) == 5
        assert min(history.bound_at) - failed >= LEASE_SECONDS - 2


async def test_the_same_identity_that_comes_back_leads_at_once(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, leader_elect=True, scheduler=False) as cluster:
        await cluster.start_scheduler("me")
        await trio.sleep(3)
        await cluster.scheduler.kill()
        await cluster.start_scheduler("me")
        await cluster.create(pod("p"))
        await trio.sleep(1)
        assert cluster.pod("p").node_name == "node-1"


async def test_an_outage_shorter_than_the_renew_deadline_keeps_the_leader(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=5, leader_elect=True) as cluster:
        history = Ledger(cluster)
        await trio.sleep(1)
        await cluster.start_scheduler()
        await trio.sleep(4)
        cluster.api.stop()
        await trio.sleep(7)
        cluster.api.resume()
        await keep_creating(cluster, 5)
        await cluster.settle()
        assert holder(cluster) == "scheduler-1"
        assert len(history.binds) == 5
        history.check()


class WaitsForEver:
    """Has the pod "permit" wait on permit, "pre-bind" in pre_bind; the others are bound at once."""

    name = "WaitsForEver"

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def permit(self, pod: Pod) -> Wait | None:
        return Wait(600) if pod.name == "permit" else None

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod) -> PreFlight | Status:
        return PreFlight() if pod.name == "pre-bind" else SKIP

    @hookimpl
    async def pre_bind(self) -> None:
        await trio.sleep_forever()


@pytest.mark.parametrize("name", ["permit", "pre-bind"])
async def test_a_stop_gives_up_at_once_what_only_waits(name: str, autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, leader_elect=True, plugins=[WaitsForEver]) as cluster:
        leader = cluster.scheduler
        await cluster.create(pod(name))
        await trio.sleep(1)
        await cluster.start_scheduler()
        stopped = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leader.stop)
            await trio.sleep(0.1)
            assert holder(cluster) == "scheduler-2"
            await cluster.create(pod("next"))
            await trio.sleep(0.5)
            assert cluster.pod("next").node_name
        assert trio.current_time() - stopped < 1
        assert not cluster.pod(name).node_name


async def test_binds_that_are_under_way_end_before_the_lease_is_released(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, leader_elect=True, bind_latency_seconds=4) as cluster:
        leader = cluster.scheduler
        await cluster.create(pod("p"))
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leader.stop)
            await trio.sleep(2)
            assert holder(cluster) == "scheduler-1"
        assert cluster.pod("p").node_name
        assert holder(cluster) == ""
