import pytest
import trio
from simulated_workloads import SELECTOR, Cluster, template
from trio.testing import MockClock

from trio_sched.simulator import ApiServer, trio_clock
from trio_sched.simulator.controllers.garbage import GarbageCollector

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


async def deploy(cluster: Cluster) -> None:
    await cluster.make("deployments", replicas=2, selector=SELECTOR, template=template())
    await trio.sleep(10)


@pytest.mark.parametrize("policy", [None, "Background", "Foreground"])
async def test_dependents_go_with_their_owner(cluster: Cluster, autojump_clock: MockClock, policy: str | None) -> None:
    await deploy(cluster)
    await cluster.remove("deployments", "app", **({"propagationPolicy": policy} if policy else {}))
    assert cluster.names("deployments.apps") == (["app"] if policy == "Foreground" else [])
    await trio.sleep(10)
    assert [cluster.names(kind) for kind in ("deployments.apps", "replicasets.apps", "pods")] == [[], [], []]


async def test_foreground_waits_for_the_pods(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster)
    await cluster.remove("deployments", "app", propagationPolicy="Foreground")
    await trio.sleep(0.8)
    assert cluster.phases() == {"Terminating": 2}
    assert (cluster.names("deployments.apps"), len(cluster.names("replicasets.apps"))) == (["app"], 1)


async def test_orphans_stay(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster)
    names = cluster.names()
    await cluster.remove("deployments", "app", propagationPolicy="Orphan")
    await trio.sleep(10)
    assert (cluster.names("deployments.apps"), cluster.names()) == ([], names)
    (left,) = cluster.stored("replicasets.apps")
    assert "ownerReferences" not in left["metadata"]
    await cluster.remove("pods", names[0])
    await trio.sleep(10)
    assert cluster.phases() == {"Running": 2}


async def test_another_owner_keeps_a_dependent(cluster: Cluster, autojump_clock: MockClock) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    owners = [await cluster("POST", path, {"metadata": {"name": name}}) for name in ("a", "b")]
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]}
        for one in owners
    ]
    await cluster("POST", path, {"metadata": {"name": "c", "ownerReferences": references}})
    await cluster("DELETE", f"{path}/a")
    await trio.sleep(1)
    assert (await cluster("GET", f"{path}/c"))["metadata"]["ownerReferences"] == references[1:]
    await cluster("DELETE", f"{path}/b")
    await trio.sleep(1)
    await cluster("GET", f"{path}/c", expect=404)


async def test_an_owner_that_was_never_there_is_no_reason(cluster: Cluster, autojump_clock: MockClock) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "1-2-3", "controller": True}
    body = {"metadata": {"name": "p", "ownerReferences": [owner]}, "spec": template()["spec"]}
    await cluster("POST", cluster.path("pods"), body)
    await trio.sleep(100)
    assert cluster.names() == ["p"]


async def test_an_unknown_policy_is_refused(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster)
    body = {"propagationPolicy": "Sideways"}
    refused = await cluster("DELETE", cluster.path("deployments", "app"), body, expect=422)
    assert "propagationPolicy: Unsupported value" in refused["message"]


async def test_a_namespace_ends_with_its_workloads(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    await cluster("POST", "/apis/batch/v1/namespaces/team/jobs", {"metadata": {"name": "j"}, "spec": job})
    deployment = {"replicas": 2, "selector": SELECTOR, "template": template()}
    await cluster("POST", "/apis/apps/v1/namespaces/team/deployments", {"metadata": {"name": "d"}, "spec": deployment})
    await trio.sleep(5)
    assert cluster.phases() == {"Running": 3}
    await cluster("DELETE", "/api/v1/namespaces/team")
    await trio.sleep(10)
    assert (cluster.names(), "team" in cluster.names("namespaces")) == ([], False)


async def test_pods_of_a_lost_node_are_replaced(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster)
    node = cluster.stored("pods")[0]["spec"]["nodeName"]
    await cluster("DELETE", f"/api/v1/nodes/{node}")
    await trio.sleep(30)
    assert cluster.phases() == {"Running": 2}
    await trio.sleep(60)
    assert cluster.phases() == {"Running": 2}
    assert all(pod["spec"]["nodeName"] != node for pod in cluster.stored("pods"))


async def test_a_collector_that_has_ended_listens_no_more(autojump_clock: MockClock) -> None:
    server = ApiServer(now=trio_clock())
    listened = {name: len(server.store.collection(name).listeners) for name in ("pods", "jobs.batch", DEFINITIONS)}
    async with trio.open_nursery() as nursery:
        await nursery.start(GarbageCollector(server).run)
        assert all(len(server.store.collection(name).listeners) > count for name, count in listened.items())
        nursery.cancel_scope.cancel()
    assert listened == {name: len(server.store.collection(name).listeners) for name in listened}
