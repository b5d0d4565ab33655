"""Replicas whose nodes belong to the shard that a label names; it changes while they work."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any

import trio
from attrs import evolve
from lossy_network import LossyNetwork, start_behind_lossy_network
from sharded_replicas import SETTLED_SECONDS, Replicas, held_of, ready_of, replicas_of, sharding_of
from trio.testing import MockClock

from trio_sched.config.schema import Sharding
from trio_sched.daemon.sharding.group_lease import Holder, read_holder
from trio_sched.daemon.sharding.takeover import FENCED
from trio_sched.engine.sharding.ownership import shard_of
from trio_sched.engine.sharding.reserved_places import PLACE_RESERVED, PREEMPTING
from trio_sched.objects.node import Node
from trio_sched.testing import node, pod, spread_constraint

POOL = "example.com/pool"
MOVED_SECONDS = 1.0
"""After so long a node whose label has changed is used by its new owner."""


def nodes_of(*pools: str | None) -> list[Node]:
    return [node(f"n{n}", cpu=4, labels={} if one is None else {POOL: one}) for n, one in enumerate(pools)]


def replicas_by_label(nodes: list[Node], replicas: int = 2, **details: Any) -> AbstractAsyncContextManager[Replicas]:
    return replicas_of(nodes, shards=2, replicas=replicas, node_label=POOL, **details)


async def label(replicas: Replicas, name: str, value: str | None) -> Node:
    return await replicas.cluster.patch(node(name), {"metadata": {"labels": {POOL: value}}})


async def bind_on(replicas: Replicas, name: str, node_name: str) -> None:
    await replicas.cluster.create(pod(name, cpu="100m", node_selector={"kubernetes.io/hostname": node_name}))


async def test_a_pod_that_selects_the_pool_is_decided_on_and_bound_by_its_owner(autojump_clock: MockClock) -> None:
    async with replicas_by_label(nodes_of("0", "0", "1", "1")) as replicas:
        for number in range(12):
            await replicas.cluster.create(pod(f"p{number}", cpu="500m", node_selector={POOL: str(number % 2)}))
        await replicas.cluster.settle()
        placed = replicas.cluster.placements()
        pools = [placed[f"default/p{number}"] in ("n2", "n3") for number in range(12)]
        assert pools == [False, True] * 6
        elsewhere = replicas.bound_elsewhere()
        assert elsewhere == 0


async def test_nodes_without_the_label_are_shared_by_their_names(autojump_clock: MockClock) -> None:
    async with replicas_by_label(nodes_of(*[None] * 6)) as replicas:
        for process in replicas.running:
            owned = sharding_of(process).owned
            own = [f"n{n}" for n in range(6) if owned.owns_node(f"n{n}")]
            assert own == [f"n{n}" for n in range(6) if shard_of(f"n{n}", 2) in ready_of(process)]


async def test_a_node_changes_its_owner_with_its_label_and_pods_are_bound_to_it_by_the_new_one(
    autojump_clock: MockClock,
) -> None:
    async with replicas_by_label(nodes_of("0", "0", "1")) as replicas:
        await bind_on(replicas, "before", "n1")
        await replicas.cluster.settle()
        is_owner = sharding_of(replicas.owner(0)).owned.owns_node("n1")
        assert is_owner
        await label(replicas, "n1", "1")
        await trio.sleep(MOVED_SECONDS)
        owners = [sharding_of(replicas.owner(shard)).owned.owns_node("n1") for shard in (0, 1)]
        assert owners == [False, True]
        await bind_on(replicas, "after", "n1")
        await replicas.cluster.settle()
        replicas.cluster.assert_scheduled("after", on="n1")
        ready = sorted(one for each in replicas.ready() for one in each)
        assert ready == [0, 1]  # also the one that was given back


async def test_a_pod_that_is_nominated_to_a_node_on_the_move_is_bound_by_the_new_owner(
    autojump_clock: MockClock,
) -> None:
    async with replicas_by_label(nodes_of("0", "0", "1")) as replicas:
        await bind_on(replicas, "before", "n1")
        await replicas.cluster.settle()
        await label(replicas, "n1", "1")
        for number in range(4):
            await bind_on(replicas, f"p{number}", "n1")
        await trio.sleep(30)
        for number in range(4):
            replicas.cluster.assert_scheduled(f"p{number}", on="n1")


async def test_a_new_node_is_used_once_all_replicas_have_seen_it(autojump_clock: MockClock) -> None:
    async with replicas_by_label(nodes_of("0", "1")) as replicas:
        await replicas.cluster.create(pod("p", cpu=1, node_selector={"disk": "fast"}))
        await trio.sleep(1)
        await replicas.cluster.create(node("new", cpu=4, labels={POOL: "1", "disk": "fast"}))
        await trio.sleep(2)
        replicas.cluster.assert_scheduled("p", on="new")


async def test_a_node_is_nobodys_while_a_replica_has_not_seen_where_it_belongs(autojump_clock: MockClock) -> None:
    async with replicas_by_label(nodes_of("0", "0", "1")) as replicas:
        old, new = (sharding_of(replicas.owner(shard)) for shard in (0, 1))
        await bind_on(replicas, "before", "n1")
        await replicas.cluster.settle()
        labelled = old.owned.labelled
        assert labelled is not None
        old.owned.began(replicas.cluster.pod("before"), "n1")  # an attempt without an end
        await label(replicas, "n1", "1")
        await trio.sleep(MOVED_SECONDS)
        await bind_on(replicas, "after", "n1")
        await trio.sleep(20)
        left, owners = labelled.left, [one.owned.owns_node("n1") for one in (old, new)]
        assert (left, owners) == ({0}, [False, False])
        placed = replicas.cluster.pod("after").node_name
        assert placed == ""
        old.owned.ended(replicas.cluster.pod("before").uid)
        await trio.sleep(20)
        owners = [one.owned.owns_node("n1") for one in (old, new)]
        assert owners == [False, True]
        replicas.cluster.assert_scheduled("after", on="n1")


@asynccontextmanager
async def with_links(nodes: list[Node]) -> AsyncGenerator[tuple[Replicas, LossyNetwork], None]:
    """Two replicas; what that of shard 1 sees can be held back."""
    async with trio.open_nursery() as network, replicas_by_label(nodes, replicas=0) as replicas:
        cluster = replicas.cluster
        links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        yield replicas, next(link for process, link in links if 1 in sharding_of(process).owned.ready)
        network.cancel_scope.cancel()


async def test_a_node_is_used_once_its_new_owner_has_seen_what_is_bound_to_it(autojump_clock: MockClock) -> None:
    async with with_links(nodes_of("0", "0", "1")) as (replicas, link):
        await bind_on(replicas, "before", "n1")
        await trio.sleep(1)
        owner = replicas.owner(1)
        link.is_behind, link.behind = True, b"/pods"
        await bind_on(replicas, "unseen", "n1")
        await trio.sleep(1)
        replicas.cluster.assert_scheduled("unseen", on="n1")
        await label(replicas, "n1", "1")
        await trio.sleep(20)
        owns = sharding_of(owner).owned.owns_node("n1")
        assert not owns
        link.is_behind = False
        link.caught_up.set()
        await trio.sleep(MOVED_SECONDS)
        owns = sharding_of(owner).owned.owns_node("n1")
        assert owns


async def test_a_shard_is_taken_once_it_is_seen_which_nodes_have_left_it(autojump_clock: MockClock) -> None:
    async with with_links(nodes_of("0", "0", "1")) as (replicas, link):
        first, second = replicas.owner(0), replicas.owner(1)
        link.is_behind, link.behind = True, b"/nodes"
        await label(replicas, "n1", "1")
        await trio.sleep(1)
        await first.stop()
        await trio.sleep(20)
        ready, held = ready_of(second), held_of(second)
        assert (ready, held) == ([1], [0, 1])
        link.is_behind = False
        link.caught_up.set()
        await trio.sleep(MOVED_SECONDS)
        ready, owns = ready_of(second), sharding_of(second).owned.owns_node("n1")
        assert (ready, owns) == ([0, 1], True)


async def test_changes_that_a_watch_has_missed_are_taken_for_moves(autojump_clock: MockClock) -> None:
    """Others may have seen the node in another shard in between, and decided for it."""
    async with with_links(nodes_of("0", "0", "1", "1")) as (replicas, link):
        owner = sharding_of(replicas.owner(1))
        await bind_on(replicas, "before", "n2")
        await trio.sleep(1)
        labelled = owner.owned.labelled
        assert labelled is not None
        link.is_behind, link.behind = True, b"/nodes"
        await label(replicas, "n2", "0")
        back = await label(replicas, "n2", "1")
        process = replicas.owner(1)
        assert process.assembly is not None
        process.assembly.watches.nodes.list_again()
        await trio.sleep(0.1)
        moved_at = labelled.newest
        assert moved_at >= int(back.metadata.resource_version)
        link.is_behind = False
        link.caught_up.set()
        await trio.sleep(MOVED_SECONDS)
        owns = [owner.owned.owns_node(name) for name in ("n2", "n3")]
        assert owns == [True, True]


async def test_a_place_of_a_pod_of_the_lane_is_taken_back_with_the_node(autojump_clock: MockClock) -> None:
    """Where the old owner had the lane, too, it may be binding others as if there were no such place."""
    async with replicas_by_label(nodes_of("0", "0", "1")) as replicas:
        await bind_on(replicas, "before", "n1")
        await replicas.cluster.settle()
        spread = [spread_constraint("kubernetes.io/hostname", "app=a")]
        await replicas.cluster.create(pod("p", labels={"app": "a"}, spread=spread, gates=["example.com/wait"]))
        reserved = {"type": PLACE_RESERVED, "status": "True", "reason": PREEMPTING, "message": ""}
        status = {"status": {"nominatedNodeName": "n1", "conditions": [reserved]}}
        await replicas.cluster.patch(pod("p"), status, subresource="status")
        await label(replicas, "n1", "1")
        await trio.sleep(MOVED_SECONDS)
        found = replicas.cluster.pod("p")
        (fenced,) = [one for one in found.status.conditions or () if one.type == FENCED]
        assert found.nominated_node_name == ""
        assert "took over nodes: n1" in fenced.message


async def test_one_replica_with_all_shards_follows_labels_too(autojump_clock: MockClock) -> None:
    async with replicas_by_label(nodes_of("0", None), replicas=1) as replicas:
        await bind_on(replicas, "before", "n0")
        await replicas.cluster.settle()
        await label(replicas, "n0", "1")
        await trio.sleep(MOVED_SECONDS)
        await bind_on(replicas, "after", "n0")
        await bind_on(replicas, "other", "n1")
        await replicas.cluster.settle()
        replicas.cluster.assert_scheduled("after", on="n0")
        replicas.cluster.assert_scheduled("other", on="n1")


async def test_a_replica_that_goes_by_names_waits_until_those_by_label_have_ended(autojump_clock: MockClock) -> None:
    async with replicas_by_label(nodes_of("0", "1"), replicas=1) as replicas:
        cluster = replicas.cluster
        settings = cluster._settings
        cluster._settings = evolve(settings, config=evolve(settings.config, sharding=Sharding(shards=2)))
        other = await cluster.start_scheduler("other", wait=False)
        await trio.sleep(30)
        found = ready_of(other)
        assert found == []
        await cluster.schedulers[0].stop()
        await trio.sleep(30)
        found = ready_of(other)
        assert found == [0, 1]


def test_what_a_lease_says_of_label_shards_and_groups_is_read_again() -> None:
    for written in (Holder(4, True, POOL), Holder(256, False, ""), Holder(1, True, ""), Holder(2, False, "zone")):
        assert read_holder(written.name) == written
    for text in ("", "kube-scheduler_uid", "shards-of-", "shards-of-0", "shards-of-1000", "shards-of-x"):
        assert read_holder(text) is None
