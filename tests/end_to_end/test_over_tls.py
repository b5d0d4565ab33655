"""The daemon on a real connection: TLS, keep-alive, the real clock."""

from functools import partial
from pathlib import Path
from random import Random

import trio
import trustme
from certificate_files import write_certificate
from daemon_clients import open_unlimited
from real_time_daemon import daemon_settings, manifest, node_manifests

from trio_sched.config.load import load_configuration
from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings
from trio_sched.simulator import ApiServer, populate, serve, wall_clock
from trio_sched.simulator.storage.object_store import Change as StoreChange

PODS = 200


async def test_200_pods_are_bound_through_a_port(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key = write_certificate(authority, "127.0.0.1", tmp_path)
    api, stop = ApiServer(), trio.Event()
    populate(api, node_manifests(20))
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
            settings = daemon_settings(load_configuration(None))
            async with open_unlimited(settings.config, connection) as clients, trio.open_nursery() as scheduler:
                assembly = assemble(settings, clients, random=Random(1), wall_clock=wall_clock)
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
