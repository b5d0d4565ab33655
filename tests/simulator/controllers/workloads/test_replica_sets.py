from typing import Any

import pytest
import trio
from simulated_workloads import SELECTOR, Cluster, condition, template
from trio.testing import MockClock

from trio_sched.simulator.controllers.workloads.pod_ranking import first_to_delete
from trio_sched.simulator.storage.object_store import StoredObject


async def test_a_replica_set_has_as_many_pods_as_it_asks_for(cluster: Cluster, autojump_clock: MockClock) -> None:
    made = await cluster.make("replicasets", replicas=3, selector=SELECTOR, template=template(hostNetwork=True))
    await trio.sleep(5)
    assert cluster.phases() == {"Running": 3}
    pod = cluster.stored("pods")[0]
    assert pod["metadata"]["generateName"] == "app-"
    assert pod["metadata"]["labels"] == {"app": "app"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": made["metadata"]["uid"]}
    assert pod["metadata"]["ownerReferences"] == [{**owner, "controller": True, "blockOwnerDeletion": True}]
    assert pod["spec"]["hostNetwork"]
    assert await cluster.status("replicasets") == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
    }


async def test_lost_and_failed_pods_are_replaced(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("replicasets", replicas=2, selector=SELECTOR, template=template())
    await trio.sleep(5)
    lost = cluster.names()[0]
    await cluster.remove("pods", lost)
    await trio.sleep(0.5)
    assert cluster.phases() == {"Running": 1, "Terminating": 1, "Pending": 1}
    assert (await cluster.status("replicasets"))["terminatingReplicas"] == 1
    await trio.sleep(5)
    assert cluster.phases() == {"Running": 2}
    assert lost not in cluster.names()


async def test_a_replication_controller_works_alike(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("replicationcontrollers", replicas=2, template=template())
    await trio.sleep(5)
    assert cluster.phases() == {"Running": 2}
    await cluster.patch("replicationcontrollers", "app", {"spec": {"replicas": 0}})
    await trio.sleep(5)
    assert cluster.phases() == {}
    assert await cluster.status("replicationcontrollers") == {"replicas": 0, "observedGeneration": 2}


async def test_orphans_are_adopted_and_others_released(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.create_pod("orphan", labels={"app": "app"})
    await cluster.create_pod("other", labels={"app": "other"})
    await cluster.make("replicasets", replicas=2, selector=SELECTOR, template=template())
    await trio.sleep(5)
    assert len(cluster.names()) == 3
    assert (await cluster.pod("orphan"))["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    await cluster.patch("pods", "orphan", {"metadata": {"labels": {"app": "debugged"}}})
    await trio.sleep(5)
    assert "ownerReferences" not in (await cluster.pod("orphan"))["metadata"]
    assert len(cluster.names()) == 4
    await cluster.patch("pods", "other", {"metadata": {"labels": {"app": "app"}}})
    await trio.sleep(5)
    assert len(cluster.names()) == 3


async def test_pods_count_as_available_in_time(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("replicasets", replicas=1, selector=SELECTOR, template=template(), minReadySeconds=30)
    await trio.sleep(20)
    status = await cluster.status("replicasets")
    assert (status["readyReplicas"], status.get("availableReplicas")) == (1, None)
    await trio.sleep(15)
    assert (await cluster.status("replicasets"))["availableReplicas"] == 1


async def test_what_is_refused_is_said_and_tried_again(cluster: Cluster, autojump_clock: MockClock) -> None:
    priority = template(priorityClassName="high")
    await cluster.make("replicasets", replicas=2, selector=SELECTOR, template=priority)
    await trio.sleep(5)
    status = await cluster.status("replicasets")
    assert condition(status, "ReplicaFailure") == ("True", "FailedCreate")
    assert "no PriorityClass with name high was found" in status["conditions"][0]["message"]
    body = {"metadata": {"name": "high"}, "value": 7}
    await cluster("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    await trio.sleep(60)
    assert cluster.phases() == {"Running": 2}
    assert "conditions" not in await cluster.status("replicasets")


def pod(name: str, node: str = "n", *, ready: str = "", phase: str = "Running", **more: Any) -> StoredObject:
    metadata = {"name": name, "uid": name, "creationTimestamp": more.get("created"), "annotations": {}}
    if "cost" in more:
        metadata["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": more["cost"]}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    restarts = [{"restartCount": more.get("restarts", 0)}]
    status = {"phase": phase, "conditions": conditions, "containerStatuses": restarts}
    return StoredObject(f"default/{name}", 1, {"metadata": metadata, "spec": {"nodeName": node}, "status": status})


LONG, SHORT = "2026-01-01T00:00:00Z", "2026-01-01T23:59:00Z"
NOW = 1767312000.0  # 2026-01-02


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("b", "", phase="Pending"), pod("a")),
        (pod("b", phase="Pending"), pod("a")),
        (pod("b"), pod("a", ready=LONG)),
        (pod("b", ready=LONG, cost="-5"), pod("a", ready=SHORT)),
        (pod("b", "crowded", ready=LONG), pod("a", ready=SHORT)),
        (pod("b", ready=SHORT), pod("a", ready=LONG)),
        (pod("a", ready="2026-01-01T00:00:01Z"), pod("b", ready="2026-01-01T00:00:02Z")),
        (pod("b", restarts=3), pod("a")),
        (pod("b", created=SHORT), pod("a", created=LONG)),
    ],
    ids=["unbound", "pending", "not ready", "cheap", "crowded", "younger", "about as old", "restarted", "newer"],
)
def test_which_pod_goes_first(first: StoredObject, second: StoredObject) -> None:
    related = [first, second, pod("c", "crowded"), pod("d", "crowded")]
    for pods in ([first, second], [second, first]):
        assert first_to_delete(pods, related, NOW)[0] is first
