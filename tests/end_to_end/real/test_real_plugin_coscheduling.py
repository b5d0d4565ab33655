"""The plugin Coscheduling against an API server on a port: the embedded one, and a real one where there is one."""

from pathlib import Path
from typing import Any

import trio
from real_plugins import daemon_with
from real_servers import Files, Server, StartServer, eventually, on_both
from trio_sched_coscheduling import Coscheduling

CONFIG = Path(__file__).parents[3] / "contrib/plugins/coscheduling/examples/scheduler.yaml"
PODS = "/api/v1/namespaces/default/pods"


async def create_node(server: Server, name: str, cpu: str) -> None:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    await server.request(
        "POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}
    )


async def create_gang(server: Server, gang: str, numbers: range, minimum: int) -> None:
    for number in numbers:
        labels = {"trio-sched.dev/pod-group": gang, "trio-sched.dev/min-available": str(minimum)}
        container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": "1"}}}
        spec: dict[str, Any] = {"terminationGracePeriodSeconds": 0, "containers": [container]}
        metadata = {"name": f"{gang}-{number}", "labels": labels}
        await server.request("POST", PODS, {"metadata": metadata, "spec": spec})


async def bound(server: Server) -> list[str]:
    """The gangs of the pods that have a node."""
    items = (await server.request("GET", PODS))["items"]
    return sorted(one["metadata"]["name"].split("-")[0] for one in items if one["spec"].get("nodeName"))


@on_both
async def test_gangs_are_bound_whole(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        await create_node(server, "n0", "2")
        await create_node(server, "n1", "2")
        async with daemon_with(server, [Coscheduling], CONFIG.read_text()):
            await create_gang(server, "a", range(2), 3)
            await trio.sleep(2)
            assert await bound(server) == []
            await create_gang(server, "a", range(2, 3), 3)
            await server.wait_bound(3, within_seconds=20)
            await create_gang(server, "b", range(3), 3)

            async def is_rejected() -> bool:
                notes = [event["note"] for event in await server.events("FailedScheduling")]
                return any("gang default/b has room for 1 of the 3 pods that it needs" in note for note in notes)

            await eventually(is_rejected, within_seconds=20)
            assert await bound(server) == ["a", "a", "a"]
        # Of another scheduler process, with only two of the three gone: one pod of a still takes a place.
        async with daemon_with(server, [Coscheduling], CONFIG.read_text()):
            for number in range(2):
                await server.request("DELETE", f"{PODS}/a-{number}")

            async def have_moved_in() -> bool:
                return await bound(server) == ["a", "b", "b", "b"]

            await eventually(have_moved_in, within_seconds=40)
