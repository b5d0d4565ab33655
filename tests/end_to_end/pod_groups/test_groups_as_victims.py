"""What a pod that preempts evicts of pod groups: before 1.37 pods, from then on groups that leave as a whole."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from gangs import cluster_of, member
from trio.testing import MockClock

from trio_sched.objects.pod import Pod
from trio_sched.testing import (
    composite_pod_group,
    disruption_budget,
    node,
    pod,
    pod_anti_affinity,
    pod_group,
    pod_term,
)
from trio_sched.testing.cluster import VirtualCluster

ALL, SINGLE = "PodGroup", "Pod"
ZONES = {"a": "z1", "b": "z1", "c": "z2"}


def cluster_with(version: str, **more: Any) -> Any:
    nodes = [node(name, cpu="2", labels={"zone": zone}) for name, zone in ZONES.items()]
    return cluster_of(version, nodes=nodes, **more)


def important(**more: Any) -> Pod:
    return pod("important", cpu="2", priority=10, **more)


def on(name: str, where: str, group: str = "group", **more: Any) -> Pod:
    """A running pod that fills its node."""
    return member(name, group, cpu="2", node_name=where, **more)


async def evicted(cluster: VirtualCluster, *pods: Pod, for_pod: Pod) -> Sequence[str]:
    """Which of *pods*, each younger than the one before, are evicted for *for_pod*."""
    for one in pods:
        await cluster.create(one)
        await trio.sleep(2)
    await cluster.create(for_pod)
    await trio.sleep(30)
    left = {one.name for one in cluster.pods()}
    gone = [one.name for one in pods if one.name not in left]
    assert bool(gone) == bool(cluster.pod(for_pod.name).node_name)
    return gone


OVER_THREE_NODES = [on("g0", "a"), on("g1", "b"), on("g2", "c")]


@pytest.mark.parametrize(
    ("version", "mode", "expected"),
    [
        ("1.36", ALL, ["g2"]),
        ("1.37", ALL, ["g0", "g1", "g2"]),
        ("1.36", SINGLE, ["g2"]),
        ("1.37", SINGLE, ["g2"]),
    ],
)
async def test_a_group_over_three_nodes_leaves_as_a_whole_if_its_mode_says_so(
    version: str, mode: str, expected: list[str], autojump_clock: MockClock
) -> None:
    async with cluster_with(version) as cluster:
        await cluster.create(pod_group("group", disruption_mode=mode))
        assert await evicted(cluster, *OVER_THREE_NODES, for_pod=important()) == expected
        (told,) = {one.message for one in cluster.events("FailedScheduling", about="important")}
        where = cluster.pod("important").node_name
        text = f"found a potential placement for pod on node {where}, preempting {len(expected)} victims"
        assert told.endswith(text) == (version == "1.37")
        notes = {one.message.partition(" on ")[2] for one in cluster.events("Preempted")}
        assert notes == {f"node {where}"}


@pytest.mark.parametrize("mode", [ALL, SINGLE])
@pytest.mark.parametrize(
    ("version", "of_group", "of_pods", "expected"),
    [
        ("1.36", 10, 0, ["g0"]),
        ("1.37", 10, 0, []),
        ("1.36", 9, 50, []),
        ("1.37", 9, 50, ["g0"]),
    ],
)
async def test_since_1_37_the_priority_of_the_group_counts_and_not_that_of_its_pods(
    version: str, of_group: int, of_pods: int, expected: list[str], mode: str, autojump_clock: MockClock
) -> None:
    others = [pod(f"high-{name}", cpu="2", priority=10, node_name=name) for name in "bc"]
    async with cluster_with(version) as cluster:
        await cluster.create(pod_group("group", disruption_mode=mode, priority=of_group))
        assert await evicted(cluster, on("g0", "a", priority=of_pods), *others, for_pod=important()) == expected


@pytest.mark.parametrize(
    ("version", "mode", "expected"),
    [("1.36", ALL, ["g0"]), ("1.37", ALL, ["low"]), ("1.36", SINGLE, ["g0"]), ("1.37", SINGLE, ["g0"])],
)
async def test_a_budget_protects_the_whole_group(
    version: str, mode: str, expected: list[str], autojump_clock: MockClock
) -> None:
    """The pod on node a has no budget, but it would take along one that has; the other has a higher priority."""
    pods = [on("g0", "a"), on("g1", "b", labels={"app": "db"}), pod("low", cpu="2", priority=5, node_name="c")]
    async with cluster_with(version) as cluster:
        await cluster.create(pod_group("group", disruption_mode=mode))
        await cluster.create(disruption_budget("db", {"app": "db"}, allowed=0))
        assert await evicted(cluster, *pods, for_pod=important()) == expected


@pytest.mark.parametrize(("version", "expected"), [("1.36", ["g1"]), ("1.37", ["low"])])
async def test_the_pods_on_other_nodes_count_for_the_best_node(
    version: str, expected: list[str], autojump_clock: MockClock
) -> None:
    """By themselves all three are alike, but for their age."""
    pods = [pod("low", cpu="2", node_name="c"), on("g0", "a"), on("g1", "b")]
    async with cluster_with(version) as cluster:
        await cluster.create(pod_group("group", disruption_mode=ALL))
        assert await evicted(cluster, *pods, for_pod=important()) == expected


@pytest.mark.parametrize("mode", [ALL, SINGLE])
@pytest.mark.parametrize(("version", "expected"), [("1.36", ["g0"]), ("1.37", ["low"])])
async def test_pods_of_groups_are_more_important_than_others(
    version: str, expected: list[str], mode: str, autojump_clock: MockClock
) -> None:
    pods = [pod("low", cpu="1", node_name="a"), member("g0", "group", cpu="1", node_name="a")]
    others = [pod(f"high-{name}", cpu="2", priority=10, node_name=name) for name in "bc"]
    async with cluster_with(version) as cluster:
        await cluster.create(pod_group("group", disruption_mode=mode))
        incoming = pod("important", cpu="1", priority=10)
        assert await evicted(cluster, *others, *pods, for_pod=incoming) == expected


@pytest.mark.parametrize(("version", "expected"), [("1.36", []), ("1.37", ["g0", "g1"])])
async def test_plugins_that_look_at_other_nodes_see_that_the_whole_group_is_gone(
    version: str, expected: list[str], autojump_clock: MockClock
) -> None:
    pods = [on("g0", "a", labels={"app": "x"}), on("g1", "b", labels={"app": "x"})]
    other = pod("high", cpu="2", priority=10, node_name="c")
    alone_in_zone = important(affinity=pod_anti_affinity(pod_term("app=x", "zone")))
    async with cluster_with(version) as cluster:
        await cluster.create(pod_group("group", disruption_mode=ALL))
        assert await evicted(cluster, other, *pods, for_pod=alone_in_zone) == expected


@pytest.mark.parametrize("gone", [False, True])
async def test_the_highest_group_that_leaves_as_a_whole_takes_its_tree_along(
    gone: bool, autojump_clock: MockClock
) -> None:
    """Also if the tree is not whole, because its root is *gone*."""
    pods = [on("left", "a", "g1"), on("right", "b", "g2"), on("alone", "c", "g3")]
    async with cluster_with("1.37", gates={"CompositePodGroup": True}) as cluster:
        if not gone:
            await cluster.create(composite_pod_group("root"))
        await cluster.create(composite_pod_group("middle", parent="root", disrupted_together=True))
        await cluster.create(pod_group("g1", parent="middle"))
        await cluster.create(pod_group("g2", parent="middle", disruption_mode=SINGLE))
        await cluster.create(pod_group("g3", parent="root"))
        keeps = important(node_selector={"zone": "z1"})
        assert await evicted(cluster, *pods, for_pod=keeps) == ["left", "right"]
