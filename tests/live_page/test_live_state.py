"""What readers of the live page have after many changes is what there is."""

import json
from random import Random
from typing import Any

import pytest
import trio
from live_reader import LiveReader

from trio_sched.daemon.serving.pages.live.live_facts import LiveFacts
from trio_sched.live_page import pending_rows
from trio_sched.live_page.live_state import LiveState
from trio_sched.plugin_api import Wait, hookimpl
from trio_sched.testing import device, device_class, node, pod, resource_claim, resource_slice
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.device_builders import DRIVER

ZONE = "topology.kubernetes.io/zone"


class Patient:
    """Makes some pods wait on permit."""

    name = "Patient"

    def __init__(self, args: object, handle: object) -> None:
        pass

    @hookimpl
    def permit(self, pod: Any, node_name: str) -> Any:
        return Wait(600.0, "for better times") if pod.name == "patient" else None


def state_of(cluster: VirtualCluster) -> LiveState:
    return LiveState(LiveFacts(cluster.scheduler.assembly).source())


def refresh(state: LiveState) -> dict[str, Any]:
    """The delta as it comes out of JSON."""
    delta: dict[str, Any] = {}
    for _ in state.refresh(delta):
        pass
    return json.loads(json.dumps(delta))


def snapshot(state: LiveState) -> LiveReader:
    reader = LiveReader()
    reader.take_snapshot(json.loads(json.dumps(state.snapshot())))
    return reader


async def test_a_node_is_shown_with_its_shares_marks_and_names() -> None:
    nodes = [
        node("a", cpu=2, memory="8Gi", labels={ZONE: "z", "karpenter.sh/nodepool": "general"}),
        node("b", unschedulable=True, conditions={"Ready": "Unknown"}, taints=["key:NoExecute"]),
        node("c", allocatable={"example.com/gpu": 4}, taints=["key:PreferNoSchedule"]),
    ]
    async with virtual_cluster(nodes=nodes) as cluster:
        await cluster.create(pod("p", cpu="500m", memory="2Gi", node_name="a"))
        await cluster.create(pod("q", requests={"example.com/gpu": 3}))
        await trio.sleep(10)
        state = state_of(cluster)
        refresh(state)
        shown = snapshot(state)
        a, b, c = (shown.nodes()[name] for name in "abc")
        assert a == {
            "name": "a",
            "zone": "z",
            "pool": "general",
            "flags": 0,
            "cpu": 250,
            "memory": 250,
            "pods": 1,
            "pod_limit": 110,
            "evicted": 0,
            "example.com/gpu": None,
        }
        assert (b["flags"], b["zone"], b["pool"]) == (7, "", "")
        assert (c["flags"], c["example.com/gpu"], c["cpu"]) == (0, 750, 0)
        summary = shown.summary
        assert (summary["nodes"], summary["nodes_not_ready"], summary["nodes_cordoned"]) == (3, 1, 1)
        assert (summary["cpu"], summary["pods"]) == ([500, 10_000], [2, 330])
        assert summary["configuration"]["name"] == "defaults"
        assert {one["kind"]: one["state"] for one in summary["watches"]}["Pod"] == "fresh"


async def test_evicted_pods_are_told_from_others_that_leave() -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2), node("b", cpu=2)]) as cluster:
        await cluster.create(pod("victim", cpu="2", node_name="a"))
        await cluster.create(pod("other", cpu="2", node_name="b", priority=100))
        await cluster.create(pod("preemptor", cpu="2", priority=10))
        await cluster.settle()
        cluster.assert_scheduled("preemptor", on="a")
        await cluster.delete(pod("other"), grace_seconds=0)
        await cluster.settle()
        state = state_of(cluster)
        refresh(state)
        assert {name: shown["evicted"] for name, shown in snapshot(state).nodes().items()} == {"a": 1, "b": 0}
        await cluster.delete(node("a"))
        await cluster.settle()
        assert cluster.scheduler.assembly is not None
        assert dict(cluster.scheduler.assembly.scheduler.cache.evictions) == {}


async def test_devices_of_drivers_are_shown_as_they_are_allocated() -> None:
    async with virtual_cluster(nodes=3) as cluster:
        await cluster.create(device_class())
        for name in ("node-1", "node-2"):
            await cluster.create(resource_slice(name, *(device(f"gpu-{number}") for number in range(4))))
        await trio.sleep(1)
        state = state_of(cluster)
        refresh(state)
        reader = snapshot(state)
        assert [reader.nodes()[f"node-{number}"][DRIVER] for number in (1, 2, 3)] == [0, 0, None]
        for number in range(3):
            await cluster.create(resource_claim(f"claim-{number}"))
            await cluster.create(pod(f"p-{number}", claims=[f"claim-{number}"]))
        await trio.sleep(20)
        reader.take_delta(refresh(state))
        assert sum(reader.nodes()[f"node-{number}"][DRIVER] for number in (1, 2)) == 750
        await cluster.create(node("another"))
        slices = resource_slice("another", device(), driver="other.example.com")
        await cluster.create(slices)
        await trio.sleep(1)
        reader.take_delta(refresh(state))
        assert (reader.nodes()["another"]["other.example.com"], reader.nodes()["another"][DRIVER]) == (0, None)
        assert sum(reader.nodes()[f"node-{number}"][DRIVER] for number in (1, 2)) == 750
        fresh = state_of(cluster)
        refresh(fresh)
        assert snapshot(fresh).nodes() == reader.nodes()
        await cluster.delete(slices)
        await trio.sleep(1)
        reader.take_delta(refresh(state))
        assert reader.nodes()["another"]["other.example.com"] is None


async def test_a_pod_that_waits_is_shown_where_it_waits_and_why() -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2), node("b", cpu=1)], plugins=[Patient]) as cluster:
        await cluster.create(pod("huge", cpu=8, priority=7))
        await cluster.create(pod("large", cpu=4))
        await cluster.create(pod("gated", gates=["example.com/gate"]))
        await cluster.create(pod("patient", cpu=1))
        await trio.sleep(30)
        state = state_of(cluster)
        refresh(state)
        shown = snapshot(state)
        pending = shown.pending()
        assert {key: one["queue"] for key, one in pending.items()} == {
            "default/huge": pending_rows.UNSCHEDULABLE,
            "default/large": pending_rows.UNSCHEDULABLE,
            "default/gated": pending_rows.GATED,
            "default/patient": pending_rows.ON_PERMIT,
        }
        assert pending["default/huge"]["cause"] == pending["default/large"]["cause"] == "Insufficient cpu"
        assert (pending["default/huge"]["priority"], pending["default/huge"]["attempts"]) == (7, 1)
        assert pending["default/patient"]["node"] in ("a", "b")
        assert "gate" in pending["default/gated"]["cause"]
        assert {one["text"]: (one["plugins"], one["count"]) for one in shown.causes}["Insufficient cpu"] == (
            ["NodeResourcesFit"],
            2,
        )
        assert shown.summary["queues"] == [0, 0, 2, 1, 1, 0, 0]
        assert 0 < pending["default/huge"]["since"] < shown.sequence + state.time


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_pods_whose_group_is_not_there_wait_for_it_in_every_version(version: str) -> None:
    gates = {"GenericWorkload": True, "GangScheduling": True}
    async with virtual_cluster(nodes=1, gates=gates, kubernetes_version=version, emulated_version=version) as cluster:
        await cluster.create(pod("alone", group="missing"))
        await cluster.create(pod("huge", cpu=100))
        await trio.sleep(30)
        state = state_of(cluster)
        refresh(state)
        shown = snapshot(state)
        assert {key: one["queue"] for key, one in shown.pending().items()} == {
            "default/alone": pending_rows.GANG,
            "default/huge": pending_rows.UNSCHEDULABLE,
        }
        assert shown.summary["queues"] == [0, 0, 1, 0, 0, 0, 1]


async def test_of_pods_that_the_same_plugins_refuse_for_different_reasons_each_counts_for_its_own() -> None:
    async with virtual_cluster(nodes=[node("a", cpu=1, memory="1Gi")]) as cluster:
        for number in range(3):
            await cluster.create(pod(f"cpu-{number}", cpu=2))
        for number in range(2):
            await cluster.create(pod(f"memory-{number}", memory="2Gi"))
        await trio.sleep(10)
        state = state_of(cluster)
        refresh(state)
        counts = {one["text"]: one["count"] for one in snapshot(state).causes}
        assert counts == {"Insufficient cpu": 3, "Insufficient memory": 2}


async def test_nothing_is_sent_where_nothing_has_changed() -> None:
    async with virtual_cluster(nodes=3) as cluster:
        await cluster.create(pod("huge", cpu=100))
        await trio.sleep(30)
        state = state_of(cluster)
        assert refresh(state)["sequence"] == 1
        for _ in range(12):
            assert refresh(state) == {}
        assert state.sequence == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("most_rows", [4, 2000])
async def test_deltas_lead_to_what_a_snapshot_shows(monkeypatch: pytest.MonkeyPatch, seed: int, most_rows: int) -> None:
    monkeypatch.setattr(pending_rows, "MOST_ROWS", most_rows)
    random = Random(seed)
    async with virtual_cluster(nodes=4) as cluster:
        state, reader = state_of(cluster), LiveReader()
        refresh(state)
        reader = snapshot(state)
        objects: dict[str, Any] = {}
        for step in range(60):
            for _ in range(random.randrange(4)):
                await change(cluster, random, objects, step)
            await trio.sleep(random.choice([0.0, 0.01, 1.0, 15.0]))
            delta = refresh(state)
            if delta:
                reader.take_delta(delta)
            fresh_state = state_of(cluster)
            refresh(fresh_state)
            fresh = snapshot(fresh_state)
            assert offered(reader.nodes()) == offered(fresh.nodes())
            assert len(reader.pending()) == min(most_rows, len(cluster.scheduler.assembly.scheduler.cache.unassigned))
            for key, row in fresh.pending().items():
                stale = ("id", "attempts", "cause", "queue")  # are read again every few times
                assert {k: v for k, v in row.items() if k not in stale} == {
                    k: v for k, v in reader.pending()[key].items() if k not in stale
                }
            assert reader.summary == snapshot(state).summary
        for _ in range(5):
            if delta := refresh(state):
                reader.take_delta(delta)
        fresh_state = state_of(cluster)
        refresh(fresh_state)
        for key, row in snapshot(fresh_state).pending().items():
            assert {k: v for k, v in row.items() if k != "id"} == {
                k: v for k, v in reader.pending()[key].items() if k != "id"
            }


def offered(nodes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Without the devices that a node has not: a stream names those of nodes that are gone, too."""
    return {name: {key: value for key, value in row.items() if value is not None} for name, row in nodes.items()}


async def change(cluster: VirtualCluster, random: Random, objects: dict[str, Any], step: int) -> None:
    match random.randrange(7):
        case 0:
            name = f"node-{random.randrange(8)}-of-test"
            if name in objects:
                await cluster.delete(objects.pop(name))
            else:
                devices = {"example.com/gpu": 2} if random.random() < 0.3 else {}
                labels = {ZONE: f"zone-{random.randrange(3)}"}
                objects[name] = await cluster.create(node(name, labels=labels, allocatable=devices))
        case 1:
            name = f"pod-{random.randrange(12)}"
            if name in objects:
                await cluster.delete(objects.pop(name), grace_seconds=0)
        case 6:
            name = f"slice-of-node-{random.randrange(8)}"
            if name in objects:
                await cluster.delete(objects.pop(name))
            else:
                node_name = f"{name.removeprefix('slice-of-')}-of-test"
                objects[name] = await cluster.create(
                    resource_slice(node_name, device(), driver=f"d-{random.randrange(3)}")
                )
        case 2:
            names = [name for name in objects if name.startswith("node-")]
            if names:
                name = random.choice(names)
                objects[name] = await cluster.patch(objects[name], {"spec": {"unschedulable": random.random() < 0.5}})
        case _:
            name = f"pod-{random.randrange(12)}"
            if name not in objects:
                size, priority = random.choice(["100m", "3", "50"]), random.randrange(3)
                objects[name] = await cluster.create(pod(name, cpu=size, priority=priority))
