"""Writes the state of a workload: nodes, and the pods that are there before the scheduler starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import trio

from contrib.benchmarks.real.workloads import CLAIM_PATH, POD_PATH, Workload, prepared_objects
from contrib.benchmarks.workload import claim_of
from contrib.control_plane.control_plane import control_plane
from contrib.control_plane.servers import Assets, ServerFiles
from trio_sched.documents.json_values import Json
from trio_sched.kube_client.connection import JSON, MERGE_PATCH, KubeClient

WRITERS = 16


async def prepare(assets: Assets, files: ServerFiles, workload: Workload, folder: Path) -> None:
    """Fill an etcd whose data is in ``etcd`` below *folder*; its servers have ended afterwards."""
    async with control_plane(assets, files, folder) as server:
        await write_objects(server.admin, prepared_objects(workload))
        if workload.pod_type == "claim":
            await write_claims(server.admin)


async def write_objects(client: KubeClient, objects: Iterator[tuple[str, Json]]) -> None:
    """Create *objects*, a collection at a time, over several connections."""
    waiting: list[tuple[str, Json]] = []
    for collection, manifest in objects:
        if waiting and waiting[-1][0] != collection:  # pods name nodes and priority classes
            await _write_all(client, waiting)
            waiting = []
        waiting.append((collection, manifest))
    await _write_all(client, waiting)


async def write_claims(client: KubeClient) -> None:
    """Create the claims of all pods, and note them in their status, as the controller for that does."""
    listed = await client.call(b"GET", POD_PATH.encode())
    left = iter(msgspec.json.decode(listed)["items"])

    async def write() -> None:
        for made in left:
            claim = claim_of(made)
            path = f"{CLAIM_PATH}/resourceclaims"
            await client.call(b"POST", path.encode(), headers=JSON, body=msgspec.json.encode(claim))
            statuses = [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
            body = msgspec.json.encode({"status": {"resourceClaimStatuses": statuses}})
            path = f"{POD_PATH}/{made['metadata']['name']}/status"
            await client.call(b"PATCH", path.encode(), headers=MERGE_PATCH, body=body)

    async with trio.open_nursery() as nursery:
        for _ in range(WRITERS):
            nursery.start_soon(write)


async def _write_all(client: KubeClient, objects: list[tuple[str, Json]]) -> None:
    left = iter(objects)

    async def write() -> None:
        for collection, manifest in left:
            await client.call(b"POST", collection.encode(), headers=JSON, body=msgspec.json.encode(manifest))

    async with trio.open_nursery() as nursery:
        for _ in range(WRITERS):
            nursery.start_soon(write)
