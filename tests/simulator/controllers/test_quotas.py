from typing import Any

import pytest
import trio
from simulated_workloads import SELECTOR, Cluster, condition, template
from trio.testing import MockClock

from trio_sched.documents.json_values import Json


def sized(requests: Json | None = None, limits: Json | None = None, **more: Any) -> Json:
    resources = {name: value for name, value in (("requests", requests), ("limits", limits)) if value}
    return {"containers": [{"name": "main", "image": "app:1", "resources": resources}], **more}


async def test_a_quota_limits_pods(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("resourcequotas", "team", hard={"requests.cpu": "1", "pods": "10"})
    pods = template()
    pods["spec"] |= sized({"cpu": "400m"})
    await cluster.make("replicasets", replicas=3, selector=SELECTOR, template=pods)
    await trio.sleep(5)
    assert cluster.phases() == {"Running": 2}
    assert await cluster.status("resourcequotas", "team") == {
        "hard": {"requests.cpu": "1", "pods": "10"},
        "used": {"requests.cpu": "800m", "pods": "2"},
    }
    status = await cluster.status("replicasets")
    assert condition(status, "ReplicaFailure") == ("True", "FailedCreate")
    why = "exceeded quota: team, requested: requests.cpu=400m, used: requests.cpu=800m, limited: requests.cpu=1"
    assert status["conditions"][0]["message"].endswith(f"is forbidden: {why}")
    await cluster.patch("resourcequotas", "team", {"spec": {"hard": {"requests.cpu": "2"}}})
    await trio.sleep(60)
    assert cluster.phases() == {"Running": 3}


async def test_what_ends_or_is_deleted_is_free_again(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("resourcequotas", "team", hard={"pods": "1", "count/configmaps": "1"})
    await cluster.create_pod("a", annotations={"trio-sched.dev/run-seconds": "10"})
    body = {"metadata": {"name": "b"}, "spec": sized()}
    refused = await cluster("POST", cluster.path("pods"), body, expect=403)
    assert refused["message"] == (
        'pods "b" is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1'
    )
    await trio.sleep(20)
    await cluster("POST", cluster.path("pods"), body)
    await cluster.remove("pods", "b")
    await trio.sleep(5)
    assert (await cluster.status("resourcequotas", "team"))["used"] == {"pods": "0", "count/configmaps": "1"}


async def test_what_is_limited_has_to_be_stated(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("resourcequotas", "team", hard={"limits.memory": "1Gi"})
    body = {"metadata": {"name": "b"}, "spec": sized()}
    refused = await cluster("POST", cluster.path("pods"), body, expect=403)
    assert refused["message"].endswith("failed quota: team: must specify limits.memory for: main")


async def test_a_quota_of_a_scope_counts_only_that(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("resourcequotas", "team", hard={"pods": "0"}, scopes=["BestEffort"])
    await cluster("POST", cluster.path("pods"), {"metadata": {"name": "a"}, "spec": sized({"cpu": "1"})})
    await cluster("POST", cluster.path("pods"), {"metadata": {"name": "b"}, "spec": sized()}, expect=403)


async def test_a_limit_range_gives_defaults(cluster: Cluster, autojump_clock: MockClock) -> None:
    limit = {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "200m", "memory": "1Gi"}}
    await cluster.make("limitranges", "team", limits=[limit])
    pod = await cluster.create_pod("p")
    resources = {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "500m"}}
    assert pod["spec"]["containers"][0]["resources"] == resources
    assert pod["status"]["qosClass"] == "Burstable"
    mark = "LimitRanger plugin set: cpu, memory request for container main; cpu limit for container main"
    assert pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == mark


@pytest.mark.parametrize(
    ("limit", "spec", "why"),
    [
        (
            {"type": "Container", "min": {"memory": "1Gi"}},
            sized({"memory": "1Mi"}),
            "minimum memory usage per Container is 1Gi, but request is 1Mi",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}},
            sized({"cpu": "2"}, {"cpu": "3"}),
            "maximum cpu usage per Container is 1, but limit is 3",
        ),
        (
            {"type": "Pod", "max": {"cpu": "1"}},
            sized({"cpu": "2"}),
            "maximum cpu usage per Pod is 1.  No limit is specified",
        ),
        (
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}},
            sized({"cpu": "1"}, {"cpu": "3"}),
            "cpu max limit to request ratio per Pod is 2, but provided ratio is 3.000000",
        ),
    ],
)
async def test_a_limit_range_refuses(
    cluster: Cluster, autojump_clock: MockClock, limit: Json, spec: Json, why: str
) -> None:
    await cluster.make("limitranges", "team", limits=[limit])
    body = {"metadata": {"name": "p"}, "spec": spec}
    refused = await cluster("POST", cluster.path("pods"), body, expect=403)
    assert refused["message"] == f'pods "p" is forbidden: {why}'


async def test_claims_have_limits_and_quotas(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("limitranges", "team", limits=[{"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}}])
    await cluster.make("resourcequotas", "team", hard={"fast.storageclass.storage.k8s.io/requests.storage": "6Gi"})

    def claim(size: str) -> Json:
        resources = {"requests": {"storage": size}}
        return {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": resources}

    await cluster.make("persistentvolumeclaims", "a", expect=403, **claim("7Gi"))
    await cluster.make("persistentvolumeclaims", "b", **claim("4Gi"))
    refused = await cluster.make("persistentvolumeclaims", "c", expect=403, **claim("3Gi"))
    assert (
        "exceeded quota: team, requested: fast.storageclass.storage.k8s.io/requests.storage=3Gi" in refused["message"]
    )


CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


async def test_what_a_change_adds_is_charged(cluster: Cluster, autojump_clock: MockClock) -> None:
    grows = {"metadata": {"name": "grows"}, "provisioner": "csi.test", "allowVolumeExpansion": True}
    await cluster("POST", CLASSES, grows)
    await cluster.make("resourcequotas", "team", hard={"requests.storage": "3Gi"})
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "grows"}
    await cluster.make("persistentvolumeclaims", "data", resources={"requests": {"storage": "1Gi"}}, **wanted)
    await trio.sleep(10)
    await cluster.patch("persistentvolumeclaims", "data", {"metadata": {"labels": {"a": "b"}}})
    await resize(cluster, "3Gi")
    assert (await cluster.status("resourcequotas", "team"))["used"] == {"requests.storage": "3Gi"}
    refused = await resize(cluster, "4Gi", expect=403)
    why = "requested: requests.storage=1Gi, used: requests.storage=3Gi, limited: requests.storage=3Gi"
    assert refused["message"].endswith(f"is forbidden: exceeded quota: team, {why}")


async def resize(cluster: Cluster, size: str, expect: int = 200) -> Json:
    body = {"spec": {"resources": {"requests": {"storage": size}}}}
    path = cluster.path("persistentvolumeclaims", "data")
    return await cluster("PATCH", path, body, content_type="application/merge-patch+json", expect=expect)


async def test_a_pod_may_come_into_another_scope(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("resourcequotas", "ending", hard={"pods": "1"}, scopes=["Terminating"])
    await cluster.make("resourcequotas", "lasting", hard={"pods": "2"}, scopes=["NotTerminating"])
    for name in ("a", "b"):
        await cluster.create_pod(name)
    await cluster.patch("pods", "a", {"spec": {"activeDeadlineSeconds": 600}})
    await trio.sleep(1)
    used = [(await cluster.status("resourcequotas", name))["used"] for name in ("ending", "lasting")]
    assert used == [{"pods": "1"}, {"pods": "1"}]
    body = {"spec": {"activeDeadlineSeconds": 600}}
    merge = "application/merge-patch+json"
    refused = await cluster("PATCH", cluster.path("pods", "b"), body, content_type=merge, expect=403)
    assert "exceeded quota: ending, requested: pods=1, used: pods=1, limited: pods=1" in refused["message"]
