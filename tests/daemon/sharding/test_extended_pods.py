"""Pods that extenders have a say in are decided on by the lane, which asks these, and go to nodes of any replica."""

import json
from collections import Counter

import pytest
import trio
from sharded_replicas import replicas_of
from trio.testing import MockClock

from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.simulator import Asked, PretendExtender, leaving
from trio_sched.testing import node, pod

GPU = "example.com/gpu"
URL = "http://extender.test"
NAMES = [f"n{number}" for number in range(6)]
OF_LANE = [name for name in NAMES if shard_of(name, 2) == LANE]
OF_OTHER = [name for name in NAMES if shard_of(name, 2) != LANE]
CONFIG = "extenders: " + json.dumps(
    [
        {
            "urlPrefix": URL,
            "filterVerb": "filter",
            "preemptVerb": "preempt",
            "nodeCacheCapable": True,
            "managedResources": [{"name": GPU, "ignoredByScheduler": True}],
        }
    ]
)


def all_candidates(asked: Asked) -> object:
    """Leaves all nodes with their victims; this extender is sent their UIDs."""
    return {"NodeNameToMetaVictims": asked.request["NodeNameToMetaVictims"]}


async def test_pods_with_an_extender_go_to_nodes_of_any_replica_that_it_leaves(autojump_clock: MockClock) -> None:
    wanted = [OF_LANE[-1], OF_OTHER[-1]]
    extender = PretendExtender(URL, {"filter": leaving(lambda name: name in wanted)})
    nodes = [node(name, cpu=4) for name in NAMES]
    async with replicas_of(nodes, shards=2, replicas=2, more_config=CONFIG, extenders=[extender]) as replicas:
        cluster = replicas.cluster
        for number in range(9):
            await cluster.create(pod(f"gpu-{number}", cpu=1, requests={GPU: 1}))
            await cluster.create(pod(f"plain-{number}"))
        await cluster.settle()
        placed = {name.removeprefix("default/"): at for name, at in cluster.placements().items()}
        with_extender = Counter(at for name, at in placed.items() if name.startswith("gpu"))
        assert with_extender == {wanted[0]: 4, wanted[1]: 4, "": 1}
        plain = {shard_of(at, 2) for name, at in placed.items() if at and name.startswith("plain")}
        assert plain == {0, 1}
        elsewhere = [at for name, at in placed.items() if at == wanted[1] and name.startswith("gpu")]
        bound = replicas.bound_elsewhere()
        assert bound >= len(elsewhere)
        asked = Counter(extender.asked_about("filter"))
        assert asked["gpu-0"] == 1  # the owner of the node does not ask once more


@pytest.mark.parametrize("there", [OF_LANE[0], OF_OTHER[0]])
async def test_an_extender_is_asked_about_victims_on_nodes_of_any_replica(
    there: str, autojump_clock: MockClock
) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda _name: True), "preempt": all_candidates})
    nodes = [node(there, cpu=4)]
    async with replicas_of(
        nodes, shards=2, replicas=2, more_config=CONFIG, extenders=[extender], kubelets=True
    ) as replicas:
        cluster = replicas.cluster
        await cluster.create(pod("low", cpu=4))
        await cluster.settle()
        await cluster.create(pod("high", cpu=4, priority=10, requests={GPU: 1}))
        await cluster.settle()
        cluster.assert_scheduled("high", on=there)
        asked = set(extender.asked_about("preempt"))
        assert asked == {"high"}


async def test_an_extender_is_asked_about_a_node_of_another_once_victims_are_gone(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda _name: False)})  # it is not asked about victims
    config = CONFIG.replace('"preemptVerb": "preempt", ', "")
    nodes = [node(OF_OTHER[0], cpu=4)]
    async with replicas_of(
        nodes, shards=2, replicas=2, more_config=config, extenders=[extender], kubelets=True
    ) as replicas:
        cluster = replicas.cluster
        await cluster.create(pod("low", cpu=4))
        await cluster.settle()
        await cluster.create(pod("high", cpu=4, priority=10, requests={GPU: 1}))
        await cluster.settle()
        cluster.assert_pending("high")
        asked, left = extender.asked_about("filter"), sorted(cluster.placements())
        assert (set(asked), left) == ({"high"}, ["default/high"])


async def test_whoever_takes_the_lane_asks_the_extender_that_the_last_one_was_waiting_for(
    autojump_clock: MockClock,
) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda _name: True)}, delay_seconds=3.0)
    nodes = [node(name, cpu=4) for name in NAMES]
    async with replicas_of(nodes, shards=2, replicas=2, more_config=CONFIG, extenders=[extender]) as replicas:
        cluster, lane = replicas.cluster, replicas.owner(LANE)
        await cluster.create(pod("p", cpu=1, requests={GPU: 1}))
        await trio.sleep(1)
        await lane.kill()
        await trio.sleep(30)
        cluster.assert_scheduled("p")
        asked, binds = extender.asked_about("filter"), len(replicas.ledger.binds)
        assert (asked, binds) == (["p", "p"], 1)
