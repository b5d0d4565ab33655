"""The plugin ElasticQuota against an API server on a port: the embedded one, and a real one where there is one."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from real_plugins import daemon_with
from real_servers import Files, Server, StartServer, eventually, on_both
from trio_sched_elastic_quota import ElasticQuota

FOLDER = Path(__file__).parents[3] / "contrib/plugins/elastic_quota"
GROUP = "/apis/quota.trio-sched.dev/v1alpha1"


async def create_quota(server: Server, namespace: str, spec: dict[str, Any]) -> None:
    kind = {"apiVersion": "quota.trio-sched.dev/v1alpha1", "kind": "ElasticQuota"}
    body = {**kind, "metadata": {"name": "quota"}, "spec": spec}
    await server.request("POST", f"{GROUP}/namespaces/{namespace}/elasticquotas", body)


async def create_pod(server: Server, namespace: str, number: int) -> None:
    container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": "1"}}}
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    body = {"metadata": {"name": f"p-{number}"}, "spec": spec}
    await server.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)


async def running(server: Server, namespace: str) -> int:
    listed = await server.request("GET", f"/api/v1/namespaces/{namespace}/pods")
    return sum(1 for one in listed["items"] if one["spec"].get("nodeName"))


@on_both
async def test_namespaces_lend_and_take_back(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        amounts = {"cpu": "6", "memory": "8Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts}
        await server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n0"}, "status": status})
        definition = yaml.safe_load((FOLDER / "deploy/elastic_quota.yaml").read_text())
        await server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)

        async def is_served() -> bool:
            return (await server.admin.get(f"{GROUP}/elasticquotas")).status_code == 200

        await eventually(is_served, within_seconds=30)
        for namespace, spec in (
            ("red", {"min": {"cpu": "2"}, "max": {"cpu": "5"}}),
            ("blue", {"min": {"cpu": 4}}),
        ):
            await server.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            await create_quota(server, namespace, spec)
        config = (FOLDER / "examples/scheduler.yaml").read_text().replace("10s", "1s")
        async with daemon_with(server, [ElasticQuota], config):
            for number in range(6):
                await create_pod(server, "red", number)

            async def has_borrowed() -> bool:
                stored = await server.request("GET", f"{GROUP}/namespaces/red/elasticquotas/quota")
                return bool(stored.get("status") == {"used": {"cpu": "5"}, "borrowed": {"cpu": "3"}})

            await eventually(has_borrowed, within_seconds=30)
            for number in range(5):
                await create_pod(server, "blue", number)

            async def has_taken_back() -> bool:
                return (await running(server, "red"), await running(server, "blue")) == (2, 4)

            await eventually(has_taken_back, within_seconds=40)
            assert await running(server, "red") + await running(server, "blue") == 6

            async def is_measured() -> bool:
                stored = await server.request("GET", f"{GROUP}/namespaces/red/elasticquotas/quota")
                return bool(stored["status"].get("used") == {"cpu": "2"} and not stored["status"].get("borrowed"))

            await eventually(is_measured, within_seconds=20)


@on_both
async def test_the_definition_refuses_what_is_no_quantity(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        definition = yaml.safe_load((FOLDER / "deploy/elastic_quota.yaml").read_text())
        await server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)

        async def is_served() -> bool:
            return (await server.admin.get(f"{GROUP}/elasticquotas")).status_code == 200

        await eventually(is_served, within_seconds=30)
        with pytest.raises(httpx.HTTPStatusError):
            await create_quota(server, "default", {"min": {"cpu": "many"}})
        await create_quota(server, "default", {"min": {"cpu": "1500m", "memory": "1.5Gi", "example.com/gpu": 2}})
