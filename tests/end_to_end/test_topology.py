"""Spread and affinity between pods: where pods go, and which events requeue those that had to wait."""

from collections import Counter
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_sched.objects.metadata import OwnerReference
from trio_sched.objects.node import Node
from trio_sched.plugin_api import LabelSelector, TopologySpreadConstraint
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB = {"app": "web"}


def zoned(name: str, zone: str, **options: Any) -> Node:
    return node(name, labels={ZONE: zone, HOST: name}, **options)


def spread(key: str = ZONE, action: str = "DoNotSchedule", **labels: str) -> TopologySpreadConstraint:
    selector = LabelSelector(match_labels=labels or WEB)
    return TopologySpreadConstraint(max_skew=1, topology_key=key, when_unsatisfiable=action, label_selector=selector)


def affine(name: str, side: str, term: dict[str, Any], namespace: str = "default", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        },
    }


def term(key: str = HOST, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": WEB}, **more}


async def test_replicas_are_spread_evenly_over_zones_of_different_size(autojump_clock: MockClock) -> None:
    nodes = [zoned("a1", "a"), zoned("a2", "a"), zoned("a3", "a"), zoned("b1", "b"), zoned("c1", "c")]
    async with virtual_cluster(nodes=nodes) as cluster:
        for i in range(9):
            await cluster.create(pod(f"web-{i}", labels=WEB, spread=[spread()]))
        await cluster.settle()
        zone = {one: one[0] for one in ("a1", "a2", "a3", "b1", "c1")}
        assert Counter(zone[where] for where in cluster.placements().values()) == {"a": 3, "b": 3, "c": 3}


async def test_a_pod_rejected_by_spread_constraints_is_requeued_when_a_matching_pod_is_deleted(
    autojump_clock: MockClock,
) -> None:
    nodes = [zoned("a", "a", pods=1), zoned("b", "b", pods=3)]
    async with virtual_cluster(nodes=nodes) as cluster:
        made = []
        for i in range(4):
            made.append(await cluster.create(pod(f"web-{i}", labels=WEB, spread=[spread()])))
            await trio.sleep(2)
        await trio.sleep(10)
        placed = cluster.placements()
        assert Counter(placed.values()) == {"a": 1, "b": 2, "": 1}
        (waiting,) = [name for name, where in placed.items() if not where]
        (refusal,) = cluster.events("FailedScheduling", about=waiting.partition("/")[2])
        assert "1 node(s) didn't match pod topology spread constraints" in refusal.message
        await cluster.delete(next(one for one in made if placed[one.key] == "b"))
        await cluster.settle()
        assert cluster.placements()[waiting] == "b"


async def test_a_node_in_a_new_zone_requeues_pods_that_wait_for_one(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[zoned("a", "a", pods=1)]) as cluster:
        for i in range(2):
            await cluster.create(pod(f"web-{i}", labels=WEB, spread=[spread()]))
        await trio.sleep(10)
        assert sorted(cluster.placements().values()) == ["", "a"]
        await cluster.create(zoned("b", "b"))
        await cluster.settle()
        assert sorted(cluster.placements().values()) == ["a", "b"]


async def test_without_constraints_of_their_own_pods_of_a_replica_set_prefer_other_nodes(
    autojump_clock: MockClock,
) -> None:
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": WEB},
            "template": {"metadata": {"labels": WEB}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    # Without the preference the bigger node, which stays emptier, would take them all.
    nodes = [zoned("big", "a", cpu=100), zoned("small", "b", cpu=8)]
    async with virtual_cluster(nodes=nodes) as cluster:
        await cluster.create(replica_set)
        owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="w", controller=True)
        await trio.sleep(1)
        for i in range(8):
            await cluster.create(pod(f"web-{i}", cpu="100m", labels=WEB, owner=owner))
        for i in range(4):
            await cluster.create(pod(f"lone-{i}", cpu="100m"))
        await cluster.settle()
        web = Counter(where for name, where in cluster.placements().items() if "web" in name)
        assert web["small"] >= 3
        assert {where for name, where in cluster.placements().items() if "lone" in name} == {"big"}


async def test_pods_with_anti_affinity_take_a_node_each_and_the_last_one_waits(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[zoned("a", "a"), zoned("b", "b")]) as cluster:
        for i in range(3):
            await cluster.create(affine(f"web-{i}", "podAntiAffinity", term(), **WEB))
            await trio.sleep(2)
        await trio.sleep(5)
        assert sorted(cluster.placements().values()) == ["", "a", "b"]
        (refusal,) = cluster.events("FailedScheduling", about="web-2")
        assert "2 node(s) didn't match pod anti-affinity rules" in refusal.message
        first = cluster.pod("web-0")
        await cluster.delete(first)
        await cluster.settle()
        assert cluster.pod("web-2").node_name == first.node_name


async def test_a_pod_with_affinity_waits_for_a_matching_pod_and_joins_it(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[zoned("a", "a"), zoned("b", "b"), zoned("b2", "b")]) as cluster:
        await cluster.create(affine("follower", "podAffinity", term(ZONE)))
        await trio.sleep(10)
        assert cluster.pod("follower").node_name == ""
        await cluster.create(pod("leader", labels=WEB, node_selector={ZONE: "b"}))
        await cluster.settle()
        assert cluster.pod("follower").node_name in ("b", "b2")


async def test_the_first_pod_of_a_self_affine_group_is_scheduled(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[zoned("a", "a"), zoned("b", "b")]) as cluster:
        for i in range(4):
            await cluster.create(affine(f"web-{i}", "podAffinity", term(ZONE), **WEB))
        await cluster.settle()
        assert len(set(cluster.placements().values())) == 1
        assert "" not in cluster.placements().values()


async def test_a_changed_label_requeues_a_pod(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[zoned("a", "a")]) as cluster:
        bully = await cluster.create(pod("bully", labels=WEB))
        await trio.sleep(2)
        await cluster.create(affine("shy", "podAntiAffinity", term()))
        await trio.sleep(5)
        assert cluster.pod("shy").node_name == ""
        await cluster.patch(bully, {"metadata": {"labels": {"app": "reformed"}}})
        await cluster.settle()
        assert cluster.pod("shy").node_name == "a"


@pytest.mark.parametrize(("team", "expected"), [("red", ""), ("blue", "a")])
async def test_namespaces_are_selected_by_their_labels(team: str, expected: str, autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[zoned("a", "a")]) as cluster:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": {"team": team}}}
        await cluster.create(namespace)
        await cluster.create(pod("there", namespace="other", labels=WEB))
        await trio.sleep(3)
        shuns = term(namespaceSelector={"matchLabels": {"team": "red"}})
        await cluster.create(affine("shy", "podAntiAffinity", shuns))
        await cluster.settle()
        assert cluster.pod("shy").node_name == expected
