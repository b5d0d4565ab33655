"""LoadAware against an API server and a server with the Prometheus API, both on ports."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from real_plugins import daemon_with
from real_servers import Files, StartServer, eventually, on_both
from trio_sched_load_aware import LoadAware

LOADS: dict[str, float] = {}


class Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        series = [{"metric": {"instance": f"{node}:9100"}, "value": [0, str(load)]} for node, load in LOADS.items()]
        body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None: ...


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = HTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
    LOADS.clear()


@on_both
async def test_pods_go_where_there_is_least_load(start_server: StartServer, tmp_path: Path, address: str) -> None:
    signal = {"name": "cpu", "query": "load", "of": "cpu", "thresholdPercent": 80}
    args = {"address": address, "signals": [signal], "interval": "1s", "peakHalfLife": "0s"}
    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {{enabled: [{{name: LoadAware, weight: 100}}]}}
    pluginConfig: [{{name: LoadAware, args: {json.dumps(args)}}}]
"""
    async with start_server(Files(tmp_path)) as server:
        await server.create_nodes()
        names = [one["metadata"]["name"] for one in (await server.request("GET", "/api/v1/nodes"))["items"]]
        LOADS.update(dict.fromkeys(names, 0.95))
        async with daemon_with(server, [LoadAware], config) as assembly:
            (profile,) = assembly.scheduler.profiles.values()
            loads = profile.plugins["LoadAware"]._known

            async def are_known() -> bool:
                return bool(loads.loads[0])

            await eventually(are_known, within_seconds=10)
            await server.create_pods("p", 4)

            async def is_rejected() -> bool:
                return any("had a cpu load of 80 % or more" in one["note"] for one in await rejections())

            async def rejections() -> list[dict[str, Any]]:
                return await server.events("FailedScheduling")

            await eventually(is_rejected, within_seconds=20)
            assert (await server.bound())[True] == 0
            LOADS[names[-1]] = 0.1
            await server.wait_bound(4, within_seconds=30)
            pods = (await server.request("GET", "/api/v1/namespaces/default/pods"))["items"]
            assert {pod["spec"]["nodeName"] for pod in pods} == {names[-1]}
