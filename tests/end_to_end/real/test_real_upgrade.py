"""An upgrade of a real API server on one etcd, under a running scheduler; see ``contrib/api_servers/``."""

import os
from collections import Counter
from pathlib import Path

import pytest
from real_devices import DEVICES, NODES, allocations, create_devices, create_pod, served_version
from real_servers import ASSETS, Files, eventually, real_server

from contrib.control_plane.servers import Assets

BEFORE = os.environ.get("UPGRADE_FROM_ASSETS", "")


@pytest.mark.skipif(
    not (ASSETS and BEFORE),
    reason="UPGRADE_FROM_ASSETS names no folder with an older kube-apiserver than that of KUBEBUILDER_ASSETS",
)
async def test_devices_are_allocated_before_and_after_an_upgrade(tmp_path: Path) -> None:
    async with real_server(Files(tmp_path), BEFORE) as server:
        assert server.plane is not None
        before = await served_version(server)
        await create_devices(server)
        async with server.scheduler("one"):
            for number in range(NODES * DEVICES // 2):
                await create_pod(server, f"before-{number}")
            await server.wait_bound(NODES * DEVICES // 2)
            await server.plane.change_api_server(Assets(Path(ASSETS)))
            for number in range(NODES * DEVICES // 2 + 1):
                await create_pod(server, f"after-{number}")
            await server.wait_bound(NODES * DEVICES)
            used = Counter(device for devices in (await allocations(server)).values() for device in devices)
            assert len(used) == NODES * DEVICES
            assert set(used.values()) == {1}
            await server.plane.change_api_server(Assets(Path(BEFORE)))
            assert await served_version(server) == before
            await server.request("DELETE", "/api/v1/namespaces/default/pods/before-0?gracePeriodSeconds=0")
            await server.create_pods("plain", 1)

            async def is_bound() -> bool:
                found = await server.request("GET", "/api/v1/namespaces/default/pods/plain-0")
                return bool(found["spec"].get("nodeName"))

            await eventually(is_bound, within_seconds=60)
