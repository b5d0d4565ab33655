"""Gangs on a real API server of 1.35 or later."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio
from gangs import GANG_GATES
from real_gangs import (
    FIRST_WITH_GANGS,
    FIRST_WITH_POD_GROUPS,
    bound,
    create_gang,
    create_member,
    create_node,
    wait_bound,
)
from real_plugins import daemon_with
from real_servers import ASSETS, Files, Server, eventually, real_server
from real_versions import minor_of

pytestmark = pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")


@asynccontextmanager
async def scheduled(folder: Path) -> AsyncIterator[tuple[Server, int]]:
    """A real server with all kinds that it has, a node, and a scheduler; gives its minor version, too."""
    async with real_server(Files(folder), all_kinds=True) as server:
        minor = await minor_of(server)
        if minor < FIRST_WITH_GANGS:
            pytest.skip(f"1.{minor} has no gangs")
        await create_node(server)
        async with daemon_with(server, [], gates=GANG_GATES):
            yield server, minor


async def test_a_gang_is_placed_when_it_is_complete_and_not_before(tmp_path: Path) -> None:
    async with scheduled(tmp_path) as (server, minor):
        for gang in ("whole", "part"):
            await create_gang(server, minor, gang, 2)
            await create_member(server, minor, f"{gang}-0", gang)
        await create_member(server, minor, "whole-1", "whole")
        await wait_bound(server, "whole-0", "whole-1")
        await server.create_pods("plain", 1)
        await wait_bound(server, "plain-0")
        assert "part-0" not in await bound(server)
        await create_member(server, minor, "part-1", "part")
        await wait_bound(server, "part-0", "part-1")


async def test_a_gang_that_does_not_fit_says_why_and_takes_no_room(tmp_path: Path) -> None:
    async with scheduled(tmp_path) as (server, minor):
        await create_gang(server, minor, "large", 7)
        for number in range(7):
            await create_member(server, minor, f"large-{number}", "large")

        async def is_told() -> bool:
            listed = await server.request("GET", "/api/v1/namespaces/default/events")
            told = {(one["reason"], one["involvedObject"]["kind"]) for one in listed["items"]}
            return ("FailedScheduling", "PodGroup" if minor >= FIRST_WITH_POD_GROUPS else "Workload") in told

        await eventually(is_told, within_seconds=30)
        await server.create_pods("plain", 1, cpu="6")
        await wait_bound(server, "plain-0")
        assert await bound(server) == {"plain-0"}


SHARED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
sharding: {shards: 4}
"""


async def test_a_gang_gets_places_on_nodes_of_replicas_that_share_the_work_and_one_too_large_none(
    tmp_path: Path,
) -> None:
    async with real_server(Files(tmp_path), all_kinds=True) as server:
        minor = await minor_of(server)
        if minor < FIRST_WITH_POD_GROUPS:
            pytest.skip(f"1.{minor} has no pod groups")
        for number in range(6):
            await create_node(server, f"node-{number}")
        async with AsyncExitStack() as replicas:
            for identity in ("a", "b"):
                await replicas.enter_async_context(
                    daemon_with(server, [], config=SHARED, gates=GANG_GATES, identity=identity)
                )
            for gang, count in (("fits", 30), ("large", 30)):
                await create_gang(server, minor, gang, count)
                for number in range(count):
                    await create_member(server, minor, f"{gang}-{number}", gang)
                if gang == "fits":
                    await wait_bound(server, *(f"fits-{number}" for number in range(count)))
            await trio.sleep(10)
            assert await bound(server) == {f"fits-{number}" for number in range(30)}
            items = (await server.request("GET", "/api/v1/namespaces/default/pods"))["items"]
            assert len({one["spec"]["nodeName"] for one in items if one["spec"].get("nodeName")}) >= 5
