from typing import Any

import pytest
import trio
from simulated_workloads import SELECTOR, Cluster, condition, template
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, Controllers, KubeletPace, populate, run_kubelets, trio_clock


async def deploy(cluster: Cluster, replicas: int = 4, image: str = "app:1", **spec: Any) -> None:
    await cluster.make("deployments", replicas=replicas, selector=SELECTOR, template=template(image), **spec)
    await trio.sleep(10)


def sizes(cluster: Cluster) -> dict[str, int]:
    """Image → size of the ReplicaSet of that image."""
    return {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: one["spec"]["replicas"]
        for one in cluster.stored("replicasets.apps")
    }


async def test_a_deployment_makes_a_replica_set(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster)
    (made,) = cluster.stored("replicasets.apps")
    digest = made["metadata"]["labels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"app-{digest}"
    assert made["spec"]["selector"] == {"matchLabels": {"app": "app", "pod-template-hash": digest}}
    assert all(pod["metadata"]["labels"]["pod-template-hash"] == digest for pod in cluster.stored("pods"))
    assert all(pod["metadata"]["name"].startswith(f"app-{digest}-") for pod in cluster.stored("pods"))
    deployment = await cluster.get("deployments")
    status = deployment["status"]
    assert deployment["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 4,
        "updatedReplicas": 4,
        "readyReplicas": 4,
        "availableReplicas": 4,
        "terminatingReplicas": 0,
    }
    assert condition(status, "Available") == ("True", "MinimumReplicasAvailable")
    assert condition(status, "Progressing") == ("True", "NewReplicaSetAvailable")


@pytest.mark.parametrize(("surge", "unavailable"), [("25%", "25%"), (2, 0), (0, 1), (0, "50%")])
async def test_a_rollout_keeps_its_limits(
    cluster: Cluster, autojump_clock: MockClock, surge: int | str, unavailable: int | str
) -> None:
    most = {"25%": 5, 2: 6, 0: 4}[surge]
    least = {"25%": 3, 0: 4, 1: 3, "50%": 2}[unavailable]
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    await deploy(cluster, strategy=update)
    await cluster.patch("deployments", "app", {"spec": {"template": template("app:2")}})
    for _moment in range(200):
        await trio.sleep(0.1)
        phases = cluster.phases()
        assert phases["Running"] + phases["Pending"] <= most
        assert phases["Running"] >= least
    assert cluster.images() == {"app:2": 4}
    assert sizes(cluster) == {"app:1": 0, "app:2": 4}
    status = await cluster.status("deployments")
    assert (status["observedGeneration"], status["updatedReplicas"]) == (2, 4)
    assert condition(status, "Progressing") == ("True", "NewReplicaSetAvailable")


async def test_recreate_waits_for_the_old_pods(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster, strategy={"type": "Recreate"})
    await cluster.patch("deployments", "app", {"spec": {"template": template("app:2")}})
    for _moment in range(100):
        await trio.sleep(0.1)
        images = {pod["spec"]["containers"][0]["image"] for pod in cluster.stored("pods")}
        assert len(images) < 2
    assert cluster.images() == {"app:2": 4}


async def test_a_rollback_takes_the_old_replica_set_again(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster)
    for image in ("app:2", "app:1"):
        await cluster.patch("deployments", "app", {"spec": {"template": template(image)}})
        await trio.sleep(30)
    assert sizes(cluster) == {"app:1": 4, "app:2": 0}
    (first,) = [one for one in cluster.stored("replicasets.apps") if one["spec"]["replicas"]]
    assert first["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    assert first["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"
    assert (await cluster.get("deployments"))["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


async def test_the_history_is_limited(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster, revisionHistoryLimit=1)
    for number in range(2, 5):
        await cluster.patch("deployments", "app", {"spec": {"template": template(f"app:{number}")}})
        await trio.sleep(30)
    assert sizes(cluster) == {"app:3": 0, "app:4": 4}


async def test_scaling_in_a_stuck_rollout_is_proportional(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster, replicas=10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
    stuck = template("app:2", schedulingGates=[{"name": "example.com/never"}])
    await cluster.patch("deployments", "app", {"spec": {"template": stuck}})
    await trio.sleep(10)
    assert sizes(cluster) == {"app:1": 8, "app:2": 5}
    await cluster.patch("deployments", "app", {"spec": {"replicas": 15}})
    await trio.sleep(10)
    assert sizes(cluster) == {"app:1": 11, "app:2": 7}


async def test_a_rollout_without_progress_has_failed(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster, progressDeadlineSeconds=60)
    stuck = template("app:2", schedulingGates=[{"name": "example.com/never"}])
    await cluster.patch("deployments", "app", {"spec": {"template": stuck}})
    await trio.sleep(50)
    assert condition(await cluster.status("deployments"), "Progressing") == ("True", "ReplicaSetUpdated")
    await trio.sleep(20)
    assert condition(await cluster.status("deployments"), "Progressing") == ("False", "ProgressDeadlineExceeded")


async def test_a_paused_deployment_is_scaled_only(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster)
    change = {"paused": True, "replicas": 2, "template": template("app:2")}
    await cluster.patch("deployments", "app", {"spec": change})
    await trio.sleep(10)
    assert sizes(cluster) == {"app:1": 2}
    assert condition(await cluster.status("deployments"), "Progressing") == ("Unknown", "DeploymentPaused")
    await cluster.patch("deployments", "app", {"spec": {"paused": False}})
    await trio.sleep(20)
    assert sizes(cluster) == {"app:1": 0, "app:2": 2}


async def test_scaling_through_the_subresource(cluster: Cluster, autojump_clock: MockClock) -> None:
    await deploy(cluster)
    path = cluster.path("deployments", "app/scale")
    scale = await cluster("GET", path)
    assert scale["status"] == {"replicas": 4, "selector": "app=app"}
    await cluster("PUT", path, {**scale, "spec": {"replicas": 1}})
    await trio.sleep(10)
    assert cluster.phases() == {"Running": 1}
    assert condition(await cluster.status("deployments"), "Available")[0] == "True"


@pytest.mark.parametrize("left_out", ["", "replicasets.apps"])
async def test_a_dump_is_as_it_was(
    cluster: Cluster, nursery: trio.Nursery, autojump_clock: MockClock, left_out: str
) -> None:
    await deploy(cluster)
    await cluster.patch("deployments", "app", {"spec": {"template": template("app:2")}})
    await trio.sleep(30)
    kinds: Json = {
        "nodes": ("v1", "Node"),
        "deployments.apps": ("apps/v1", "Deployment"),
        "replicasets.apps": ("apps/v1", "ReplicaSet"),
        "pods": ("v1", "Pod"),
    }
    dump = [
        {"apiVersion": version, "kind": kind, **fields}
        for plural, (version, kind) in kinds.items()
        if plural != left_out
        for fields in cluster.stored(plural)
    ]
    other = Cluster(ApiServer(now=trio_clock()))
    populate(other.server, dump)
    await nursery.start(run_kubelets, other.server, KubeletPace())
    await nursery.start(Controllers(other.server).run)
    await trio.sleep(60)
    assert other.names() == cluster.names()
    assert sizes(other) == ({"app:2": 4} if left_out else {"app:1": 0, "app:2": 4})
