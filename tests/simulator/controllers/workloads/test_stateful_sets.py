from typing import Any

import pytest
import trio
from simulated_workloads import SELECTOR, Cluster, template
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, Controllers, populate, run_kubelets, trio_clock

STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


async def make(cluster: Cluster, **spec: Any) -> None:
    spec = {"replicas": 3, "selector": SELECTOR, "template": template(), "serviceName": "db"} | spec
    await cluster.make("statefulsets", "db", **spec)


async def test_pods_come_one_after_the_other(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster)
    seen = []
    for _moment in range(50):
        await trio.sleep(0.1)
        if cluster.phases()["Pending"] > 1:
            pytest.fail("two pods are started at once")
        if not seen or cluster.names() != seen[-1]:
            seen.append(cluster.names())
    assert seen[-3:] == [["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]]
    pod = await cluster.pod("db-1")
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "db")
    status = await cluster.status("statefulsets", "db")
    revision = status["updateRevision"]
    assert pod["metadata"]["labels"]["controller-revision-hash"] == revision
    assert status == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "availableReplicas": 3,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }


async def test_pods_may_come_and_go_at_once(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, podManagementPolicy="Parallel", ordinals={"start": 5})
    await trio.sleep(0.5)
    assert cluster.names() == ["db-5", "db-6", "db-7"]
    await trio.sleep(5)
    await cluster.patch("statefulsets", "db", {"spec": {"replicas": 0}})
    await trio.sleep(0.5)
    assert cluster.phases() == {"Terminating": 3}


async def test_scaling_down_begins_with_the_last(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster)
    await trio.sleep(10)
    await cluster.patch("statefulsets", "db", {"spec": {"replicas": 1}})
    await trio.sleep(0.5)
    assert cluster.phases() == {"Running": 2, "Terminating": 1}
    await trio.sleep(5)
    assert cluster.names() == ["db-0"]


async def test_a_lost_pod_comes_back_under_its_name(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster)
    await trio.sleep(10)
    uid = (await cluster.pod("db-1"))["metadata"]["uid"]
    await cluster.remove("pods", "db-1")
    await trio.sleep(10)
    assert (await cluster.pod("db-1"))["metadata"]["uid"] != uid
    assert cluster.phases() == {"Running": 3}


@pytest.mark.parametrize(("partition", "updated"), [(0, ["db-0", "db-1", "db-2"]), (2, ["db-2"]), (7, [])])
async def test_an_update_goes_from_the_last_to_the_partition(
    cluster: Cluster, autojump_clock: MockClock, partition: int, updated: list[str]
) -> None:
    await make(cluster, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": partition}})
    await trio.sleep(10)
    await cluster.patch("statefulsets", "db", {"spec": {"template": template("app:2")}})
    for _moment in range(300):
        await trio.sleep(0.1)
        assert cluster.phases()["Running"] >= 2
    new = [p["metadata"]["name"] for p in cluster.stored("pods") if p["spec"]["containers"][0]["image"] == "app:2"]
    assert new == updated
    status = await cluster.status("statefulsets", "db")
    assert status.get("updatedReplicas", 0) == len(updated)
    assert (status["currentRevision"] == status["updateRevision"]) is (len(updated) == 3)
    if partition:
        await cluster.remove("pods", "db-0")
        await trio.sleep(10)
        assert (await cluster.pod("db-0"))["spec"]["containers"][0]["image"] == "app:1"


async def test_pods_are_replaced_only_when_they_are_deleted(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, updateStrategy={"type": "OnDelete"})
    await trio.sleep(10)
    await cluster.patch("statefulsets", "db", {"spec": {"template": template("app:2")}})
    await trio.sleep(10)
    assert cluster.images() == {"app:1": 3}
    await cluster.remove("pods", "db-0")
    await trio.sleep(10)
    assert cluster.images() == {"app:1": 2, "app:2": 1}


async def test_every_pod_has_claims_of_its_own(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, replicas=2, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": STORAGE}])
    await trio.sleep(10)
    assert cluster.names("persistentvolumeclaims") == ["data-db-0", "data-db-1"]
    pod = await cluster.pod("db-1")
    assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]
    assert cluster.stored("persistentvolumeclaims")[0]["metadata"]["labels"] == {"app": "app"}
    await cluster.patch("statefulsets", "db", {"spec": {"replicas": 1}})
    await trio.sleep(10)
    assert cluster.names("persistentvolumeclaims") == ["data-db-0", "data-db-1"]


async def test_the_history_is_kept(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, replicas=1, revisionHistoryLimit=1)
    for image in ("app:2", "app:3", "app:2"):
        await trio.sleep(10)
        await cluster.patch("statefulsets", "db", {"spec": {"template": template(image)}})
    await trio.sleep(10)
    history = sorted(cluster.stored("controllerrevisions.apps"), key=lambda one: one["revision"])
    images = [one["data"]["spec"]["template"]["spec"]["containers"][0]["image"] for one in history]
    assert (images, [one["revision"] for one in history]) == (["app:3", "app:2"], [3, 4])


async def test_a_dump_without_revisions_is_as_it_was(
    cluster: Cluster, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    await make(cluster)
    await trio.sleep(10)
    kinds: Json = {"nodes": ("v1", "Node"), "statefulsets.apps": ("apps/v1", "StatefulSet"), "pods": ("v1", "Pod")}
    dump = [
        {"apiVersion": version, "kind": kind, **fields}
        for plural, (version, kind) in kinds.items()
        for fields in cluster.stored(plural)
    ]
    for one in dump:
        for labels in (one["metadata"].get("labels") or {}, one.get("status", {})):
            for name in ("controller-revision-hash", "currentRevision", "updateRevision"):
                if name in labels:
                    labels[name] = "db-7c9f"
    other = Cluster(ApiServer(now=trio_clock()))
    populate(other.server, dump)
    await nursery.start(run_kubelets, other.server)
    await nursery.start(Controllers(other.server).run)
    await trio.sleep(60)
    uids = [[pod["metadata"]["uid"] for pod in one.stored("pods")] for one in (cluster, other)]
    assert uids[0] == uids[1]
