"""Whom a scheduler evicts: the same small clusters, full, for one scheduler after the other."""

from __future__ import annotations

from random import Random
from typing import Any

import trio

from contrib.faults.cluster import Cluster, eventually
from contrib.faults.load import POD_PATH, pod_manifest
from trio_sched.kube_client.connection import MERGE_PATCH
from trio_sched.kube_client.errors import NotFound

CLUSTERS = 12
NODES = 5
VICTIM_SECONDS = 30.0


async def victims(here: Cluster) -> float:
    """Full clusters, each with a pod that fits only after evictions; who is evicted is compared."""
    here.answers.clear()
    usual = [node["metadata"]["name"] for node in (await here.call(b"GET", b"/api/v1/nodes"))["items"]]
    for name in usual:
        await _cordon(here, name, is_cordoned=True)
    try:
        for number in range(CLUSTERS):
            here.answers.append(await _one(here, Random(number), number))
    finally:
        for name in usual:
            await _cordon(here, name, is_cordoned=False)
    return await here.seconds_to_bind()


async def _one(here: Cluster, random: Random, number: int) -> str:
    priorities = {f"faults-{value}": value for value in (0, 10, 100, 1000)}
    for name, value in priorities.items():
        try:
            await here.call(b"GET", b"/apis/scheduling.k8s.io/v1/priorityclasses/" + name.encode())
        except NotFound:
            body = {"metadata": {"name": name}, "value": value}
            await here.call(b"POST", b"/apis/scheduling.k8s.io/v1/priorityclasses", body)
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "50"}
    nodes = [f"twin-{number}-{i}" for i in range(NODES)]
    for name in nodes:
        status = {"allocatable": amounts, "capacity": amounts}
        await here.call(b"POST", b"/api/v1/nodes", {"metadata": {"name": name}, "status": status})
    pods: list[str] = []
    for i, node in enumerate(nodes):
        left = 4000
        while left > 300:
            cpu = min(left, random.choice([500, 1000, 1500, 2500]))
            left -= cpu
            name = f"twin-{number}-{i}-{len(pods)}"
            pods.append(name)
            chosen = random.choice([*list(priorities)[:3]])
            manifest = pod_manifest(name, cpu=f"{cpu}m", nodeName=node, priorityClassName=chosen)
            await here.call(b"POST", POD_PATH.encode(), manifest)
            # The start decides between nodes that are equal otherwise.
            started = f"2026-01-01T{random.randrange(24):02}:{random.randrange(60):02}:{random.randrange(60):02}Z"
            running = {"status": {"phase": "Running", "startTime": started}}
            await here.call(b"PATCH", f"{POD_PATH}/{name}/status".encode(), running, headers=MERGE_PATCH)
    await trio.sleep(0.5)
    preemptor = f"twin-{number}-preemptor"
    cpu = random.choice([1200, 2000, 3000])
    manifest = pod_manifest(preemptor, cpu=f"{cpu}m", priorityClassName="faults-1000")
    await here.call(b"POST", POD_PATH.encode(), manifest)

    async def is_bound() -> bool:
        return bool(await here.node_of(preemptor))

    await eventually(is_bound, within_seconds=VICTIM_SECONDS)
    left_over = await here.list_pods()
    gone = sorted(set(pods) - left_over.keys())
    node = _node_of(left_over.get(preemptor, {}))
    for name in [*(set(pods) & left_over.keys()), preemptor]:
        await here.call(b"DELETE", f"{POD_PATH}/{name}".encode())
    for name in nodes:
        await here.call(b"DELETE", b"/api/v1/nodes/" + name.encode())
    return f"{preemptor} on {node} in place of {', '.join(gone)}"


def _node_of(pod: dict[str, Any]) -> str:
    return str(pod.get("spec", {}).get("nodeName", "no node"))


async def _cordon(here: Cluster, name: str, *, is_cordoned: bool) -> None:
    body = {"spec": {"unschedulable": is_cordoned or None}}
    await here.call(b"PATCH", b"/api/v1/nodes/" + name.encode(), body, headers=MERGE_PATCH)
