import pytest
import trio
from simulated_workloads import Cluster
from trio.testing import MockClock

from trio_sched.simulator.controllers.nodes.eviction_rates import EvictionRates, zone_of

ZONE = "topology.kubernetes.io/zone"


async def say(cluster: Cluster, name: str, ready: str) -> None:
    node = await cluster.get("nodes", name)
    node["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    await cluster("PUT", cluster.path("nodes", f"{name}/status"), node)


async def evicted(cluster: Cluster) -> list[str]:
    """The nodes whose pods are evicted."""
    return [
        node["metadata"]["name"]
        for node in cluster.stored("nodes")
        if any(one["effect"] == "NoExecute" for one in node["spec"].get("taints") or ())
    ]


async def test_lost_nodes_are_evicted_one_after_the_other(cluster: Cluster, autojump_clock: MockClock) -> None:
    for name in ("n1", "n2"):
        await say(cluster, name, "Unknown")
    await trio.sleep(1)
    assert await evicted(cluster) == ["n1"]
    await trio.sleep(8)
    assert await evicted(cluster) == ["n1"]
    await trio.sleep(2)
    assert await evicted(cluster) == ["n1", "n2"]


async def test_one_that_is_back_in_time_is_not_evicted(cluster: Cluster, autojump_clock: MockClock) -> None:
    for name in ("n1", "n2"):
        await say(cluster, name, "False")
    await trio.sleep(5)
    await say(cluster, "n2", "True")
    await trio.sleep(20)
    assert await evicted(cluster) == ["n1"]


async def test_nothing_is_evicted_when_no_node_is_ready(cluster: Cluster, autojump_clock: MockClock) -> None:
    await say(cluster, "n1", "False")
    await trio.sleep(1)
    assert await evicted(cluster) == ["n1"]
    for name in ("n2", "n3"):
        await say(cluster, name, "False")
    await trio.sleep(60)
    assert await evicted(cluster) == []
    await say(cluster, "n3", "True")
    await trio.sleep(5)
    assert await evicted(cluster) == []
    await trio.sleep(6)
    assert len(await evicted(cluster)) == 1
    await trio.sleep(10)
    assert await evicted(cluster) == ["n1", "n2"]


async def test_a_node_that_comes_not_ready_is_tainted(cluster: Cluster, autojump_clock: MockClock) -> None:
    lost = {"metadata": {"name": "n4"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    await cluster("POST", cluster.path("nodes"), lost)
    await trio.sleep(1)
    assert await evicted(cluster) == ["n4"]


def nodes(zone: str, ready: int, lost: int) -> list[dict[str, dict[str, object]]]:
    return [
        {"metadata": {"labels": {ZONE: zone}}, "status": {"conditions": [{"type": "Ready", "status": status}]}}
        for status in ["True"] * ready + ["Unknown"] * lost
    ]


@pytest.mark.parametrize(
    ("ready", "lost", "seconds"),
    [(1, 2, 10), (2, 3, None), (3, 3, 10), (0, 3, 10), (20, 31, 100), (23, 27, 10), (22, 28, None)],
)
def test_the_more_of_a_zone_are_lost_the_slower(ready: int, lost: int, seconds: float | None) -> None:
    rates = EvictionRates()
    rates.take(("", "a"), 0.0)  # a bucket that is empty stays so at the new rate
    rates.update([*nodes("a", ready, lost), *nodes("b", 1, 0)], 0.0)
    assert rates.wait(("", "a"), 0.0) == seconds
    assert rates.wait(("", "b"), 0.0) == 0.0


def test_nodes_can_be_left_out() -> None:
    rates = EvictionRates()
    (node,) = nodes("a", 0, 1)
    node["metadata"]["labels"] = {"node.kubernetes.io/exclude-disruption": ""}
    rates.update([node], 0.0)
    assert not rates.stopped


def test_zones_are_told_apart_by_old_labels_as_well() -> None:
    labels = {"failure-domain.beta.kubernetes.io/zone": "old", ZONE: "new", "topology.kubernetes.io/region": "r"}
    assert zone_of({"metadata": {"labels": labels}}) == ("r", "old")
    assert zone_of({"metadata": {}}) == ("", "")
