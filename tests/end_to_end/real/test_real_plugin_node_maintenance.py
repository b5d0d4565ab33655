"""NodeMaintenance against an API server on a port, with its own definition and the permissions computed for it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import yaml
from real_plugins import daemon_with
from real_servers import Files, StartServer, eventually, on_both
from trio_sched_node_maintenance import NodeMaintenance

DEFINITION = Path(__file__).parents[3] / "contrib/plugins/node_maintenance/deploy/crd.yaml"
OBJECTS = "/apis/maintenance.trio-sched.dev/v1alpha1/nodemaintenances"


def maintenance(name: str, **spec: Any) -> dict[str, Any]:
    group_and_version = OBJECTS.removeprefix("/apis/").removesuffix("/nodemaintenances")
    return {"apiVersion": group_and_version, "kind": "NodeMaintenance", "metadata": {"name": name}, "spec": spec}


@on_both
async def test_a_maintenance_keeps_pods_away_until_it_is_over(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        await server.request(
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(DEFINITION.read_text())
        )

        async def is_served() -> bool:
            try:
                await server.request("GET", OBJECTS)
            except httpx.HTTPStatusError:
                return False
            return True

        await eventually(is_served, within_seconds=30)
        await server.create_nodes()
        names = [one["metadata"]["name"] for one in (await server.request("GET", "/api/v1/nodes"))["items"]]
        now = datetime.now(UTC)
        end = (now + timedelta(seconds=8)).isoformat(timespec="seconds").replace("+00:00", "Z")
        start = (now - timedelta(hours=1)).isoformat(timespec="seconds").replace("+00:00", "Z")
        await server.request("POST", OBJECTS, maintenance("some", nodes=names[1:], start=start, duration="5h"))
        await server.request("POST", OBJECTS, maintenance("first", nodes=names[:1], start=start, end=end))
        await server.request("POST", OBJECTS, maintenance("bad", nodes=["x"], start="soon", duration="1h"))
        async with daemon_with(server, [NodeMaintenance]):
            await server.create_pods("p", 2)

            async def are_rejected() -> bool:
                return len(await server.events("FailedScheduling")) >= 2

            await eventually(are_rejected, within_seconds=10)
            (event, *_) = await server.events("FailedScheduling")
            assert "node(s) had a planned maintenance" in event["note"]
            await server.wait_bound(2, within_seconds=30)
            pods = (await server.request("GET", "/api/v1/namespaces/default/pods"))["items"]
            assert {pod["spec"]["nodeName"] for pod in pods} == {names[0]}

            async def have_status() -> bool:
                found = {one["metadata"]["name"]: one.get("status", {}) for one in await objects()}
                return {name: status.get("phase") for name, status in found.items()} == {
                    "some": "Active",
                    "first": "Over",
                    "bad": "Invalid",
                }

            async def objects() -> list[dict[str, Any]]:
                return list((await server.request("GET", OBJECTS))["items"])

            await eventually(have_status, within_seconds=20)
            (bad,) = [one for one in await objects() if one["metadata"]["name"] == "bad"]
            assert "spec.start 'soon' is no time" in bad["status"]["message"]

            async def is_told() -> bool:
                return bool(await server.events("MaintenanceBegins") and await server.events("Invalid"))

            await eventually(is_told, within_seconds=20)
