"""TimeWindows against an API server on a port: a pod waits for its moment, and starts then."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from real_plugins import daemon_with
from real_servers import Files, StartServer, eventually, on_both
from trio_sched_time_windows import TimeWindows

PODS = "/api/v1/namespaces/default/pods"
ANNOTATIONS = "time-windows.trio-sched.dev/"


def pod(name: str, **annotations: str) -> dict[str, Any]:
    written = {f"{ANNOTATIONS}{key.replace('_', '-')}": value for key, value in annotations.items()}
    container = {"name": "c", "image": "registry.test/app:1"}
    return {"metadata": {"name": name, "annotations": written}, "spec": {"containers": [container]}}


@on_both
async def test_a_pod_waits_until_its_moment(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        await server.create_nodes()
        async with daemon_with(server, [TimeWindows]):
            now = datetime.now(UTC)
            closed = f"{now - timedelta(hours=2):%H:%M}-{now - timedelta(hours=1):%H:%M}"
            moment = (now + timedelta(seconds=6)).replace(microsecond=0)
            await server.request("POST", PODS, pod("waits", windows=closed, start_by=moment.isoformat()))
            await server.request("POST", PODS, pod("typo", windows="22-6"))
            opened = f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=1):%H:%M}"
            await server.request("POST", PODS, pod("open", windows=opened))
            await server.wait_bound(2)

            async def is_told() -> bool:
                waits, bad = await server.events("WaitingForWindow"), await server.events("BadAnnotation")
                return [one["regarding"]["name"] for one in (*waits, *bad)] == ["waits", "typo"]

            await eventually(is_told, within_seconds=5)
            assert not (await server.request("GET", f"{PODS}/waits"))["spec"].get("nodeName")
            assert datetime.now(UTC) < moment
            await server.wait_bound(3, within_seconds=20)
            assert datetime.now(UTC) >= moment
