from typing import Any

import pytest
import trio
from simulated_workloads import SELECTOR, Cluster, condition, template
from trio.testing import MockClock

from trio_sched.documents.json_values import Json

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


async def say_ready(cluster: Cluster, name: str, status: str) -> None:
    body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    await cluster.patch("nodes", f"{name}/status", body)


async def pod_on(cluster: Cluster, name: str, node: str, **spec: Any) -> None:
    await cluster.create_pod(name, nodeName=node, **spec)
    await trio.sleep(3)


def ready_of(status: Json) -> str:
    return condition(status, "Ready")[0]


def told_of(cluster: Cluster, reason: str) -> list[tuple[str, str]]:
    return sorted(
        (one["involvedObject"]["name"], one["message"]) for one in cluster.stored("events") if one["reason"] == reason
    )


async def test_pods_of_a_node_that_becomes_unreachable_are_not_ready(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    await pod_on(cluster, "p", "n1")
    await pod_on(cluster, "other", "n2")
    before = await cluster.status("pods", "p")
    await say_ready(cluster, "n1", "Unknown")
    await trio.sleep(1)
    after = await cluster.status("pods", "p")
    assert ready_of(after) == "False"
    assert {**after, "conditions": None} == {**before, "conditions": None}
    assert condition(after, "ContainersReady") == ("True", "")
    assert ready_of(await cluster.status("pods", "other")) == "True"
    assert told_of(cluster, "NodeNotReady") == [
        ("n1", "Node n1 status is now: NodeNotReady"),
        ("p", "Node is not ready"),
    ]
    await say_ready(cluster, "n1", "True")
    await trio.sleep(1)
    assert ready_of(await cluster.status("pods", "p")) == "True"


async def test_a_kubelet_that_is_not_ready_answers_for_its_pods(cluster: Cluster, autojump_clock: MockClock) -> None:
    await pod_on(cluster, "p", "n1")
    for status in ("False", "Unknown"):  # of a node that was not ready before, its pods are left as they are
        await say_ready(cluster, "n1", status)
        await trio.sleep(1)
        assert ready_of(await cluster.status("pods", "p")) == "True"
    assert told_of(cluster, "NodeNotReady") == []


async def test_a_stateful_set_waits_for_the_pod_of_a_lost_node(cluster: Cluster, autojump_clock: MockClock) -> None:
    soon = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    await cluster.make("statefulsets", serviceName="s", selector=SELECTOR, template=template(tolerations=soon))
    await trio.sleep(5)
    (pod,) = cluster.stored("pods")
    node = pod["spec"]["nodeName"]
    await say_ready(cluster, node, "Unknown")
    await trio.sleep(600)
    assert cluster.phases() == {"Terminating": 1}
    await cluster.remove("pods", "app-0", gracePeriodSeconds=0)
    await trio.sleep(5)
    assert cluster.phases() == {"Running": 1}


@pytest.mark.parametrize("ready", ["False", "Unknown"])
async def test_pods_that_are_deleted_on_a_node_out_of_service_go_without_its_kubelet(
    cluster: Cluster, autojump_clock: MockClock, ready: str
) -> None:
    for name in ("stays", "held"):
        await pod_on(cluster, name, "n1", tolerations=[{"operator": "Exists"}])
    await pod_on(
        cluster, "goes", "n1", tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    )
    await cluster.patch("pods", "held", {"metadata": {"finalizers": ["example.com/held"]}})
    await say_ready(cluster, "n1", ready)
    await cluster.remove("pods", "held", gracePeriodSeconds=1000)
    await cluster.patch("nodes", "n1", {"spec": {"taints": [OUT_OF_SERVICE]}})
    await trio.sleep(60)
    assert cluster.names() == ["held", "stays"]
    held = await cluster.get("pods", "held")
    assert held["status"]["phase"] == "Failed"
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    assert condition(held["status"], "DisruptionTarget") == ("", "")
    await cluster.remove("pods", "stays")
    await trio.sleep(25)
    assert cluster.names() == ["held"]


async def test_a_node_that_is_ready_is_not_out_of_service(cluster: Cluster, autojump_clock: MockClock) -> None:
    await pod_on(cluster, "p", "n1", tolerations=[{"operator": "Exists"}])
    await say_ready(cluster, "n1", "Unknown")
    await cluster.patch("nodes", "n1", {"spec": {"taints": [OUT_OF_SERVICE]}})
    await cluster.patch("pods", "p", {"metadata": {"finalizers": ["example.com/held"]}})
    await cluster.remove("pods", "p")
    await trio.sleep(5)
    await say_ready(cluster, "n1", "True")
    await trio.sleep(0.5)
    assert (await cluster.status("pods", "p"))["phase"] == "Running"


async def test_a_node_that_is_not_ready_gets_back_the_taints_that_somebody_takes_off(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    await say_ready(cluster, "n1", "Unknown")
    await trio.sleep(1)
    await cluster.patch("nodes", "n1", {"spec": {"taints": [OUT_OF_SERVICE]}})
    await trio.sleep(11)
    taints = (await cluster.get("nodes", "n1"))["spec"]["taints"]
    assert [(one["key"].partition("/")[2], one["effect"]) for one in taints] == [
        ("out-of-service", "NoExecute"),
        ("unreachable", "NoSchedule"),
        ("unreachable", "NoExecute"),
    ]


async def test_pods_that_have_ended_or_are_being_deleted_are_evicted_as_well(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    await pod_on(cluster, "ended", "n1", tolerations=[])
    await pod_on(cluster, "held", "n1", tolerations=[])
    await cluster.patch("pods", "ended/status", {"status": {"phase": "Succeeded"}})
    await cluster.patch("pods", "held", {"metadata": {"finalizers": ["example.com/held"]}})
    await cluster.remove("pods", "held")
    await cluster.patch("nodes", "n1", {"spec": {"taints": [{"key": "own", "effect": "NoExecute"}]}})
    await trio.sleep(5)
    assert cluster.names() == ["held"]
    assert condition(await cluster.status("pods", "held"), "DisruptionTarget") == ("True", "DeletionByTaintManager")


async def test_a_pod_that_is_deleted_before_it_has_a_node_fails(cluster: Cluster, autojump_clock: MockClock) -> None:
    for name in ("n1", "n2", "n3"):
        await cluster.patch("nodes", name, {"spec": {"unschedulable": True}})
    await cluster.create_pod("held")
    await cluster.patch("pods", "held", {"metadata": {"finalizers": ["example.com/held"]}})
    await cluster.remove("pods", "held")
    await trio.sleep(19)
    assert (await cluster.status("pods", "held"))["phase"] == "Pending"
    await trio.sleep(2)
    assert (await cluster.status("pods", "held"))["phase"] == "Failed"
