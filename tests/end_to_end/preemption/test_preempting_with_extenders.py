"""Extenders that take part in the choice of victims."""

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_sched.simulator import Asked, PretendExtender
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

URL = "http://extender.test"


def config(**more: Any) -> str:
    extender = {"urlPrefix": URL, "preemptVerb": "preempt", **more}
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    return f"{head}extenders: {json.dumps([extender])}"


def only(name: str) -> Any:
    """An extender that allows victims on the node *name* alone."""

    def choose(asked: Asked) -> Any:
        wanted = asked.request["NodeNameToVictims"]
        victims = {n: [p["metadata"]["uid"] for p in v["Pods"]] for n, v in wanted.items() if n == name}
        return {"NodeNameToMetaVictims": {n: {"Pods": [{"UID": uid} for uid in uids]} for n, uids in victims.items()}}

    return choose


async def full(cluster: VirtualCluster) -> dict[str, str]:
    for i in range(2):
        await cluster.create(pod(f"low-{i}", cpu="1"))
    await trio.sleep(5)
    return {one.node_name: one.name for one in cluster.pods()}


async def test_an_extender_chooses_the_node_of_the_victim(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"preempt": only("b")})
    nodes = [node("a", cpu="1"), node("b", cpu="1")]
    async with virtual_cluster(nodes=nodes, config=config(), extenders=[extender]) as cluster:
        on = await full(cluster)
        await cluster.create(pod("high", cpu="1", priority=10))
        await cluster.settle()
        assert cluster.placements() == {f"default/{on['a']}": "a", "default/high": "b"}
    assert extender.asked_about("preempt") == ["high"]


@pytest.mark.parametrize(("ignorable", "victims"), [(True, 1), (False, 0)])
async def test_an_invalid_answer_ends_the_preemption_unless_the_extender_is_ignorable(
    ignorable: bool, victims: int, autojump_clock: MockClock
) -> None:
    extender = PretendExtender(URL, {"preempt": lambda _asked: {"NodeNameToMetaVictims": {"gone": {"Pods": []}}}})
    nodes = [node("a", cpu="1"), node("b", cpu="1")]
    async with virtual_cluster(nodes=nodes, config=config(ignorable=ignorable), extenders=[extender]) as cluster:
        await full(cluster)
        await cluster.create(pod("high", cpu="1", priority=10))
        await cluster.settle()
        assert len(cluster.events("Preempted")) == victims
        assert bool(cluster.pod("high").node_name) == bool(victims)
