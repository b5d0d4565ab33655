"""The package for GPU packing against an API server on a port: the embedded one, and a real one where there is one."""

from pathlib import Path
from typing import Any

from real_plugins import daemon_with
from real_servers import Files, Server, StartServer, eventually, on_both
from trio_sched_gpu_packing import GpuPacking

RESOURCE = "example.com/gpu-milli"
ANNOTATION = "trio-sched.dev/gpu-index"
CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled: [{{name: GpuPacking}}]
      score:
        disabled: [{{name: "*"}}]
        enabled: [{{name: GpuPacking}}]
    pluginConfig:
      - name: GpuPacking
        args: {{resource: {RESOURCE}, unitsPerGpu: 1000}}
"""


async def create_gpu_pod(server: Server, name: str, milli: int) -> None:
    amounts = {"cpu": "100m", RESOURCE: str(milli)}
    container = {
        "name": "main",
        "image": "example",
        "resources": {"requests": amounts, "limits": {RESOURCE: amounts[RESOURCE]}},
    }
    body = {"metadata": {"name": name}, "spec": {"containers": [container]}}
    await server.request("POST", "/api/v1/namespaces/default/pods", body)


@on_both
async def test_shares_are_packed_and_written_down(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        await server.create_nodes()
        names = [one["metadata"]["name"] for one in (await server.request("GET", "/api/v1/nodes"))["items"]]
        for name in names[:2]:
            status: dict[str, Any] = {"capacity": {RESOURCE: "2000"}, "allocatable": {RESOURCE: "2000"}}
            headers = {"content-type": "application/merge-patch+json"}
            url = f"/api/v1/nodes/{name}/status"
            (await server.admin.patch(url, json={"status": status}, headers=headers)).raise_for_status()
        async with daemon_with(server, [GpuPacking], CONFIG):
            for number, milli in enumerate((600, 400, 600, 400, 2000, 500)):
                await create_gpu_pod(server, f"p{number}", milli)
            await server.wait_bound(5, within_seconds=20)

            async def is_rejected() -> bool:
                return len(await server.events("FailedScheduling")) == 1

            await eventually(is_rejected, within_seconds=20)
        pods = (await server.request("GET", "/api/v1/namespaces/default/pods"))["items"]
        given = {
            pod["metadata"]["name"]: (pod["spec"]["nodeName"], pod["metadata"]["annotations"][ANNOTATION])
            for pod in pods
            if "nodeName" in pod["spec"]
        }
        assert given["p4"][1] == "0,1"
        shares = [given[f"p{number}"] for number in range(4)]
        assert sorted(shares.count(share) for share in set(shares)) == [2, 2]
