from typing import Any

import pytest
import trio
from simulated_workloads import SELECTOR, Cluster, condition, template
from trio.testing import MockClock

from trio_sched.documents.json_values import Json


async def deploy(cluster: Cluster, replicas: int = 4, **spec: Any) -> None:
    await cluster.make("deployments", replicas=replicas, selector=SELECTOR, template=template(**spec))
    await trio.sleep(10)


async def budget(cluster: Cluster, **spec: Any) -> Json:
    await cluster.make("poddisruptionbudgets", "pdb", selector=SELECTOR, **spec)
    await trio.sleep(1)
    return await cluster.status("poddisruptionbudgets", "pdb")


async def evict(cluster: Cluster, name: str, expect: int = 201) -> Json:
    return await cluster("POST", cluster.path("pods", f"{name}/eviction"), {"metadata": {"name": name}}, expect=expect)


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"minAvailable": 3}, 3, 1),
        ({"minAvailable": "60%"}, 3, 1),
        ({"maxUnavailable": 1}, 3, 1),
        ({"maxUnavailable": "30%"}, 2, 2),
        ({"minAvailable": 9}, 9, 0),
    ],
)
async def test_what_a_budget_allows(
    cluster: Cluster, autojump_clock: MockClock, spec: Json, desired: int, allowed: int
) -> None:
    await deploy(cluster)
    status = await budget(cluster, **spec)
    reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    assert condition(status, "DisruptionAllowed") == reason
    counts = {name: value for name, value in status.items() if name != "conditions"}
    assert counts == {
        "observedGeneration": 1,
        "disruptionsAllowed": allowed,
        "currentHealthy": 4,
        "desiredHealthy": desired,
        "expectedPods": 4,
    }


async def test_evictions_keep_to_the_budget(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster)
    await budget(cluster, maxUnavailable=1)
    first, second, *_others = cluster.names()
    await evict(cluster, first)
    refused = await evict(cluster, second, expect=429)
    assert refused["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    cause = "The disruption budget pdb does not allow evicting pods currently"
    assert refused["details"]["causes"][0]["message"] == cause
    await trio.sleep(10)
    assert cluster.phases() == {"Running": 4}
    await evict(cluster, second)


@pytest.mark.parametrize(("policy", "expect"), [(None, 429), ("AlwaysAllow", 201)])
async def test_evictions_of_pods_that_are_not_ready(
    cluster: Cluster, autojump_clock: MockClock, policy: str | None, expect: int
) -> None:
    await deploy(cluster, replicas=2)
    await budget(cluster, minAvailable=2, **({"unhealthyPodEvictionPolicy": policy} if policy else {}))
    pod = await cluster.pod(cluster.names()[0])
    for one in pod["status"]["conditions"]:
        if one["type"] == "Ready":
            one["status"] = "False"
    await cluster("PUT", cluster.path("pods", f"{pod['metadata']['name']}/status"), pod)
    await trio.sleep(1)
    await evict(cluster, pod["metadata"]["name"], expect=expect)


async def test_a_budget_for_jobs_cannot_be_a_share(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("jobs", template=template(restartPolicy="Never"))
    await trio.sleep(5)
    status = await budget(cluster, maxUnavailable=1)
    assert condition(status, "DisruptionAllowed") == ("False", "SyncFailed")


async def taint(cluster: Cluster, node: str, effect: str | None = "NoExecute") -> None:
    taints = [{"key": "example.com/broken", "effect": effect}] if effect else None
    await cluster.patch("nodes", node, {"spec": {"taints": taints}})


@pytest.mark.parametrize(
    ("toleration", "stays"),
    [
        (None, 0),
        ({"key": "example.com/broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 50}, 50),
        ({"key": "example.com/broken", "operator": "Exists"}, None),
        ({"key": "example.com/other", "operator": "Exists"}, 0),
    ],
)
async def test_taints_evict_pods(
    cluster: Cluster, autojump_clock: MockClock, toleration: Json | None, stays: int | None
) -> None:
    await cluster.create_pod("p", nodeName="n1", tolerations=[toleration] if toleration else [])
    await cluster.create_pod("other", nodeName="n2")
    await trio.sleep(5)
    await taint(cluster, "n1")
    await trio.sleep(max((stays or 0) - 2, 0) if stays != 0 else 0)
    assert cluster.names() == ["other", "p"]
    await trio.sleep(5)
    assert cluster.names() == (["other", "p"] if stays is None else ["other"])


async def test_a_taint_that_goes_in_time_evicts_nobody(cluster: Cluster, autojump_clock: MockClock) -> None:
    toleration = {"key": "example.com/broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 50}
    await cluster.create_pod("p", nodeName="n1", tolerations=[toleration])
    await taint(cluster, "n1")
    await trio.sleep(30)
    await taint(cluster, "n1", None)
    await trio.sleep(100)
    assert cluster.names() == ["p"]
    await taint(cluster, "n1")
    await trio.sleep(45)
    assert cluster.names() == ["p"]
    await trio.sleep(10)
    assert cluster.names() == []


@pytest.mark.parametrize(("ready", "key"), [("False", "not-ready"), ("Unknown", "unreachable")])
async def test_a_node_that_is_not_ready_loses_its_pods_in_time(
    cluster: Cluster, autojump_clock: MockClock, ready: str, key: str
) -> None:
    await deploy(cluster, replicas=3)
    node = await cluster.get("nodes", "n1")
    node["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    await cluster("PUT", cluster.path("nodes", "n1/status"), node)
    await trio.sleep(290)
    taints = (await cluster.get("nodes", "n1"))["spec"]["taints"]
    assert {(one["key"], one["effect"]) for one in taints} == {
        (f"node.kubernetes.io/{key}", "NoSchedule"),
        (f"node.kubernetes.io/{key}", "NoExecute"),
    }
    before = set(cluster.names())
    assert cluster.phases() == {"Running": 3}
    await trio.sleep(30)
    if ready == "Unknown":  # no kubelet ends the pod
        assert cluster.phases()["Terminating"] == 1
    else:
        assert len(before & set(cluster.names())) == 2


async def test_a_cordoned_node_is_tainted(cluster: Cluster, autojump_clock: MockClock) -> None:
    for cordoned in (True, False):
        await cluster.patch("nodes", "n1", {"spec": {"unschedulable": cordoned}})
        await trio.sleep(1)
        taints = (await cluster.get("nodes", "n1"))["spec"].get("taints", [])
        assert [one["key"] for one in taints] == (["node.kubernetes.io/unschedulable"] if cordoned else [])
