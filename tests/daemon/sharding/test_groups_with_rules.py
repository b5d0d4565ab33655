"""Gangs with claims, devices, rules about other pods or an extender: the lane places them on nodes of any replica."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import trio
from attrs import define, field
from device_ledger import DeviceLedger
from full_nodes import AS_ONE, BOTH, BY_GROUP, BY_POD, full_nodes
from gangs import GANG_GATES, GATES_OF, Gang, Gangs
from lossy_network import Deadline, LossyNetwork, start_behind_lossy_network, start_with_deadline
from sharded_replicas import SETTLED_SECONDS, Replicas, replicas_of, sharding_of
from slow_binds import SlowBinds
from trio.testing import MockClock

from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.simulator import Asked, PretendExtender, leaving
from trio_sched.simulator.endpoints.faults import Faults
from trio_sched.testing import (
    device,
    device_class,
    node,
    persistent_volume_claim,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_group,
    pod_term,
    resource_claim,
    resource_slice,
    spread_constraint,
    storage_class,
)
from trio_sched.testing.cluster import VirtualCluster

HOST, ZONE = "kubernetes.io/hostname", "zone"
GPU, EXTENDED, URL = "example.com/gpu", "example.com/extended", "http://extender.test"
NAMES = [f"n{number}" for number in range(8)]
OWN = [name for name in NAMES if shard_of(name, 2) == LANE][:2]
OTHER = [name for name in NAMES if shard_of(name, 2) != LANE][:2]
ALL = sorted(OWN + OTHER)
WAYS: dict[str, dict[str, Any]] = {
    "1.36": {"emulated_version": "1.36", "gates": GANG_GATES},
    "1.37": {"emulated_version": "1.37", "kubernetes_version": "1.37", "gates": GATES_OF["1.37"]},
}
CONFIG = "extenders: " + json.dumps(
    [
        {
            "urlPrefix": URL,
            "filterVerb": "filter",
            "preemptVerb": "preempt",
            "nodeCacheCapable": True,
            "managedResources": [{"name": EXTENDED, "ignoredByScheduler": True}],
        }
    ]
)
APART = pod_anti_affinity(pod_term("app=a", HOST))
TOGETHER = pod_affinity(pod_term("app=a", ZONE))
SPREAD = spread_constraint(HOST, "app=a")


def all_candidates(asked: Asked) -> object:
    """Leaves all nodes with their victims; this extender is sent their UIDs."""
    return {"NodeNameToMetaVictims": asked.request["NodeNameToMetaVictims"]}


@define(frozen=True)
class Kind:
    """Pods of a gang, and the nodes that only they leave."""

    nodes: list[str]
    count: int = 2
    details: dict[str, Any] = field(factory=dict)
    claims: str = ""
    """``devices`` or ``volumes``: each pod has a claim of its own."""


KINDS = {
    "anti-affinity": Kind(ALL, 4, {"affinity": APART, "labels": {"app": "a"}}),
    "affinity": Kind([*OTHER, OWN[0]], 12, {"affinity": TOGETHER, "labels": {"app": "a"}}),
    "spread": Kind(ALL, 4, {"spread": [SPREAD], "labels": {"app": "a"}}),
    "claims": Kind(ALL, 4, claims="devices"),
    "volumes": Kind(OTHER, 2, {"labels": {"app": "a"}, "affinity": APART}, claims="volumes"),
    "extended resource": Kind(ALL, 4, {"requests": {GPU: 1}}),
    "extender": Kind(OTHER, 8, {"requests": {EXTENDED: 1}}),
}


@define(eq=False)
class Scene:
    """A gang, and two replicas with two nodes each, each with a device, and room for four pods."""

    replicas: Replicas
    gangs: Gangs
    ledger: DeviceLedger

    @property
    def cluster(self) -> VirtualCluster:
        return self.replicas.cluster

    async def create_gang(self, kind: Kind, **details: Any) -> None:
        self.gangs.by_name["gang"] = Gang("gang", kind.count, trio.current_time())
        for number in range(kind.count):
            name, of_pod = f"gang-{number}", {"cpu": 1, "group": "gang", **kind.details, **details}
            if kind.claims == "devices":
                await self.cluster.create(resource_claim(name))
                of_pod["claims"] = [name]
            elif kind.claims:
                await self.cluster.create(persistent_volume_claim(name))
                of_pod["volumes"] = [name]
            await self.cluster.create(pod(name, **of_pod))
        await self.cluster.create(pod_group("gang", min_count=kind.count))

    async def start_behind_networks(self, network: trio.Nursery) -> LossyNetwork:
        """Start two replicas; returns the network of the one that has not the lane."""
        links = [await start_behind_lossy_network(self.cluster, network, f"r{n}", Random(0), 0.0) for n in range(2)]
        await trio.sleep(SETTLED_SECONDS)
        return next(link for process, link in links if LANE not in sharding_of(process).owned.ready)

    def device_of(self, claim: str) -> tuple[str, str]:
        return self.ledger.devices()[claim]

    def nodes(self) -> list[str]:
        """Those that pods of the gang are on."""
        return sorted({at for name, at in self.cluster.placements().items() if at and name.startswith("default/gang")})

    def check(self, kind: Kind) -> None:
        """Everything is as one scheduler would have left it, and nothing is under way."""
        bound, found, wrong = self.gangs.bound("gang"), self.nodes(), self.ledger.wrong
        assert (bound, found, wrong) == (kind.count, sorted(kind.nodes), [])
        assert self.gangs.by_name["gang"].longest_partial < 30
        for process in self.replicas.running:
            sharding = sharding_of(process)
            left = (list(sharding.owned.under_way), sharding.groups.unfinished, sharding.places().elsewhere)
            assert left == ([], 0, {})


@asynccontextmanager
async def scene_of(way: str, *, replicas: int = 2, **details: Any) -> AsyncGenerator[Scene, None]:
    zones = dict.fromkeys([*OTHER, OWN[0]], "a")
    nodes = [node(name, cpu=4, labels={ZONE: zones.get(name, "b")}) for name in ALL]
    extender = PretendExtender(URL, {"filter": leaving(lambda name: name in OTHER)})
    details = {"more_config": CONFIG, "extenders": [extender], **WAYS[way], **details}
    async with replicas_of(nodes, shards=2, replicas=replicas, **details) as found:
        cluster = found.cluster
        await cluster.create(device_class(extended_resource_name=GPU))
        for name in ALL:
            await cluster.create(resource_slice(name, device("gpu-0")))
        await cluster.create(storage_class(topologies={HOST: OTHER}))
        yield Scene(found, Gangs(cluster), DeviceLedger(cluster))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_gang_gets_places_on_nodes_of_both_replicas(kind: str, way: str, autojump_clock: MockClock) -> None:
    async with scene_of(way) as scene:
        await trio.sleep(1)
        await scene.create_gang(KINDS[kind])
        await scene.cluster.settle()
        scene.check(KINDS[kind])


async def test_pods_that_share_a_claim_go_to_its_device_on_a_node_of_another(autojump_clock: MockClock) -> None:
    async with scene_of("1.36") as scene:
        cluster = scene.cluster
        await cluster.create(resource_claim("shared"))
        await scene.create_gang(Kind(OTHER), claims=["shared"], node_selector={HOST: OTHER[0]})
        await cluster.settle()
        placed, given = scene.nodes(), scene.device_of("shared")
        assert (placed, given) == ([OTHER[0]], (OTHER[0], "gpu-0"))


async def test_nothing_is_allocated_for_a_gang_before_all_of_its_places_are_kept(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as network, scene_of("1.36", replicas=0) as scene:
        cluster = scene.cluster
        link = await scene.start_behind_networks(network)
        link.is_behind, link.behind = True, b"/pods"  # the owner of the other nodes does not answer
        await scene.create_gang(KINDS["claims"])
        await trio.sleep(4)
        asked = sorted(one.nominated_node_name for one in cluster.pods() if one.nominated_node_name)
        given = scene.ledger.devices()
        assert (asked, given) == (OTHER, {})
        link.is_behind = False
        link.caught_up.set()
        await cluster.settle()
        scene.check(KINDS["claims"])
        network.cancel_scope.cancel()


@pytest.mark.parametrize(("kind", "claims"), [("claims", b"resourceclaims"), ("volumes", b"persistentvolumeclaims")])
async def test_the_owner_of_a_node_needs_to_know_nothing_of_the_claims_of_a_gang(
    kind: str, claims: bytes, autojump_clock: MockClock
) -> None:
    async with trio.open_nursery() as network, scene_of("1.36", replicas=0) as scene:
        link = await scene.start_behind_networks(network)
        link.is_behind, link.behind = True, claims
        await scene.create_gang(KINDS[kind])
        await scene.cluster.settle()
        scene.check(KINDS[kind])
        network.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("way", "kind", "last"),
    [
        *[("1.36", "claims", last) for last in (3, 7, 11, 15)],  # the places, the claims, the binds
        *[("1.36", "extended resource", last) for last in (8, 12)],
        *[("1.37", "claims", last) for last in (5, 9, 13)],
        *[("1.37", "extended resource", last) for last in (6, 10, 20)],
    ],
)
async def test_a_replica_that_dies_after_any_of_its_writes_leaves_no_gang_and_no_device_half_done(
    way: str, kind: str, last: int, autojump_clock: MockClock
) -> None:
    deadline = Deadline()
    async with trio.open_nursery() as network, scene_of(way, replicas=0) as scene:
        for _ in range(2):
            await start_with_deadline(scene.cluster, network, deadline)
        await trio.sleep(SETTLED_SECONDS)
        deadline.last = last
        await scene.create_gang(KINDS[kind], affinity=APART, labels={"app": "a"})
        await trio.sleep(15)
        dead = deadline.dead
        if dead is None:
            raise AssertionError("there were fewer writes")
        await dead.kill()
        await trio.sleep(90)
        scene.check(KINDS[kind])
        network.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        (BY_POD, "claims"),
        (BY_POD, "anti-affinity"),
        (BY_POD, "extender"),
        (BY_GROUP, "extended resource"),
        (AS_ONE, "claims"),
    ],
    ids=["pods with claims", "pods with rules", "pods with an extender", "a group with devices", "a group with claims"],
)
async def test_others_are_evicted_for_it_on_nodes_of_both_replicas(
    way: dict[str, Any], kind: str, autojump_clock: MockClock
) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda _name: True), "preempt": all_candidates})
    async with full_nodes(way, more_config=CONFIG, extenders=[extender]) as scene:
        cluster, ledger = scene.cluster, DeviceLedger(scene.cluster)
        await cluster.create(device_class(extended_resource_name=GPU))
        for name in BOTH.values():
            await cluster.create(resource_slice(name, device("gpu-0")))
        for number in range(2):
            details = {**KINDS[kind].details}
            if KINDS[kind].claims:
                await cluster.create(resource_claim(f"gang-{number}"))
                details["claims"] = [f"gang-{number}"]
            await cluster.create(pod(f"gang-{number}", cpu=1, group="gang", priority=10, **details))
        await scene.create_group()
        await trio.sleep(40)
        bound, victims, left, wrong = scene.bound(), scene.evictions.victims, scene.left(), ledger.wrong
        assert (bound, victims, left, wrong) == (2, BOTH, [], [])


@pytest.mark.parametrize("way", WAYS)
async def test_the_owner_of_a_node_does_not_ask_for_pods_of_the_gang_that_it_cannot_see_yet(
    way: str, autojump_clock: MockClock
) -> None:
    async with scene_of(way) as scene:
        cluster = scene.cluster
        near = {"affinity": pod_affinity(pod_term("app=first", ZONE)), "node_selector": {HOST: OTHER[0]}}
        await cluster.create(pod("first", cpu=1, group="gang", labels={"app": "first"}, node_selector={HOST: OWN[0]}))
        await cluster.create(pod("second", cpu=1, group="gang", **near))
        await cluster.create(pod_group("gang", min_count=2))
        await cluster.settle()
        cluster.assert_scheduled("first", on=OWN[0])
        cluster.assert_scheduled("second", on=OTHER[0])
        refused = sum(sharding_of(process).proposals.answers["refused"] for process in scene.replicas.running)
        assert refused == 0


async def test_the_best_node_for_the_first_pod_of_a_gang_is_chosen_whosever_it_is(autojump_clock: MockClock) -> None:
    async with scene_of("1.36") as scene:
        cluster = scene.cluster
        await cluster.create(pod("blocker", cpu=1, node_selector={HOST: OWN[1]}))
        await cluster.create(pod("another", cpu=4, node_selector={HOST: OWN[0]}))
        await trio.sleep(1)
        kind = Kind(OTHER, 5, KINDS["affinity"].details)  # in the zone of the own node that is left only three fit
        await scene.create_gang(kind)
        await cluster.settle()
        scene.check(kind)


@pytest.mark.parametrize("way", WAYS)
async def test_a_gang_waits_for_those_of_its_pods_that_repel_others_until_all_have_seen_them(
    way: str, autojump_clock: MockClock
) -> None:
    async with scene_of(way) as scene:
        cluster = scene.cluster
        await cluster.create(pod_group("gang", min_count=4))
        for number in range(4):
            rule = {"affinity": APART, "labels": {"app": "a"}} if number % 2 else {}
            await cluster.create(pod(f"gang-{number}", cpu=1, group="gang", **rule))
        await trio.sleep(20)
        pending = [name for name, at in cluster.placements().items() if not at]
        assert pending == []


async def test_the_next_lane_keeps_the_places_of_a_gang_before_all_have_seen_what_its_pods_repel(
    autojump_clock: MockClock,
) -> None:
    kind = Kind(ALL, 4, {"affinity": APART, "labels": {"app": "a"}, "cpu": 4})
    async with scene_of("1.36") as scene:
        cluster = scene.cluster
        cluster.api.faults = SlowBinds()
        await scene.create_gang(kind)
        while not scene.gangs.bound("gang"):  # noqa: ASYNC110 - what is waited for is in the store, which has no events
            await trio.sleep(0.1)
        await scene.replicas.owner(LANE).kill()
        cluster.api.faults = Faults()
        for name in OWN:
            await cluster.create(pod(f"rival-{name}", node_selector={HOST: name}, cpu=1))
        await trio.sleep(60)
        scene.check(kind)
