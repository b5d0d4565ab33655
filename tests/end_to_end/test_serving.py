"""Scheduling goes on whatever happens at the HTTPS port."""

from pathlib import Path

import pytest
import trio
from client_authority import client_context
from https_client import exchange
from real_time_daemon import node_manifests
from served_scheduler import served_scheduler

from trio_sched.simulator import ApiServer, populate, wall_clock


async def test_pods_are_bound_while_clients_attack(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    api = ApiServer(now=wall_clock)
    populate(api, node_manifests(3))
    context = client_context(Path())
    async with served_scheduler(api, pending=False) as port:
        answer = await exchange(port, "GET", "/readyz", context=context)
        assert (answer.status, answer.body) == (200, b"ok")
        async with trio.open_nursery() as attack:
            for _ in range(20):
                attack.start_soon(shout, port)
            for path in ("/debug/scheduler/cache", "/debug/pprof/heap", "/debug/pprof/tasks"):
                attack.start_soon(ask_again, port, path)
            for number in range(20):
                populate(api, [pod_manifest(number)])
                await trio.sleep(0.01)
            while any(not bound for bound in nodes_of_pods(api)):  # noqa: ASYNC110
                await trio.sleep(0.01)
            attack.cancel_scope.cancel()
        assert (await exchange(port, "GET", "/livez", context=context)).status == 200
    printed = capfd.readouterr()
    assert "Traceback" not in printed.out + printed.err + caplog.text


async def shout(port: int) -> None:
    while True:
        try:
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(b"\x16\x03\x01\x02\x00\x01" + bytes(3000))
                await stream.receive_some(100)
        except (OSError, trio.BrokenResourceError):
            await trio.sleep(0.01)


async def ask_again(port: int, path: str) -> None:
    while True:
        answer = await exchange(port, "GET", path, context=client_context(Path()))
        assert answer.status == 200


def pod_manifest(number: int) -> dict[str, object]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
    metadata = {"name": f"p{number}", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def nodes_of_pods(api: ApiServer) -> list[str]:
    return [pod.fields["spec"].get("nodeName", "") for pod in api.store.collection("pods").objects.values()]
