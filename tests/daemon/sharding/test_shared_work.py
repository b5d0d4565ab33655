"""Several schedulers at a time: each decides on its pods, and binds to its nodes."""

from collections import Counter
from typing import Any

import pytest
import trio
from attrs import evolve
from plugin_base import PluginBase
from sharded_replicas import HEAD, SETTLED_SECONDS, ready_of, replicas_of, sharding_of
from trio.testing import MockClock

from trio_sched.config.schema import Sharding
from trio_sched.daemon.sharding.proposals import AVOID_SECONDS
from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.objects.node import Node
from trio_sched.plugin_api import Pod, Status, hookimpl
from trio_sched.testing import node, node_affinity, pod, pod_anti_affinity, pod_term, term
from trio_sched.testing.cluster import virtual_cluster

SHARDS = 4
NODES = [node(f"n{number}", cpu=4, labels={"zone": f"z{number % 4}"}) for number in range(16)]
LEASE_SECONDS = 15.0
RETRY_SECONDS = 2.4


def on_shard(shard: int, shards: int = SHARDS) -> Node:
    return next(one for one in NODES if shard_of(one.name, shards) == shard)


async def test_replicas_take_even_shares_and_every_pod_is_bound_once(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=SHARDS, replicas=3) as replicas:
        assert sorted(map(len, replicas.ready())) == [1, 1, 2]
        assert sorted(shard for one in replicas.ready() for shard in one) == [0, 1, 2, 3]
        for number in range(40):
            await replicas.cluster.create(pod(f"p{number}", cpu=1))
        await replicas.cluster.settle()
        assert len(replicas.ledger.binds) == 40
        assert len(replicas.cluster.events("Scheduled")) == 40
        scheduled = Counter(process.identity for process in replicas.running for _ in range(cycles(process)))
        assert set(scheduled) == {process.identity for process in replicas.running}


def cycles(process: object) -> int:
    return process.assembly.scheduler.queue.scheduling_cycle  # type: ignore[attr-defined,no-any-return]


async def test_a_pod_stays_on_the_nodes_of_whoever_decides_on_it_as_long_as_one_fits(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=SHARDS, replicas=2) as replicas:
        for number in range(20):
            await replicas.cluster.create(pod(f"p{number}", cpu="100m"))
        await replicas.cluster.settle()
        assert replicas.bound_elsewhere() == 0
        assert len(replicas.ledger.binds) == 20


@pytest.mark.parametrize("shard", [0, 1])
async def test_a_pod_that_fits_only_on_a_node_of_another_is_bound_there_by_that_one(
    shard: int, autojump_clock: MockClock
) -> None:
    async with replicas_of(NODES, shards=2, replicas=2) as replicas:
        cluster, there = replicas.cluster, on_shard(1 - shard, 2).name
        pods = [pod(f"p{n}", cpu=1, node_selector={"kubernetes.io/hostname": there}) for n in range(4)]
        for one in pods:
            await cluster.create(one)
        await cluster.settle()
        assert all(cluster.pod(one.name).node_name == there for one in pods)
        assert all(cluster.pod(one.name).nominated_node_name == "" for one in pods)
        deciders = [shard_of(cluster.pod(one.name).uid, 2) for one in pods]
        assert replicas.bound_elsewhere() == deciders.count(shard)
        assert len(cluster.events("Scheduled")) == 4
        for process in replicas.running:
            sharding = sharding_of(process)
            left = (list(sharding.owned.under_way), sharding.proposals.bound)
            assert left == ([], set())


async def test_the_owner_of_a_node_takes_back_a_nomination_that_does_not_fit_and_says_why(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=2, replicas=2) as replicas:
        cluster = replicas.cluster
        # No node fits, so whoever decides on it proposes it nowhere.
        one = await cluster.create(pod("p", cpu=100))
        shard = shard_of(cluster.pod("p").uid, 2)
        await trio.sleep(1)
        there = on_shard(1 - shard, 2).name
        await cluster.patch(one, {"status": {"nominatedNodeName": there}}, subresource="status")
        await trio.sleep(1)
        found = cluster.pod("p")
        assert found.nominated_node_name == ""
        answers = dict(sharding_of(replicas.owner(1 - shard)).proposals.answers)
        assert answers == {"refused": 1}
        (condition,) = [each for each in found.status.conditions or () if each.type == "PodScheduled"]
        assert "Insufficient cpu" in condition.message


async def test_a_node_whose_owner_has_refused_a_pod_is_tried_again_after_a_while(autojump_clock: MockClock) -> None:
    async with replicas_of(NODES, shards=2, replicas=2) as replicas:
        cluster = replicas.cluster
        await cluster.create(pod("p", cpu=1, gates=["wait"], node_selector={"kubernetes.io/hostname": "n0"}))
        gated = cluster.pod("p")
        owner = shard_of("n0", 2)
        decider = sharding_of(replicas.owner(shard_of(gated.uid, 2)))
        decider.proposals._avoid(gated, "n0")
        await cluster.patch(gated, {"spec": {"schedulingGates": None}})
        await trio.sleep(5)
        found = cluster.pod("p").node_name
        assert bool(found) == (owner in decider.owned.ready)  # its own nodes refuse nothing
        await trio.sleep(AVOID_SECONDS)
        cluster.assert_scheduled("p", on="n0")


async def test_who_stops_gives_its_shards_to_the_others_at_once(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=SHARDS, replicas=2) as replicas:
        await replicas.running[0].stop()
        await trio.sleep(2 * RETRY_SECONDS)
        assert replicas.ready() == [[0, 1, 2, 3]]
        await replicas.cluster.create(pod("p", cpu=1))
        await trio.sleep(0.5)
        replicas.cluster.assert_scheduled("p")
        fenced = sharding_of(replicas.running[0]).takeover.fenced
        assert fenced == 0


async def test_the_shards_of_a_dead_replica_are_taken_when_its_leases_expire_and_its_pods_are_fenced(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=SHARDS, replicas=2) as replicas:
        cluster = replicas.cluster
        await cluster.create(pod("p", cpu=100))
        await trio.sleep(1)
        before = cluster.pod("p").metadata.resource_version
        await replicas.owner(LANE).kill()
        await trio.sleep(LEASE_SECONDS - RETRY_SECONDS - 1)
        assert len(replicas.ready()[0]) == 2
        await trio.sleep(3 * RETRY_SECONDS)
        assert replicas.ready() == [[0, 1, 2, 3]]
        found = cluster.pod("p")
        assert found.metadata.resource_version != before
        assert [each.reason for each in found.status.conditions or () if each.type == "trio-sched.dev/Fenced"] == [
            "DecisionsAreVoid"
        ]
        for number in range(16):
            await cluster.create(pod(f"p{number}", cpu=1))
        await cluster.settle()
        assert len(replicas.ledger.binds) == 16


async def test_another_replica_gets_its_share(autojump_clock: MockClock) -> None:
    async with replicas_of(NODES, shards=SHARDS, replicas=1) as replicas:
        assert replicas.ready() == [[0, 1, 2, 3]]
        await replicas.start(1)
        assert replicas.ready() == [[0, 1], [2, 3]]
        await replicas.start(3)
        await trio.sleep(3 * SETTLED_SECONDS)
        assert sorted(map(len, replicas.ready())) == [0, 1, 1, 1, 1]


async def test_replicas_wait_while_a_scheduler_that_shares_nothing_leads(autojump_clock: MockClock) -> None:
    config = HEAD + "sharding: {shards: 2}\n"
    async with virtual_cluster(nodes=2, leader_elect=True, config=config, scheduler=False) as cluster:
        sharing = cluster._settings
        alone = evolve(sharing, config=evolve(sharing.config, sharding=None))
        cluster._settings = alone
        await cluster.start_scheduler("alone")
        await trio.sleep(5)
        cluster._settings = sharing
        replica = await cluster.start_scheduler("sharing", wait=False)
        await trio.sleep(60)
        found = ready_of(replica)
        assert found == []
        await cluster.schedulers[0].stop()
        await trio.sleep(2 * RETRY_SECONDS)
        found = ready_of(replica)
        assert found == [0, 1]
        cluster._settings = alone
        again = await cluster.start_scheduler("alone again", wait=False)
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(60)
        tried = cycles(again)
        assert tried == 0
        cluster.assert_scheduled("p")


async def test_replicas_with_another_number_of_shards_wait_and_fence_all_pods(autojump_clock: MockClock) -> None:
    async with replicas_of(NODES, shards=2, replicas=1) as replicas:
        cluster = replicas.cluster
        for number in range(5):
            await cluster.create(pod(f"p{number}", cpu=100))
        await trio.sleep(1)
        settings = cluster._settings
        cluster._settings = evolve(settings, config=evolve(settings.config, sharding=Sharding(shards=3)))
        other = await cluster.start_scheduler("other", wait=False)
        await trio.sleep(2 * LEASE_SECONDS)
        found = ready_of(other)
        assert found == []
        await cluster.schedulers[0].kill()
        await trio.sleep(2 * LEASE_SECONDS)
        ready, fenced = ready_of(other), sharding_of(other).takeover.fenced
        assert (ready, fenced) == ([0, 1, 2], 5)


async def test_a_pod_that_repels_others_is_bound_soon_and_beside_none_of_them(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=SHARDS, replicas=3) as replicas:
        cluster = replicas.cluster
        repels = pod_anti_affinity(pod_term("app=b", "zone"))
        for number in range(3):
            await cluster.create(pod(f"b{number}", cpu=1, labels={"app": "b"}))
            await cluster.create(pod(f"a{number}", cpu=1, labels={"app": "a"}, affinity=repels))
        await trio.sleep(2)
        zones = {name: "z" + str(int(at.removeprefix("n")) % 4) for name, at in cluster.placements().items() if at}
        assert len(zones) == 6
        of_a = {zone for name, zone in zones.items() if "/a" in name}
        of_b = {zone for name, zone in zones.items() if "/b" in name}
        assert not of_a & of_b


class Judge(PluginBase):
    """May look at anything before it judges a node."""

    @hookimpl
    def filter_node(self, pod: Pod, node: Any, state: Any) -> Status | None:
        return None


async def test_pods_of_profiles_whose_plugins_may_look_at_other_nodes_go_to_nodes_of_the_lane_only(
    autojump_clock: MockClock,
) -> None:
    async with replicas_of(NODES, shards=2, replicas=2, plugins=[Judge]) as replicas:
        cluster = replicas.cluster
        for number in range(10):
            await cluster.create(pod(f"p{number}", cpu=1))
        await cluster.create(pod("other", cpu=1, node_selector={"kubernetes.io/hostname": on_shard(1, 2).name}))
        await cluster.settle()
        cluster.assert_pending("other", reason="belonged to shards of other replicas")
        placed = [at for at in cluster.placements().values() if at]
        assert len(placed) == 10
        assert {shard_of(at, 2) for at in placed} == {LANE}


async def test_pods_are_evicted_from_own_nodes_only(autojump_clock: MockClock) -> None:
    async with replicas_of(NODES[:6], shards=2, replicas=2, kubelets=True) as replicas:
        cluster = replicas.cluster
        for number in range(6):
            await cluster.create(pod(f"low{number}", cpu=4))
        await cluster.settle()
        await cluster.create(pod("high", cpu=4, priority=10))
        await cluster.settle()
        found = cluster.pod("high")
        assert found.node_name
        assert shard_of(found.node_name, 2) == shard_of(found.uid, 2)
        assert len(cluster.events("Preempted")) == 1
        assert len(replicas.ledger.binds) == 7


async def test_the_pods_of_a_daemon_set_are_decided_on_by_the_owners_of_their_nodes(autojump_clock: MockClock) -> None:
    async with replicas_of(NODES, shards=SHARDS, replicas=3) as replicas:
        for one in NODES:
            pinned = node_affinity(term(fields=[f"metadata.name In {one.name}"]))
            await replicas.cluster.create(pod(f"on-{one.name}", cpu="100m", affinity=pinned))
        await replicas.cluster.settle()
        assert all(replicas.cluster.pod(f"on-{one.name}").node_name == one.name for one in NODES)
        assert replicas.bound_elsewhere() == 0
