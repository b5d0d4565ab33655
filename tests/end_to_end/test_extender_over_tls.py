"""An extender on a real connection: TLS, keep-alive, the real clock; then it fails."""

import base64
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import trio
import trustme
from certificate_files import write_certificate
from daemon_clients import open_unlimited
from real_time_daemon import daemon_settings, manifest, node_manifests

from trio_sched.config.extenders import apply_extenders
from trio_sched.config.load import load_configuration
from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator import (
    ApiServer,
    InProcessTransport,
    PretendExtender,
    leaving,
    populate,
    scoring,
    serve_extender,
    wall_clock,
)

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
GPU = "example.com/gpu"


def pod_manifest(name: str, gpus: str = "") -> dict[str, Any]:
    amounts = {GPU: gpus} if gpus else {}
    resources = {"requests": amounts, "limits": amounts}
    return manifest("Pod", name, spec={"containers": [{"name": "c", "image": "i", "resources": resources}]})


def settings(extender: dict[str, Any]) -> DaemonSettings:
    text = f"{HEAD}leaderElection: {{leaderElect: false}}\nextenders: {json.dumps([extender])}\n"
    config = apply_extenders(load_configuration(text))
    return daemon_settings(config)


async def test_an_extender_is_called_over_tls_and_its_failure_concerns_only_its_pods(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key = write_certificate(authority, "extender.test", tmp_path)
    extender = PretendExtender(answers={"filter": leaving(lambda name: name != "n1"), "rank": scoring({"n3": 10})})
    api, stop = ApiServer(), trio.Event()
    populate(api, node_manifests(5))

    def fields(name: str) -> dict[str, Any]:
        stored = api.store.get("pods", f"default/{name}")
        assert stored is not None
        return stored.fields

    def node_of(name: str) -> str:
        return str(fields(name)["spec"].get("nodeName", ""))

    async def until(happened: Callable[[], Any]) -> None:
        while not happened():
            changed = trio.Event()
            end = api.store.collection("pods").listen(lambda _change, changed=changed: changed.set())
            await changed.wait()
            end()

    life, dead = trio.CancelScope(), trio.Event()

    async def live(*, task_status: trio.TaskStatus[str]) -> None:
        with life:
            await serve_extender(extender, certificate=certificate, private_key=key, task_status=task_status)
        dead.set()

    connection = ConnectionSettings(server="http://api.test")
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            url = await nursery.start(live)
            described = {
                "urlPrefix": f"{url}/gpus/",
                "filterVerb": "filter",
                "prioritizeVerb": "rank",
                "weight": 10,
                "enableHTTPS": True,
                "tlsConfig": {
                    "caData": base64.b64encode(authority.cert_pem.bytes()).decode(),
                    "serverName": "extender.test",
                },
                "managedResources": [{"name": GPU, "ignoredByScheduler": True}],
            }
            daemon = settings(described)
            connections = open_unlimited(daemon.config, connection, transport=InProcessTransport(api))
            async with connections as clients, trio.open_nursery() as scheduler:
                assembly = assemble(daemon, clients, random=Random(1), wall_clock=wall_clock)
                await scheduler.start(partial(run_daemon, assembly, stop=stop))
                populate(api, [pod_manifest(f"gpu-{n}", gpus="1") for n in range(20)])
                await until(lambda: all(node_of(f"gpu-{n}") for n in range(20)))
                life.cancel()
                await dead.wait()
                populate(api, [pod_manifest("late", gpus="1"), pod_manifest("plain")])
                await until(lambda: node_of("plain"))
                await until(lambda: fields("late")["status"].get("conditions"))
                (condition,) = fields("late")["status"]["conditions"]
                stop.set()
    assert {node_of(f"gpu-{n}") for n in range(20)} == {"n3"}
    assert node_of("late") == ""
    assert condition["reason"] == "SchedulerError"
    port = url.rpartition(":")[2]
    refused = f'Post "{url}/gpus/filter": dial tcp 127.0.0.1:{port}: connect: connection refused'
    assert condition["message"] in (refused, f'Post "{url}/gpus/filter": EOF')  # the idle connection may die first
