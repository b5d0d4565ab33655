"""What a required rule needs of a pod that another replica is asked to bind: it is certain before that is relied on."""

from random import Random
from typing import Any

import pytest
import trio
from gangs import GANG_GATES
from lossy_network import start_behind_lossy_network
from sharded_replicas import SETTLED_SECONDS, replicas_of, sharding_of
from trio.testing import MockClock

from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.testing import node, pod, pod_affinity, pod_group, pod_term, spread_constraint

HOST, ZONE = "kubernetes.io/hostname", "zone"
NAMES = [f"n{number}" for number in range(8)]
OWN = next(name for name in NAMES if shard_of(name, 2) == LANE)
OTHER = next(name for name in NAMES if shard_of(name, 2) != LANE)
NEAR_FIRST: dict[str, Any] = {"node_selector": {HOST: OWN}, "affinity": pod_affinity(pod_term("app=first", ZONE))}
EVENLY: dict[str, Any] = {"spread": [spread_constraint(HOST, "evenly=yes")], "labels": {"evenly": "yes"}}
"""The first one on a node may be there alone, and the second one if there is one on the other node, too."""


@pytest.mark.parametrize("group", ["", "group"])
@pytest.mark.parametrize(("rule", "count"), [(NEAR_FIRST, 1), (EVENLY, 2)], ids=["affinity", "spread"])
async def test_a_rule_that_needs_another_pod_is_kept_if_the_owner_of_a_node_refuses_that_one(
    rule: dict[str, Any], count: int, group: str, autojump_clock: MockClock
) -> None:
    nodes = [node(name, cpu=4, labels={ZONE: "z"}) for name in (OWN, OTHER)]
    async with (
        trio.open_nursery() as network,
        replicas_of(nodes, shards=2, replicas=0, gates=GANG_GATES) as replicas,
    ):
        cluster = replicas.cluster
        links = [await start_behind_lossy_network(cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        lane = next(link for process, link in links if LANE in sharding_of(process).owned.ready)
        lane.held = b"/pods/first/status"
        await cluster.create(pod_group("group"))
        of_first = {"spread": [spread_constraint(HOST, "app=first")], "labels": {"app": "first"}}  # decided by the lane
        of_first = EVENLY if rule is EVENLY else of_first
        await cluster.create(pod("first", group=group, cpu=4, node_selector={HOST: OTHER}, **of_first))
        await trio.sleep(1)
        names = ["second-0", "second-1"][:count]
        for name in names:
            await cluster.create(pod(name, group=group, cpu=1, **rule))
        await trio.sleep(1)
        blocker = await cluster.create(pod("blocker", cpu=4, node_name=OTHER))
        lane.held = b""
        lane.let_go.set()
        await trio.sleep(4)
        cluster.assert_pending("first")
        bound = [name for name in names if cluster.pod(name).node_name]
        assert len(bound) == count - 1
        await cluster.delete(blocker, grace_seconds=0)
        await trio.sleep(40)
        pending = [name for name in names if not cluster.pod(name).node_name]
        assert pending == []
        network.cancel_scope.cancel()
