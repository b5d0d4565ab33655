"""Requests that arrive long after they were sent, from processes that have lost their shards since."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import trio
from attrs import define, field
from ledger import Ledger
from lossy_network import LossyNetwork, start_behind_lossy_network
from sharded_replicas import HEAD, SETTLED_SECONDS, held_of, ready_of, sharding_of
from trio.testing import MockClock

from trio_sched.daemon.sharding.proposals import ANSWER_SECONDS
from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.engine.sharding.reserved_places import MAY_PREEMPT, PLACE_RESERVED
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing import node, pod, pod_anti_affinity, pod_term
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.scheduler_process import SchedulerProcess

LEASE_SECONDS = 15.0
WITHOUT_PREEMPTION = (
    "profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}}]\n"
)
ONE_ROOM = [node("only", cpu=1)]
OTHER = next(name for name in (f"n{number}" for number in range(99)) if shard_of(name, 2) != LANE)


@define(eq=False)
class Late:
    """Replicas behind networks that hold back what a test says."""

    cluster: VirtualCluster
    network: trio.Nursery
    links: dict[str, LossyNetwork] = field(factory=dict)

    async def start(self, count: int) -> None:
        for _ in range(count):
            identity = f"replica-{len(self.links)}"
            _process, link = await start_behind_lossy_network(self.cluster, self.network, identity, Random(0), 0.0)
            self.links[identity] = link
        await trio.sleep(SETTLED_SECONDS)

    def owner(self, shard: int) -> SchedulerProcess:
        running = (process for process in self.cluster.schedulers if process.running)
        return next(process for process in running if shard in sharding_of(process).owned.ready)

    def link(self, process: SchedulerProcess) -> LossyNetwork:
        return self.links[process.identity]


@asynccontextmanager
async def late(
    nodes: list[Node], *, shards: int, replicas: int, profiles: str = WITHOUT_PREEMPTION
) -> AsyncGenerator[Late, None]:
    config = HEAD + profiles + f"sharding: {{shards: {shards}}}\n"
    async with (
        trio.open_nursery() as network,
        virtual_cluster(nodes=nodes, config=config, leader_elect=True, scheduler=False, kubelets=False) as cluster,
    ):
        ledger = Ledger(cluster)
        found = Late(cluster, network)
        await found.start(replicas)
        yield found
        ledger.check()
        network.cancel_scope.cancel()


def take_away(cluster: VirtualCluster, key: str) -> None:
    """Another process has the lease from now on."""
    store = cluster.api.store
    stored = store.get("leases.coordination.k8s.io", key)
    assert stored is not None
    spec = {**stored.fields["spec"], "holderIdentity": "another", "leaseDurationSeconds": 3600}
    fields = {**stored.fields, "metadata": dict(stored.fields["metadata"]), "spec": spec}
    store.replace("leases.coordination.k8s.io", stored, fields)


async def test_a_bind_of_a_dead_process_fails_once_another_has_its_shard(autojump_clock: MockClock) -> None:
    async with late(ONE_ROOM, shards=1, replicas=2) as replicas:
        cluster, dead = replicas.cluster, replicas.owner(LANE)
        blocker = await cluster.create(pod("blocker", cpu=1))
        await trio.sleep(1)
        await cluster.create(pod("first", cpu=1))
        await trio.sleep(1)  # its condition says so, and will say the same later: only the fence makes another version
        link = replicas.link(dead)
        link.held = b"/binding"
        await cluster.delete(blocker, grace_seconds=0)
        await trio.sleep(3)
        await dead.kill()
        await cluster.create(pod("second", cpu=1, priority=1))  # the next to be decided on
        await trio.sleep(2 * LEASE_SECONDS)
        cluster.assert_scheduled("second", on="only")
        link.let_go.set()
        await trio.sleep(1)
        cluster.assert_pending("first")


async def gated_pods_of_both_shards(cluster: VirtualCluster) -> tuple[Pod, Pod]:
    """A pod of shard 0 and one of shard 1, of two shards; the UIDs of pods, and so their shards, are random."""
    by_shard: dict[int, Pod] = {}
    for number in range(20):
        await cluster.create(pod(f"p{number}", cpu=1, gates=["wait"]))
        one = cluster.pod(f"p{number}")
        by_shard.setdefault(shard_of(one.uid, 2), one)
    return by_shard[0], by_shard[1]


async def test_whoever_takes_one_of_several_shards_of_a_dead_process_fences_pods_of_the_others_too(
    autojump_clock: MockClock,
) -> None:
    there = next(f"n{number}" for number in range(99) if shard_of(f"n{number}", 2) == 1)
    async with late([node(there, cpu=1)], shards=2, replicas=1) as replicas:
        cluster, dead = replicas.cluster, replicas.owner(LANE)
        first, second = await gated_pods_of_both_shards(cluster)
        late_link = replicas.link(dead)
        late_link.held = b"/binding"
        await cluster.patch(first, {"spec": {"schedulingGates": None}})  # of shard 0, for a node of shard 1
        await trio.sleep(1)
        await replicas.start(2)
        heirs = [process for process in cluster.schedulers if process is not dead]
        for heir in heirs:
            replicas.link(heir).held = b"/status"  # so that nothing is fenced
        await dead.kill()
        await trio.sleep(1.5 * LEASE_SECONDS)
        (heir,) = (process for process in heirs if held_of(process) == [1])
        replicas.link(heir).held = b""
        replicas.link(heir).let_go.set()
        await trio.sleep(LEASE_SECONDS)
        ready = [ready_of(process) for process in heirs]
        assert sorted(ready) == [[], [1]]
        await cluster.patch(second, {"spec": {"schedulingGates": None}})
        await trio.sleep(1)
        cluster.assert_scheduled(second, on=there)
        late_link.let_go.set()
        await trio.sleep(1)
        cluster.assert_pending(first)


async def test_the_room_of_a_late_bind_is_kept_where_only_the_shard_of_the_decision_was_lost(
    autojump_clock: MockClock,
) -> None:
    there = next(f"n{number}" for number in range(99) if shard_of(f"n{number}", 2) == 1)
    async with late([node(there, cpu=1)], shards=2, replicas=1) as replicas:
        cluster, process = replicas.cluster, replicas.owner(LANE)
        first, second = await gated_pods_of_both_shards(cluster)
        link = replicas.link(process)
        link.held = b"/binding"
        await cluster.patch(first, {"spec": {"schedulingGates": None}})
        await trio.sleep(1)
        await cluster.patch(second, {"spec": {"schedulingGates": None}})
        link.held = b""
        take_away(cluster, "kube-system/kube-scheduler-shard-0-of-2")
        await trio.sleep(2 * LEASE_SECONDS)
        held = held_of(process)
        assert held == [1]
        cluster.assert_scheduled(second, on=there)
        link.let_go.set()
        await trio.sleep(1)
        cluster.assert_pending(first)


async def test_a_shard_is_given_back_once_the_binds_for_it_have_an_end(autojump_clock: MockClock) -> None:
    there = next(f"n{number}" for number in range(99) if shard_of(f"n{number}", 2) == 1)
    async with late([node(there, cpu=1)], shards=2, replicas=1) as replicas:
        cluster, former = replicas.cluster, replicas.owner(1)
        link = replicas.link(former)
        link.held = b"/binding"
        await cluster.create(pod("first", cpu=1))
        await trio.sleep(1)
        await replicas.start(1)
        await cluster.create(pod("second", cpu=1, priority=1))
        await trio.sleep(5)
        held = held_of(former)
        assert 1 in held  # although it has no right to more than one
        link.held = b""
        link.let_go.set()
        await trio.sleep(SETTLED_SECONDS)
        held = held_of(former)
        assert 1 not in held
        cluster.assert_scheduled("first")
        cluster.assert_pending("second")


async def test_whoever_gets_a_shard_waits_until_its_watch_has_shown_what_was_bound(
    autojump_clock: MockClock,
) -> None:
    async with late(ONE_ROOM, shards=1, replicas=2) as replicas:
        cluster, former = replicas.cluster, replicas.owner(LANE)
        (heir,) = (process for process in cluster.schedulers if process is not former)
        link = replicas.link(former)
        link.held = b"/binding"
        await cluster.create(pod("first", cpu=1))
        await trio.sleep(1)
        await cluster.create(pod("second", cpu=1, priority=1))
        await trio.sleep(1)
        replicas.link(heir).is_behind = True
        link.held = b""
        link.let_go.set()
        await trio.sleep(2)
        cluster.assert_scheduled("first")
        await former.stop()
        await trio.sleep(LEASE_SECONDS)
        held, ready = held_of(heir), ready_of(heir)
        assert (held, ready) == ([LANE], [])
        replicas.link(heir).is_behind = False
        replicas.link(heir).caught_up.set()
        await trio.sleep(2)
        found = ready_of(heir)
        assert found == [LANE]
        cluster.assert_pending("second")


async def test_a_bind_that_is_resent_takes_effect_once(autojump_clock: MockClock) -> None:
    async with late([node("one", cpu=1), node("two", cpu=1)], shards=2, replicas=1) as replicas:
        cluster = replicas.cluster
        link = replicas.link(replicas.owner(LANE))
        link.held = b"/binding"
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(12)  # the first request has timed out, and another one is on its way
        link.held = b""
        await trio.sleep(20)
        node_name = cluster.assert_scheduled("p")
        link.let_go.set()
        await trio.sleep(1)
        cluster.assert_scheduled("p", on=node_name)
        assert len(cluster.events("Scheduled")) == 1


async def test_a_bind_that_the_server_cannot_handle_is_given_up_once_no_copy_of_it_can_arrive(
    autojump_clock: MockClock,
) -> None:
    async with late(ONE_ROOM, shards=1, replicas=1) as replicas:
        cluster, process = replicas.cluster, replicas.owner(LANE)
        link = replicas.link(process)
        link.held = b"/binding"
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(5)
        link.held = b""  # the first request stays where it is
        cluster.api.faults.fail_next(1, verb="bind", resource="pods", code=403, reason="Forbidden")
        await trio.sleep(6)
        fenced = sharding_of(process).takeover.fenced
        assert fenced
        cluster.assert_pending("p")
        link.let_go.set()
        await trio.sleep(0.1)
        cluster.assert_pending("p")  # it has come, and was refused
        await trio.sleep(5)
        cluster.assert_scheduled("p")  # in another attempt


async def test_a_shard_gets_ready_although_another_that_was_taken_with_it_is_lost_meanwhile(
    autojump_clock: MockClock,
) -> None:
    async with late(ONE_ROOM, shards=2, replicas=0) as replicas:
        cluster = replicas.cluster
        await cluster.create(pod("p", cpu=1))
        process, link = await start_behind_lossy_network(cluster, replicas.network, "slow", Random(0), 0.0)
        await process.wait_started()
        link.is_behind = True
        await cluster.create(pod("q", cpu=1))
        await trio.sleep(SETTLED_SECONDS)
        held, ready = held_of(process), ready_of(process)
        assert (held, ready) == ([0, 1], [])
        take_away(cluster, "kube-system/kube-scheduler-shard-0-of-2")
        await trio.sleep(SETTLED_SECONDS)
        link.is_behind = False
        link.caught_up.set()
        await trio.sleep(SETTLED_SECONDS)
        ready = ready_of(process)
        assert ready == [1]


async def test_nothing_is_bound_later_than_the_renew_deadline(autojump_clock: MockClock) -> None:
    async with late(ONE_ROOM, shards=1, replicas=2) as replicas:
        cluster, former = replicas.cluster, replicas.owner(LANE)
        replicas.link(former).lost = b"/leases"
        await trio.sleep(7)
        cluster.api.faults.fail_next(5, verb="bind", resource="pods", code=503, reason="ServiceUnavailable")
        await cluster.create(pod("p", cpu=1))  # its bind is sent again and again
        await trio.sleep(7)  # no lease was renewed for longer than the deadline, and none has expired
        cluster.assert_pending("p")
        found = held_of(former)
        assert found == [LANE]  # it cannot know better
        await trio.sleep(LEASE_SECONDS)
        cluster.assert_scheduled("p")
        assert len(cluster.events("Scheduled")) == 1


async def test_a_pod_that_repels_others_waits_for_binds_that_are_under_way_elsewhere(
    autojump_clock: MockClock,
) -> None:
    nodes = [node(f"n{number}", cpu=4, labels={"zone": f"z{number % 2}"}) for number in range(8)]
    async with late(nodes, shards=2, replicas=2) as replicas:
        cluster, other = replicas.cluster, replicas.owner(1)
        link, owned = replicas.link(other), sharding_of(other).owned
        link.held = b"/binding"
        number = 0
        while not owned.under_way:
            number += 1
            await cluster.create(pod(f"b{number}", cpu=1, labels={"app": "b"}))
            await trio.sleep(0.5)
        repels = pod_anti_affinity(pod_term("app=b", "zone"))
        await cluster.create(pod("a", cpu=1, affinity=repels))
        await trio.sleep(3)
        cluster.assert_pending("a")
        link.held = b""
        link.let_go.set()
        await trio.sleep(5)
        zones = {cluster.pod(f"b{n}").node_name for n in range(1, number + 1)}
        assert "" not in zones
        of_b = {f"z{int(name.removeprefix('n')) % 2}" for name in zones}
        at = cluster.pod("a").node_name
        assert (f"z{int(at.removeprefix('n')) % 2}" if at else "") not in of_b


async def test_a_replica_that_must_not_write_any_more_decides_on_nothing_until_it_has_its_shards_again(
    autojump_clock: MockClock,
) -> None:
    async with late(ONE_ROOM, shards=1, replicas=1, profiles="") as replicas:
        cluster, process = replicas.cluster, replicas.owner(LANE)
        await cluster.create(pod("low", cpu=1))
        await trio.sleep(1)
        link = replicas.link(process)
        link.lost = b"/pods/low"  # evictions
        await cluster.create(pod("high", cpu=1, priority=10))
        await trio.sleep(1)
        link.cut()  # its evictions fail from the renew deadline on, at once: nothing is sent
        await trio.sleep(LEASE_SECONDS)
        ready, held = ready_of(process), held_of(process)
        assert (ready, held) == ([], [LANE])
        assert process.assembly is not None
        queue = process.assembly.scheduler.queue
        before = queue.scheduling_cycle
        await trio.sleep(60)
        tried = queue.scheduling_cycle - before
        assert tried == 0
        link.lost = b""
        link.mend()
        await trio.sleep(SETTLED_SECONDS)
        ready = ready_of(process)
        assert ready == [LANE]
        assert cluster.pod("low").metadata.deletion_timestamp is not None


async def test_of_two_pods_that_are_nominated_to_the_same_place_at_the_same_time_one_gets_it(
    autojump_clock: MockClock,
) -> None:
    there = next(f"n{number}" for number in range(99) if shard_of(f"n{number}", 3) == 2)
    async with late([node(there, cpu=1)], shards=3, replicas=3) as replicas:
        cluster, owner = replicas.cluster, replicas.owner(2)
        by_shard: dict[int, Pod] = {}
        while not {0, 1} <= by_shard.keys():
            one = await cluster.create(pod(f"p{len(cluster.pods())}", cpu=1, gates=["wait"]))
            by_shard.setdefault(shard_of(cluster.pod(one.name).uid, 3), one)
        await trio.sleep(1)
        link = replicas.link(owner)
        link.is_behind = True
        for shard in (0, 1):
            await cluster.patch(by_shard[shard], {"spec": {"schedulingGates": None}})
        await trio.sleep(2)
        nominated = [cluster.pod(by_shard[shard].name).nominated_node_name for shard in (0, 1)]
        assert nominated == [there, there]
        link.is_behind = False
        link.caught_up.set()
        await trio.sleep(1)
        bound = [cluster.pod(by_shard[shard].name).node_name for shard in (0, 1)]
        assert sorted(bound) == ["", there]


async def test_a_bind_is_not_sent_again_for_a_pod_that_was_nominated_to_the_node_once_more_for_another_place(
    autojump_clock: MockClock,
) -> None:
    async with late([node(OTHER, cpu=1)], shards=2, replicas=2) as replicas:
        cluster, lane, owner = replicas.cluster, replicas.owner(LANE), replicas.owner(1)
        link = replicas.link(owner)
        link.held = b"/binding"
        await cluster.create(pod("a", cpu=1, affinity=pod_anti_affinity(pod_term("app=b"))))  # the lane decides on it
        await trio.sleep(ANSWER_SECONDS + 3)
        await lane.kill()
        taken_back = cluster.pod("a").nominated_node_name
        note = {"type": PLACE_RESERVED, "status": "False", "reason": MAY_PREEMPT, "message": "others may be evicted"}
        status = {"nominatedNodeName": OTHER, "conditions": [note]}
        await cluster.patch(cluster.pod("a"), {"status": status}, subresource="status")
        link.held = b""  # the first bind stays where it is
        await trio.sleep(5)
        resent = cluster.pod("a").node_name
        assert (taken_back, resent) == ("", "")
