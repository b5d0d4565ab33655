"""An upgrade of a real API server on one etcd, under a running scheduler; see ``contrib/api_servers/``."""

import os
from collections import Counter
from pathlib import Path

import pytest
from gangs import GANG_GATES
from real_devices import DEVICES, NODES, allocations, create_devices, create_pod, served_version
from real_gangs import (
    FIRST_WITH_GANGS,
    PODS,
    WORKLOADS,
    bound,
    create_gang,
    create_member,
    create_node,
    wait_bound,
)
from real_plugins import daemon_with
from real_servers import ASSETS, Files, eventually, real_server
from real_versions import minor_of
from workloads_of_1_35 import member_of_workload

from contrib.control_plane.servers import Assets

BEFORE = os.environ.get("UPGRADE_FROM_ASSETS", "")

pytestmark = pytest.mark.skipif(
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


async def test_pods_of_workloads_are_scheduled_after_an_upgrade_and_so_are_new_gangs(tmp_path: Path) -> None:
    async with real_server(Files(tmp_path), BEFORE, all_kinds=True) as server:
        if await minor_of(server) != FIRST_WITH_GANGS:
            pytest.skip("only 1.35 has pods of workloads")
        await create_node(server)
        async with daemon_with(server, [], gates=GANG_GATES):
            await create_gang(server, FIRST_WITH_GANGS, "whole", 2)
            for name, key in (("whole-0", "0"), ("whole-1", "0"), ("waiting", "1")):
                await server.request("POST", PODS, member_of_workload(name, "whole", "workers", key))
            await wait_bound(server, "whole-0", "whole-1")
            assert "waiting" not in await bound(server)
            # A server of 1.36 cannot read it, and does not become ready as long as there is one.
            await server.request("DELETE", f"{WORKLOADS}/whole")
            assert server.plane is not None
            await server.plane.change_api_server(Assets(Path(ASSETS)))
            await wait_bound(server, "waiting")
            minor = await minor_of(server)
            await create_gang(server, minor, "later", 2)
            await create_member(server, minor, "later-0", "later")
            await server.create_pods("plain", 1)
            await wait_bound(server, "plain-0")
            assert "later-0" not in await bound(server)
            await create_member(server, minor, "later-1", "later")
            await wait_bound(server, "later-0", "later-1")
