"""Scheduling goes on whatever happens at the HTTPS port."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random

import pytest
import trio
from attrs import evolve
from client_authority import client_context
from daemon_clients import one_for_all
from https_client import exchange
from real_time_daemon import daemon_settings, free_port, node_manifests

from trio_sched.config.load import load_configuration
from trio_sched.daemon import supervisor
from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.serving_settings import AuthorizationSettings, ServingSettings
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator import ApiServer, InProcessTransport, populate, wall_clock

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""


async def test_pods_are_bound_while_clients_attack(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    api = ApiServer(now=wall_clock)
    populate(api, node_manifests(3))
    port = free_port()
    everything = AuthorizationSettings(always_allow_paths=("*",))
    settings = evolve(
        daemon_settings(load_configuration(CONFIGURATION)),
        serving=ServingSettings(bind_address="127.0.0.1", port=port, authorization=everything),
    )
    stop = trio.Event()
    context = client_context(Path())
    async with connect(
        ConnectionSettings(server="http://api.test"), qps=-1, transport=InProcessTransport(api)
    ) as client:
        assembly = assemble(settings, one_for_all(client), random=Random(0), wall_clock=partial(datetime.now, UTC))
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(supervisor.run_daemon, assembly, stop=stop))
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
                stop.set()
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
