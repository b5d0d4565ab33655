"""Spread, preemption and volumes by ``trio-sched`` as a process, against an API server on a port; see `real_servers`.

There are no kubelets and no volume controller on the real one: the test does what they would do.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from real_servers import Files, Server, StartServer, eventually, on_both

ZONE = "topology.kubernetes.io/zone"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


async def zones(server: Server, *names: str) -> None:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    for name in names:
        labels = {ZONE: name, "kubernetes.io/hostname": f"node-{name}"}
        node = {
            "metadata": {"name": f"node-{name}", "labels": labels},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        await server.request("POST", "/api/v1/nodes", node)


def pod(name: str, cpu: str = "100m", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": cpu}}}
    # There are no kubelets that would end them.
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


async def where(server: Server) -> dict[str, str]:
    listed = await server.request("GET", PODS)
    return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in listed["items"]}


async def patch(server: Server, path: str, changes: dict[str, Any]) -> None:
    headers = {"content-type": "application/merge-patch+json"}
    (await server.admin.patch(path, json=changes, headers=headers)).raise_for_status()


@on_both
async def test_replicas_are_spread_and_the_last_one_waits(start_server: StartServer, tmp_path: Path) -> None:
    web = {"app": "web"}
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": web},
    }
    shun = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "alone"}}}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [shun]}}
    async with start_server(Files(tmp_path)) as server, server.scheduler("one"):
        await zones(server, "a", "b", "c")
        for i in range(6):
            await server.request("POST", PODS, pod(f"web-{i}", labels=web, topologySpreadConstraints=[spread]))
        for i in range(4):
            await server.request("POST", PODS, pod(f"alone-{i}", labels={"app": "alone"}, affinity=alone))
        await server.wait_bound(9)

        async def is_explained() -> bool:
            return bool(await server.events("FailedScheduling"))

        await eventually(is_explained, within_seconds=30)
        placed = await where(server)
        assert Counter(node for name, node in placed.items() if "web" in name) == {f"node-{z}": 2 for z in "abc"}
        assert sorted(node for name, node in placed.items() if "alone" in name) == ["", "node-a", "node-b", "node-c"]
        (refused,) = {event["note"] for event in await server.events("FailedScheduling")}
        assert refused.startswith("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.")


@on_both
async def test_pods_of_lower_priority_are_preempted(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server, server.scheduler("one"):
        await zones(server, "a", "b")
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
        await server.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {**high, "value": 1000})
        for i in range(4):
            await server.request("POST", PODS, pod(f"low-{i}", cpu="1900m"))
        await server.wait_bound(4)
        for i in range(2):
            await server.request("POST", PODS, pod(f"high-{i}", cpu="3", priorityClassName="high"))

        async def have_room() -> bool:
            placed = await where(server)
            return bool(placed.get("high-0")) and bool(placed.get("high-1"))

        await eventually(have_room, within_seconds=30)
        placed = await where(server)
        assert {placed["high-0"], placed["high-1"]} == {"node-a", "node-b"}
        assert not [name for name in placed if "low" in name]

        async def are_told() -> bool:  # events follow in requests of their own
            return {event["regarding"]["name"] for event in await server.events("Preempted")} == {
                f"low-{i}" for i in range(4)
            }

        await eventually(are_told, within_seconds=30)
        assert {event["reportingController"] for event in await server.events("Preempted")} == {"default-scheduler"}


@pytest.mark.parametrize("fails_first", [False, True])
@on_both
async def test_a_claim_is_bound_on_the_node_of_its_pod(
    start_server: StartServer, fails_first: bool, tmp_path: Path
) -> None:
    async with start_server(Files(tmp_path)) as server, server.scheduler("one"):
        await zones(server, "a")
        late = {"metadata": {"name": "late"}, "provisioner": "csi.test", "volumeBindingMode": "WaitForFirstConsumer"}
        await server.request("POST", "/apis/storage.k8s.io/v1/storageclasses", late)
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        await server.request("POST", CLAIMS, {"metadata": {"name": "data"}, "spec": spec})
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        await server.request("POST", PODS, pod("db", volumes=[volume]))

        async def is_wanted() -> bool:
            claim = await server.request("GET", f"{CLAIMS}/data")
            annotations = claim["metadata"].get("annotations") or {}
            return annotations.get("volume.kubernetes.io/selected-node") == "node-a"

        await eventually(is_wanted, within_seconds=30)
        if fails_first:
            gone = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}
            await patch(server, f"{CLAIMS}/data", gone)
            await eventually(is_wanted, within_seconds=30)
        claim = await server.request("GET", f"{CLAIMS}/data")
        bound_to = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
        await server.request(
            "POST",
            "/api/v1/persistentvolumes",
            {
                "metadata": {"name": "made"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "1Gi"},
                    "storageClassName": "late",
                    "csi": {"driver": "csi.test", "volumeHandle": "made"},
                    "claimRef": {**bound_to, "uid": claim["metadata"]["uid"]},
                },
            },
        )
        done = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "made"}}
        await patch(server, f"{CLAIMS}/data", done)
        await server.wait_bound(1)
        assert await where(server) == {"db": "node-a"}
