"""The daemon on a real connection: TLS, keep-alive, the real clock."""

from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import trio
import trustme

from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.daemon.assembly import assemble
from trio_sched.daemon.settings import Clients, DaemonSettings
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.engine.plugin_registry import PluginRegistry
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings
from trio_sched.simulator import ApiServer, populate, serve, wall_clock
from trio_sched.simulator.object_store import Change as StoreChange

PODS = 200


def manifest(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def settings() -> DaemonSettings:
    config = load_configuration(None)
    registry = PluginRegistry.discover()
    profiles = tuple(resolved.limited_to(registry) for resolved in resolve_profiles(config, KNOWN_PLUGINS))
    return DaemonSettings(config=config, gates=DEFAULT_GATES, profiles=profiles, registry=registry, identity="me")


async def test_200_pods_are_bound_through_a_port(tmp_path: Path) -> None:
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes(leaf.cert_chain_pems[0].bytes())
    key.write_bytes(leaf.private_key_pem.bytes())
    api, stop = ApiServer(), trio.Event()
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    populate(api, [manifest("Node", f"n{n}", status={"allocatable": amounts, "capacity": amounts}) for n in range(20)])
    bound: dict[str, str] = {}
    everything = trio.Event()

    def see(change: StoreChange) -> None:
        node = change.current.fields["spec"].get("nodeName")
        if node:
            name = change.current.fields["metadata"]["name"]
            assert bound.setdefault(name, node) == node
            if len(bound) == PODS:
                everything.set()

    api.store.collection("pods").listen(see)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            address = await nursery.start(partial(serve, api, certificate=certificate, private_key=key))
            connection = ConnectionSettings(server=address, tls=TlsSettings(ca_data=authority.cert_pem.bytes()))
            reach = partial(connect, connection, qps=-1)
            async with reach() as main, reach() as events, reach() as leases, trio.open_nursery() as scheduler:
                clients = Clients(main=main, events=events, leases=leases)
                assembly = assemble(settings(), clients, random=Random(1), wall_clock=wall_clock)
                await scheduler.start(partial(run_daemon, assembly, stop=stop))
                container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
                populate(api, [manifest("Pod", f"p{n}", spec={"containers": [container]}) for n in range(PODS)])
                await everything.wait()
                stop.set()
            nursery.cancel_scope.cancel()
    scheduled = [
        stored.fields
        for stored in api.store.collection("events").objects.values()
        if stored.fields["reason"] == "Scheduled"
    ]
    assert len({event["involvedObject"]["name"] for event in scheduled}) == len(scheduled) == PODS
    (lease,) = api.store.collection("leases.coordination.k8s.io").objects.values()
    assert lease.fields["spec"]["holderIdentity"] == ""
